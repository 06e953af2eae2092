package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
)

// memoryStore is gone at exit.
const memoryStore = "memory:"

// storeFlags are the flags of commands that work on a store directly.
type storeFlags struct {
	given  string
	tenant string
}

func (f *storeFlags) add(cmd *cobra.Command) {
	f.addStore(cmd, "sqlite:PATH, postgres://..., or memory: (gone at exit); COUNTERSIGN_STORE (default "+open.Default+")")
	cmd.Flags().StringVar(&f.tenant, "tenant", environment("COUNTERSIGN_TENANT", engine.DefaultTenant), "whose data; COUNTERSIGN_TENANT")
}

// addStore keeps the variable's value out of the help text: it may hold a password.
func (f *storeFlags) addStore(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&f.given, "store", "", usage)
}

func (f *storeFlags) url() string {
	if f.given != "" {
		return f.given
	}
	return environment("COUNTERSIGN_STORE", open.Default)
}

// openStore opens a store whose schema is current.
func openStore(ctx context.Context, url string) (ledger.Ledger, error) {
	if err := thereIs(url); err != nil {
		return nil, err
	}
	store, err := open.Ledger(ctx, url)
	if err != nil {
		return nil, err
	}
	if err = store.CheckSchema(ctx); err == nil {
		return store, nil
	}
	return nil, errors.Join(err, store.Close())
}

// thereIs keeps a command that only reads from leaving an empty database where
// somebody mistyped a path, or stood in another folder.
func thereIs(url string) error {
	path, ok := strings.CutPrefix(url, "sqlite:")
	if !ok || path == "" {
		return nil
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("there is no store %s; name another with --store, or make this one: countersign migrate --store %s%s", url, url, serverHint())
}

// serverHint is for those who named a sidecar and got the default store: what
// asks a sidecar never comes here.
func serverHint() string {
	if os.Getenv("COUNTERSIGN_SERVER") == "" {
		return ""
	}
	return "; COUNTERSIGN_SERVER is of no use here: this works on a store directly"
}

// withStore opens, works and closes.
func withStore(ctx context.Context, url string, work func(ledger.Ledger) error) error {
	store, err := openStore(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(work(store), store.Close())
}

// distributor is a store whose tables can be spread over several machines.
type distributor interface {
	Distribute(ctx context.Context) error
}

func newMigrate(t *terminal) *cobra.Command {
	var flags storeFlags
	var distribute bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring a store's schema up to date",
		Long: `Bring a store's schema up to date, forward only. Safe to run from several replicas at once.

With --distribute also spread the tables over the nodes of a Citus cluster, by tenant;
what is spread already stays as it is. See docs/ledger.md.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := open.Ledger(cmd.Context(), flags.url())
			if err != nil {
				return err
			}
			current := store.CheckSchema(cmd.Context()) == nil
			if err := errors.Join(migrate(cmd.Context(), store, distribute), store.Close()); err != nil {
				return err
			}
			return printMigrated(t, redactURL(flags.url()), current, distribute)
		},
	}
	flags.addStore(cmd, "sqlite:PATH or postgres://...; COUNTERSIGN_STORE (default "+open.Default+")")
	cmd.Flags().BoolVar(&distribute, "distribute", false, "spread the tables over the nodes of a Citus cluster, by tenant")
	return cmd
}

func migrate(ctx context.Context, store ledger.Ledger, distribute bool) error {
	spread, can := store.(distributor)
	if distribute && !can {
		return usagef("--distribute needs a postgres:// store: a %s store stays on one machine", store.Capabilities().Dialect)
	}
	if err := store.Migrate(ctx); err != nil {
		return err
	}
	if !distribute {
		return nil
	}
	return spread.Distribute(ctx)
}

// printMigrated says what was done; current is that there was nothing to do.
func printMigrated(t *terminal, store string, current, distributed bool) error {
	if t.json() {
		return t.printJSON(map[string]any{"store": store, "migrated": true, "distributed": distributed})
	}
	if current {
		t.printf("%s is up to date\n", store)
	} else {
		t.printf("%s is migrated to this program's schema\n", store)
	}
	if distributed {
		t.printf("its tables are distributed by tenant_id\n")
	}
	return nil
}
