package sqlite

import (
	"context"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/countersign-otel/countersign/ledger"
)

// fail gives a driver's error the sentinel that callers know, and says what was
// being done, to which file, and what helps.
func (s *Store) fail(doing string, err error) error { return classify(s.path, doing, err) }

func classify(path, doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	remedy, sentinel := reason(err)
	if remedy == "" {
		return fmt.Errorf("%w: %s: %s: %w", sentinel, path, doing, err)
	}
	return fmt.Errorf("%w: %s: %s: %s (%w)", sentinel, path, doing, remedy, err)
}

// reason sorts by SQLite's primary result code. What no rule names is
// unavailable: nothing was stored, and nothing is lost by trying again.
func reason(err error) (remedy string, sentinel error) {
	if errors.Is(err, errImpatient) {
		return "they do not come to an end; let them finish, or stop one", ledger.ErrUnavailable
	}
	if errors.Is(err, errGone) {
		return "the file was removed or replaced while this program had it open; restart the program, to use what is there now", ledger.ErrUnavailable
	}
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return "another program holds the file's lock; let it finish, or stop it", ledger.ErrUnavailable
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return "let this user write the file and its folder, or choose another path", ledger.ErrReadOnly
	case sqlite3.SQLITE_CANTOPEN:
		return "the file or its -wal and -shm files beside it cannot be opened; check the path and that this user may write the folder", ledger.ErrUnavailable
	case sqlite3.SQLITE_FULL:
		return "the disk is full; make room, nothing that was acknowledged is lost", ledger.ErrUnavailable
	case sqlite3.SQLITE_IOERR:
		return "the disk failed to read or write; check its space and its health", ledger.ErrUnavailable
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return "the file is no SQLite database, or damaged; choose another path, or restore a copy", ledger.ErrUnavailable
	case sqlite3.SQLITE_CONSTRAINT:
		return "", ledger.ErrImmutable
	case sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH:
		return "", ledger.ErrData
	}
	return "", ledger.ErrUnavailable
}

// code is SQLite's primary result code; 0 for an error that is not SQLite's.
func code(err error) int {
	var driver *sqlite.Error
	if !errors.As(err, &driver) {
		return 0
	}
	return driver.Code() & 0xff
}

// passing says that the same transaction may well succeed when it is run again.
func passing(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return true
	}
	return errors.Is(err, errImpatient)
}
