package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
	"github.com/countersign-otel/countersign/verifier/api"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/serve"
)

// TestExitCodes: what a script can tell apart.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, exitDone},
		{errAnswered, exitNo},
		{nof("no"), exitNo},
		{ledger.ErrNotFound, exitNo},
		{ledger.ErrImmutable, exitNo},
		{&api.Problem{Status: http.StatusNotFound}, exitNo},
		{usagef("wrong"), exitUsage},
		{engine.ErrAction, exitUsage},
		{engine.ErrFact, exitUsage},
		{engine.ErrInstant, exitUsage},
		{engine.ErrObject, exitUsage},
		{ledger.ErrUnknownContract, exitUsage},
		{ledger.ErrCycle, exitUsage},
		{keys.ErrRequest, exitUsage},
		{open.ErrURL, exitUsage},
		{serve.ErrConfig, exitUsage},
		{&api.Problem{Status: http.StatusUnprocessableEntity}, exitUsage},
		{&api.Problem{Status: http.StatusRequestEntityTooLarge}, exitUsage},
		{&api.Problem{Status: http.StatusUnauthorized}, exitCouldNot},
		{&api.Problem{Status: http.StatusConflict, Code: api.CodeConflict}, exitNo},
		{&api.Problem{Status: http.StatusConflict, Code: api.CodeParked}, exitCouldNot},
		{&api.Problem{Status: http.StatusConflict, Code: api.CodeExpired}, exitCouldNot},
		{&api.Problem{Status: http.StatusServiceUnavailable}, exitCouldNot},
		{ledger.ErrUnavailable, exitCouldNot},
		{ledger.ErrReadOnly, exitCouldNot},
		{ledger.ErrNotMigrated, exitCouldNot},
		{ledger.ErrNewerSchema, exitCouldNot},
		{context.Canceled, exitCouldNot},
		{errors.New("anything else"), exitCouldNot},
	} {
		for _, err := range []error{c.err, wrapped(c.err)} {
			if got := exitCode(err); got != c.code {
				t.Errorf("exit code of %v is %d, want %d", err, got, c.code)
			}
		}
	}
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("around: %w", err))
}
