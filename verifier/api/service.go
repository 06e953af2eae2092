// Package api is what the sidecar answers: recording actions, pushing facts,
// asking for verdicts and waiting for them. Service is the API without HTTP,
// for the command line; Handler serves it.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/feed"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/settle"
)

// Config of a Service. Ledger, Verifier, Contracts and Now are required.
type Config struct {
	Ledger    ledger.Ledger
	Verifier  *settle.Verifier
	Contracts *ledger.ContractCache
	// Now is the time of recording and of dry runs.
	Now func() engine.Instant
	// Hub holds those who wait for a verdict. Give its Stored to settle.Config.OnStored
	// and run it; without one, Wait answers at once. It serves one Service.
	Hub *Hub
	// Feed tells events; run it. Without one, nobody can listen.
	Feed *feed.Feed
	// OnPushed is called after facts were pushed, by any goroutine; may be nil.
	OnPushed func(caller Caller, pushed Pushed)
	// Logger may be nil.
	Logger *slog.Logger
}

// Service is the API without HTTP. It is safe for concurrent use. Its errors
// are *Problem.
type Service struct {
	Config
	answers *answers
	// rejected bounds what is kept of evidence that was pushed and not taken.
	rejected ledger.RejectedBudget
}

// NewService fills in defaults.
func NewService(c Config) *Service {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{Config: c}
	s.answers = &answers{service: s, awaited: map[gateKey][]*answerTo{}}
	if s.Hub != nil {
		s.Hub.opened = s.answers.ask
	}
	return s
}

// Caller is who asks: a key as keys.Find returns it. The command line is an
// analyst of its tenant.
type Caller struct{ ledger.Key }

// Analyst is a person at the machine itself, who needs no key.
func Analyst(tenant string) Caller {
	return Caller{ledger.Key{Tenant: tenant, Role: ledger.RoleAnalyst}}
}

// need fails with 403 when the caller lacks a right.
func (c Caller) need(right keys.Right) error {
	if keys.May(c.Role, right) {
		return nil
	}
	return forbidden("a key with the role %s may not %s; roles that may: %s", c.Role, right, joined(keys.RolesWith(right)))
}

// asProblem turns any error into a Problem. Errors of the store tell the caller
// to come back; what nobody foresaw is logged and not told.
func (s *Service) asProblem(ctx context.Context, err error) *Problem {
	var known *Problem
	var limit *keys.LimitError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &limit):
		p := problem(http.StatusTooManyRequests, CodeTooMany, "%v", limit)
		p.RetryAfter = limit.Seconds()
		return p
	case errors.Is(err, settle.ErrBusy):
		return problem(http.StatusServiceUnavailable, CodeBusy, "the action is being verified elsewhere; try again")
	case errors.Is(err, settle.ErrDisagreement):
		return problem(http.StatusConflict, CodeParked, "%v", err)
	case errors.Is(err, ledger.ErrExpired):
		return problem(http.StatusConflict, CodeExpired, "%v", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return problem(http.StatusServiceUnavailable, CodeBusy, "the request took too long or was given up; try again")
	case errors.Is(err, ledger.ErrReadOnly):
		return problem(http.StatusServiceUnavailable, CodeUnavailable, "the store cannot be written; make its file and folder writable for the sidecar")
	case errors.Is(err, ledger.ErrUnavailable):
		return problem(http.StatusServiceUnavailable, CodeUnavailable, "the store cannot be reached or is busy; try again")
	case errors.Is(err, ledger.ErrNotMigrated), errors.Is(err, ledger.ErrNewerSchema):
		return problem(http.StatusServiceUnavailable, CodeUnavailable, "%v", err)
	}
	s.Logger.ErrorContext(ctx, "request failed", "error", err)
	return problem(http.StatusInternalServerError, CodeInternal, "something went wrong that the sidecar did not expect; its log tells more")
}

// view and update run f in a transaction and turn errors into problems.
func (s *Service) view(ctx context.Context, f func(ledger.Tx) error) error {
	if err := s.Ledger.View(ctx, f); err != nil {
		return s.asProblem(ctx, err)
	}
	return nil
}

func (s *Service) update(ctx context.Context, f func(ledger.Tx) error) error {
	if err := s.Ledger.Update(ctx, f); err != nil {
		return s.asProblem(ctx, err)
	}
	return nil
}

// find returns the action of a reference: an action id, or the internal id.
func find(ctx context.Context, tx ledger.Tx, tenant, ref string) (ledger.StoredAction, error) {
	actions, err := tx.Actions(ctx, tenant, []string{ref})
	if err != nil {
		return ledger.StoredAction{}, err
	}
	if len(actions) == 0 {
		return ledger.StoredAction{}, notFound("no action %q is recorded", clip(ref))
	}
	return actions[0], nil
}

// contractOf is the contract version that an action is pinned to.
func (s *Service) contractOf(ctx context.Context, tx ledger.Tx, a engine.Action) (*contract.Contract, error) {
	return s.Contracts.Get(ctx, tx, ledger.ContractRef{ID: a.ContractID, Version: a.ContractVersion})
}

// clip bounds hostile text that is repeated in an error.
func clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
