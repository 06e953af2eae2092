package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/countersign-otel/countersign/ledger"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrationsTable is where goose notes what was applied; the migrations name it in their grants.
const migrationsTable = "countersign_migrations"

// Waiting for another process that migrates: once a second, for five minutes.
const (
	lockSeconds  = 1
	lockAttempts = 300
)

var newestApplied = named("NewestApplied")

// Migrate implements ledger.Ledger. Several processes may call it at once: a
// session's advisory lock lets one migrate while the others wait.
func (s *Store) Migrate(ctx context.Context) (err error) {
	// goose speaks database/sql; nothing else does.
	db := stdlib.OpenDB(*s.connectionConfig())
	defer func() { err = errors.Join(err, db.Close()) }()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockSeconds, lockAttempts), lock.WithUnlockTimeout(lockSeconds, lockAttempts))
	if err != nil {
		return err
	}
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(locker), goose.WithTableName(migrationsTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	if err := s.checkVersion(ctx); !errors.Is(err, ledger.ErrNotMigrated) {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fail("migrate", err)
	}
	return s.checkVersion(ctx)
}

// CheckSchema implements ledger.Ledger.
func (s *Store) CheckSchema(ctx context.Context) error { return s.checkVersion(ctx) }

// checkVersion compares the database's version with this program's.
func (s *Store) checkVersion(ctx context.Context) error {
	known, err := newestMigration()
	if err != nil {
		return err
	}
	var applied int64
	err = s.pool.QueryRow(ctx, newestApplied.Text).Scan(&applied)
	var database *pgconn.PgError
	switch {
	case errors.As(err, &database) && database.Code == "42P01": // no such table
		applied = 0
	case err != nil:
		return fail(newestApplied.Name, err)
	}
	switch {
	case applied > known:
		return fmt.Errorf("%w: the database is at version %d, this program knows %d; use a newer program", ledger.ErrNewerSchema, applied, known)
	case applied < known:
		return fmt.Errorf("%w: the database is at version %d, this program needs %d; run countersign migrate", ledger.ErrNotMigrated, applied, known)
	}
	return nil
}

// newestMigration is the number of the last file.
func newestMigration() (int64, error) {
	files, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return 0, err
	}
	newest := int64(0)
	for _, file := range files {
		version, err := goose.NumericComponent(file.Name())
		if err != nil {
			return 0, err
		}
		newest = max(newest, version)
	}
	return newest, nil
}
