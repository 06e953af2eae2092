package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/view"
)

// Record is POST /actions: it records one action, or updates a known one (AC
// "Idempotency"). Recording does not verify, unless the body says verify: auto
// (decision D15).
func (s *Service) Record(ctx context.Context, caller Caller, body []byte) (recorded view.Recorded, created bool, err error) {
	if err := caller.need(keys.Record); err != nil {
		return view.Recorded{}, false, err
	}
	now := s.Now()
	request, err := parseRecord(body, now)
	if err != nil {
		return view.Recorded{}, false, err
	}
	err = s.update(ctx, func(tx ledger.Tx) error {
		result, err := record(ctx, tx, caller.Tenant, request, now)
		if err != nil {
			return err
		}
		created = result.Created
		stored, err := find(ctx, tx, caller.Tenant, result.ClaimID)
		if err != nil {
			return err
		}
		recorded, err = view.RecordedOf(stored)
		return err
	})
	return recorded, created, err
}

func parseRecord(body []byte, now engine.Instant) (ledger.RecordRequest, error) {
	var faults []Fault
	o, err := parseBody(body, append([]string{"verify"}, actionMembers...), &faults)
	if err != nil {
		return ledger.RecordRequest{}, err
	}
	request := ledger.RecordRequest{Action: o.action(now), Untimed: !o.sent("requested_at")}
	switch raw := o.members["verify"]; {
	case !o.sent("verify"):
	case raw[0] == '"' && o.text("verify") == "auto":
		request.Verify = true
	case raw[0] == '"' && o.text("verify") == "":
	default:
		o.fail("verify", `is not known; send "auto" or leave it out`)
	}
	if len(faults) > 0 {
		return ledger.RecordRequest{}, invalid("the action cannot be recorded", faults...)
	}
	return request, nil
}

// record records one action and names the place of what is wrong with it.
func record(ctx context.Context, tx ledger.Tx, tenant string, request ledger.RecordRequest, now engine.Instant) (ledger.Recorded, error) {
	results, err := ledger.Record(ctx, tx, tenant, []ledger.RecordRequest{request}, now)
	if err != nil {
		return ledger.Recorded{}, err
	}
	err = results[0].Err
	switch {
	case err == nil && len(results[0].Conflicting) > 0:
		return ledger.Recorded{}, heldProblem(ctx, tx, tenant, results[0].Recorded)
	case err == nil:
		return results[0].Recorded, nil
	case errors.Is(err, ledger.ErrUnknownContract):
		p := problem(http.StatusUnprocessableEntity, CodeUnknownContract, "the action cannot be recorded")
		p.Errors = []Fault{at(unknownMember(request.Action), "%s", strings.TrimPrefix(err.Error(), "ledger: "))}
		return ledger.Recorded{}, p
	case errors.Is(err, ledger.ErrCycle):
		return ledger.Recorded{}, invalid("the action cannot be recorded", at("/compensates", "is a %s", err))
	case errors.Is(err, engine.ErrAction):
		return ledger.Recorded{}, invalid("the action cannot be recorded", Fault{Detail: err.Error()})
	}
	return ledger.Recorded{}, err
}

// heldProblem says of an action that its verdict has settled, and what of the
// request its contract does not let change any more. The request is refused as a whole.
func heldProblem(ctx context.Context, tx ledger.Tx, tenant string, recorded ledger.Recorded) error {
	run, err := settledRun(ctx, tx, tenant, recorded.ClaimID)
	if err != nil {
		return err
	}
	a := recorded.Action
	p := problem(http.StatusConflict, CodeConflict, "action %q settled as %s in %s, and its contract %s version %d has updates: until_settled, "+
		"so that what the verdict depends on stays as it was recorded; record a new action that compensates it, "+
		"or, for actions to come, publish a version of the contract without this key",
		clip(a.ActionID), run.Policy.Raw.Label(), run.ID, a.ContractID, a.ContractVersion)
	for _, field := range recorded.Conflicting {
		p.Errors = append(p.Errors, at("/"+field, "differs from what is recorded"))
	}
	return p
}

// settledRun is the latest run of an action that settled.
func settledRun(ctx context.Context, tx ledger.Tx, tenant, claimID string) (ledger.Run, error) {
	runs, err := tx.Runs(ctx, tenant, claimID)
	for _, run := range slices.Backward(runs) {
		if run.Status == ledger.Settled {
			return run, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%w: a settled run of action %s", ledger.ErrNotFound, claimID)
	}
	return ledger.Run{}, err
}

func unknownMember(a engine.Action) string {
	if a.ContractVersion != 0 {
		return "/contract_version"
	}
	return "/contract_id"
}

func joined(words []string) string { return strings.Join(words, ", ") }
