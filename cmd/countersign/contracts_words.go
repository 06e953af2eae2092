package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"github.com/countersign-otel/countersign/ledger"
)

func newContractsExplain(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "explain FILE...",
		Short: "Say in plain language what a contract demands",
		Args:  atLeast(1, "contract files"),
		RunE: func(_ *cobra.Command, args []string) error {
			contracts, err := loadContracts(t, args)
			if err != nil {
				return err
			}
			return printExplained(t, contracts)
		},
	}
}

func printExplained(t *terminal, contracts []*contract.Contract) error {
	type explained struct {
		contractView
		Text string `json:"text"`
	}
	views := make([]explained, len(contracts))
	for i, c := range contracts {
		views[i] = explained{contractView{ID: c.ID, Version: c.Version, Hash: c.Hash}, contract.Explain(c)}
	}
	if t.json() {
		return t.printJSON(map[string]any{"contracts": views})
	}
	for i, v := range views {
		if i > 0 {
			t.printf("\n%s\n\n", "---")
		}
		t.printf("%s", v.Text)
	}
	return nil
}

func newContractsSchema(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the contract language, for editors",
		Long: `Prints the JSON Schema (draft 2020-12) of the contract language. For completion and checks in
an editor with a YAML language server, write it to a file and begin a contract with
# yaml-language-server: $schema=contract.schema.json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := t.stdout.Write(contract.Schema())
			return err
		},
	}
}

func newContractsLint(t *terminal) *cobra.Command {
	var flags storeFlags
	cmd := &cobra.Command{
		Use:   "lint PATH...",
		Short: "Name what is legal but suspicious",
		Long: `Names what a contract may say and probably does not mean: checks that can never fire or never
hold, checks that contradict or repeat each other, gaps through which a wrong verdict could
come. With --store it also names sources that nobody provides, and windows shorter than a
source's lag. Exit code 1 when there is something to name.`,
		Args: atLeast(1, "files or folders with contracts"),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := contractFiles(args)
			if err != nil {
				return err
			}
			var providers contract.Providers
			if cmd.Flags().Changed("store") {
				if providers, err = providersOf(cmd.Context(), flags.url(), flags.tenant); err != nil {
					return err
				}
			}
			return lint(t, files, providers)
		},
	}
	flags.add(cmd)
	cmd.Flags().Lookup("store").Usage = "look up sources in this store: sqlite:PATH or postgres://..."
	return cmd
}

func lint(t *terminal, files []contract.File, providers contract.Providers) error {
	found := []diagnostic.Diagnostic{}
	for _, file := range files {
		c, diagnostics := contract.Parse(file.Name, file.Document)
		found = append(found, diagnostics...)
		if c != nil {
			found = append(found, contract.Lint(file.Name, c, providers)...)
		}
	}
	if t.json() {
		if err := t.printJSON(map[string]any{"clean": len(found) == 0, "files": len(files), "findings": found}); err != nil {
			return err
		}
	} else {
		for _, d := range found {
			t.printf("%s\n", printable(d.Error()))
		}
	}
	if len(found) > 0 {
		return nof("%s in %s", plural(len(found), "finding"), plural(len(files), "file"))
	}
	if !t.json() {
		t.printf("nothing suspicious in %s\n", plural(len(files), "file"))
	}
	return nil
}

// providersOf are the sources of a store, with how far behind each is now.
func providersOf(ctx context.Context, url, tenant string) (contract.Providers, error) {
	providers := contract.Providers{}
	err := withStore(ctx, url, func(store ledger.Ledger) error {
		return store.View(ctx, func(tx ledger.Tx) error {
			connections, err := tx.Connections(ctx, tenant)
			if err != nil {
				return fmt.Errorf("sources of tenant %q: %w", tenant, err)
			}
			at := now()
			for name, source := range engine.Sources(connections, nil) {
				providers[name] = lag(source, at)
			}
			return nil
		})
	})
	return providers, err
}

// lag is 0 where it is not known.
func lag(source engine.Source, at engine.Instant) engine.Duration {
	if source.Watermark == nil || *source.Watermark >= at {
		return 0
	}
	return engine.Duration(at - *source.Watermark)
}
