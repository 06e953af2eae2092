package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
	"github.com/countersign-otel/countersign/verifier/api"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/serve"
)

// Exit codes.
const (
	exitDone     = 0
	exitNo       = 1
	exitUsage    = 2
	exitCouldNot = 3
)

// noAnswer is a command that did its work and whose answer is no: an invalid
// contract, a verdict that is no PASS, a chain that was changed. Without a
// text the command has printed the answer already.
type noAnswer struct{ text string }

func (e *noAnswer) Error() string { return e.text }

var errAnswered = &noAnswer{}

func nof(format string, args ...any) error { return &noAnswer{fmt.Sprintf(format, args...)} }

// usageError is a command line, a file or a body that cannot be acted on as it stands.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// exitCode is the one place that maps errors to exit codes.
func exitCode(err error) int {
	var no *noAnswer
	var usage *usageError
	var problem *api.Problem
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &no):
		return exitNo
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &problem):
		return problemCode(problem)
	case isAny(err, ledger.ErrNotFound, ledger.ErrImmutable):
		return exitNo
	case isAny(err, refusals...):
		return exitUsage
	}
	return exitCouldNot
}

// refusals are what the domain does not take: the caller has to change it.
var refusals = []error{
	engine.ErrAction, engine.ErrFact, engine.ErrInstant, engine.ErrObject, engine.ErrTrust, engine.ErrDuration,
	ledger.ErrUnknownContract, ledger.ErrCycle, ledger.ErrSetting, keys.ErrRequest, open.ErrURL, serve.ErrConfig,
}

func isAny(err error, any ...error) bool {
	for _, one := range any {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// problemCode is for what the API answers: not found, and a conflict with what is
// recorded, is a no; a body that it does not take is the caller's; everything else,
// such as an action that is parked, could not be done.
func problemCode(p *api.Problem) int {
	if p.Code == api.CodeConflict {
		return exitNo
	}
	switch p.Status {
	case http.StatusNotFound:
		return exitNo
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return exitUsage
	}
	return exitCouldNot
}
