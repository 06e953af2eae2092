package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"

	"github.com/pressly/goose/v3"

	"github.com/countersign-otel/countersign/ledger"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrationsTable is where goose notes what it applied.
const migrationsTable = "countersign_migrations"

// migrateRetries bounds how often Migrate starts again beside other processes.
const migrateRetries = 20

// Migrate implements ledger.Ledger. Each migration is one transaction that
// takes the write lock first and notes its version in it, so of two processes
// that start at once one applies it, and the other one fails, starts again and
// finds it applied.
func (s *Store) Migrate(ctx context.Context) error {
	pause := firstPause
	for tries := 1; ; tries++ {
		err := s.migrateOnce(ctx)
		if err == nil || errors.Is(err, ledger.ErrNewerSchema) || errors.Is(err, ledger.ErrReadOnly) || tries > migrateRetries {
			return err
		}
		if err := rest(ctx, pause/2+rand.N(pause)); err != nil {
			return err
		}
		pause = min(2*pause, longPause)
	}
}

func (s *Store) migrateOnce(ctx context.Context) (err error) {
	if err := s.CheckSchema(ctx); err == nil || errors.Is(err, ledger.ErrNewerSchema) {
		return err
	}
	database, err := sql.Open("sqlite", s.dsn+"&_txlock=immediate")
	if err != nil {
		return s.fail("migrate", err)
	}
	database.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, s.fail("migrate", database.Close())) }()
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, database, files, goose.WithTableName(migrationsTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return s.fail("migrate", err)
	}
	_, err = provider.Up(ctx)
	return s.fail("migrate", err)
}

// CheckSchema implements ledger.Ledger.
func (s *Store) CheckSchema(ctx context.Context) error {
	newest, err := newestMigration()
	if err != nil {
		return err
	}
	if err := s.inPlace(); err != nil {
		return s.fail("check", err)
	}
	var applied int64
	err = s.View(ctx, func(t ledger.Tx) error {
		applied, err = t.(*tx).schemaVersion(ctx)
		return err
	})
	switch {
	case err != nil:
		return err
	case applied < newest:
		return fmt.Errorf("%w: %s has schema version %d, this program needs %d; run countersign migrate", ledger.ErrNotMigrated, s.path, applied, newest)
	case applied > newest:
		return fmt.Errorf("%w: %s has schema version %d, this program knows %d; use the program that migrated it, or a newer one", ledger.ErrNewerSchema, s.path, applied, newest)
	}
	return nil
}

var (
	countMigrationTables = fixed.Named("CountMigrationTables")
	newestApplied        = fixed.Named("NewestApplied")
)

func (t *tx) schemaVersion(ctx context.Context) (int64, error) {
	tables, err := one(ctx, t, countMigrationTables, column[int64])
	if err != nil || tables == 0 {
		return 0, err
	}
	return one(ctx, t, newestApplied, column[int64])
}

// newestMigration is the version of the last embedded migration.
func newestMigration() (int64, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return 0, err
	}
	var newest int64
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, err
		}
		newest = max(newest, version)
	}
	return newest, nil
}
