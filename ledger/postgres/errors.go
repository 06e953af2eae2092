package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-otel/countersign/ledger"
)

// SQLSTATE codes that are told apart one by one; classes are matched by their first two characters.
const (
	uniqueViolation      = "23505"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
)

// errOvertaken makes Update run again: another transaction wrote first what
// this one has just looked for.
var errOvertaken = errors.New("another writer was faster")

// errStored: a row holds what this program cannot have written.
var errStored = errors.New("stored data cannot be read")

// fail gives a driver's error the sentinel that callers know, and says what was being done.
func fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errStored) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: %s", ledger.ErrNotFound, doing)
	}
	if worded := connecting(err); worded != err { //nolint:errorlint // whether it is another one
		return fmt.Errorf("%w: %w", sentinel(err), worded) // what was being done says nothing then
	}
	return fmt.Errorf("%w: %s: %w", sentinel(err), doing, err)
}

// sentinel sorts by SQLSTATE. What the database refuses for a reason of its own
// and what no rule names is unavailable: nothing was stored, and nothing is lost by trying again.
func sentinel(err error) error {
	var database *pgconn.PgError
	if !errors.As(err, &database) {
		return ledger.ErrUnavailable
	}
	switch database.Code {
	case "25006", "42501": // read-only transaction or server, insufficient privilege
		return ledger.ErrReadOnly
	case "3F000", "42P01", "42703", "42883": // undefined schema, table, column, function
		return ledger.ErrNotMigrated
	case uniqueViolation:
		return ledger.ErrImmutable
	}
	switch database.Code[:min(2, len(database.Code))] {
	case "22", "23", "54": // data exception, integrity constraint violation, program limit exceeded
		return ledger.ErrData
	}
	return ledger.ErrUnavailable
}

// passing says that the same transaction may well succeed when it is run again.
func passing(err error) bool {
	if errors.Is(err, errOvertaken) {
		return true
	}
	var database *pgconn.PgError
	if !errors.As(err, &database) {
		return false
	}
	switch database.Code {
	case serializationFailure, deadlockDetected, lockNotAvailable:
		return true
	}
	return false
}

// lost says that the connection is of no use any more.
func lost(err error) bool {
	var database *pgconn.PgError
	if errors.As(err, &database) {
		return strings.HasPrefix(database.Code, "57P0") || strings.HasPrefix(database.Code, "08")
	}
	return true
}

func isUniqueViolation(err error) bool {
	var database *pgconn.PgError
	return errors.As(err, &database) && database.Code == uniqueViolation
}
