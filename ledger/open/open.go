// Package open opens a store by its URL.
package open

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/postgres"
	"github.com/countersign-otel/countersign/ledger/sqlite"
)

// ErrURL is wrapped by every error about a store URL that cannot be read.
var ErrURL = errors.New("invalid store URL")

// Default is the store that is used where none is named.
const Default = "sqlite:countersign.db"

// Ledger opens the store of a URL: sqlite:PATH, memory: (a private store that
// is migrated already and gone when it is closed), or postgres://... It does
// not migrate the others. Errors never repeat a password.
func Ledger(ctx context.Context, url string) (ledger.Ledger, error) {
	scheme, rest, ok := strings.Cut(url, ":")
	if !ok {
		return nil, fmt.Errorf("%w: it has no scheme; write sqlite:PATH, memory: or postgres://USER@HOST/DATABASE", ErrURL)
	}
	switch scheme {
	case "sqlite":
		return openSQLite(ctx, rest)
	case "memory":
		return openMemory(ctx, rest)
	case "postgres", "postgresql":
		return openPostgres(ctx, url)
	}
	return nil, fmt.Errorf("%w: scheme %q is not known; write sqlite:PATH, memory: or postgres://USER@HOST/DATABASE", ErrURL, scheme)
}

// openSQLite also takes the slashes of sqlite:///absolute/path.
func openSQLite(ctx context.Context, path string) (ledger.Ledger, error) {
	if absolute, ok := strings.CutPrefix(path, "//"); ok && strings.HasPrefix(absolute, "/") {
		path = absolute
	}
	if path == "" {
		return nil, fmt.Errorf("%w: sqlite: names no file; write sqlite:PATH, like %s", ErrURL, Default)
	}
	return sqlite.Open(ctx, path)
}

func openMemory(ctx context.Context, rest string) (ledger.Ledger, error) {
	if rest != "" {
		return nil, fmt.Errorf("%w: memory: takes nothing after it", ErrURL)
	}
	store, err := sqlite.OpenMemory(ctx)
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(ctx); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

func openPostgres(ctx context.Context, url string) (ledger.Ledger, error) {
	return postgres.Open(ctx, url)
}
