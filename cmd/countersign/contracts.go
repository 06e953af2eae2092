package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
)

func newContracts(t *terminal) *cobra.Command {
	return group("contracts", "Write, check and publish action contracts",
		newContractsValidate(t), newContractsExplain(t), newContractsTest(t), newContractsDiff(t),
		newContractsPublish(t), newContractsSchema(t), newContractsLint(t))
}

type contractView struct {
	File    string `json:"file,omitempty"`
	ID      string `json:"id"`
	Version int    `json:"version"`
	Hash    string `json:"hash"`
}

func newContractsValidate(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "validate PATH...",
		Short: "Report every error of every contract, with its place",
		Long: `Reads contracts from files and folders and reports every error of all of them as
file:line:col: what is wrong; what is allowed; did you mean. Exit code 1 when there is one.`,
		Args: atLeast(1, "files or folders with contracts"),
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := contractFiles(args)
			if err != nil {
				return err
			}
			contracts, diagnostics := contract.ParseAll(files...)
			return printValidation(t, len(files), contracts, diagnostics)
		},
	}
}

func printValidation(t *terminal, files int, contracts []*contract.Contract, diagnostics []diagnostic.Diagnostic) error {
	if t.json() {
		views := make([]contractView, len(contracts))
		for i, c := range contracts {
			views[i] = contractView{ID: c.ID, Version: c.Version, Hash: c.Hash}
		}
		if diagnostics == nil {
			diagnostics = []diagnostic.Diagnostic{}
		}
		err := t.printJSON(map[string]any{"valid": len(diagnostics) == 0, "files": files, "contracts": views, "errors": diagnostics})
		if err != nil {
			return err
		}
	} else {
		for _, d := range diagnostics {
			t.printf("%s\n", printable(d.Error()))
		}
		for _, c := range contracts {
			t.printf("%s %s version %d (%.12s)\n", t.style.green("valid"), c.ID, c.Version, c.Hash)
		}
	}
	if len(diagnostics) > 0 {
		return nof("%s", invalidText(diagnostics))
	}
	return nil
}

func newContractsPublish(t *terminal) *cobra.Command {
	var flags storeFlags
	cmd := &cobra.Command{
		Use:   "publish PATH...",
		Short: "Make contract versions known to a store",
		Long: `Makes the versions in files and folders known to a store. A version never changes: the
same content again is no change, other content under a known id and version is refused,
and then nothing is published.`,
		Args: atLeast(1, "files or folders with contracts"),
		RunE: func(cmd *cobra.Command, args []string) error {
			contracts, err := loadContracts(t, args)
			if err != nil {
				return err
			}
			return withStore(cmd.Context(), flags.url(), func(store ledger.Ledger) error {
				err := store.Update(cmd.Context(), func(tx ledger.Tx) error {
					return tx.PublishContracts(cmd.Context(), contracts, now())
				})
				if err != nil {
					return fmt.Errorf("nothing was published: %w", err)
				}
				return printPublished(t, contracts)
			})
		},
	}
	flags.addStore(cmd, "sqlite:PATH or postgres://...; COUNTERSIGN_STORE (default "+open.Default+")")
	return cmd
}

func printPublished(t *terminal, contracts []*contract.Contract) error {
	views := make([]contractView, len(contracts))
	for i, c := range contracts {
		views[i] = contractView{ID: c.ID, Version: c.Version, Hash: c.Hash}
	}
	if t.json() {
		return t.printJSON(map[string]any{"published": views})
	}
	for _, v := range views {
		t.printf("published %s version %d (%.12s)\n", v.ID, v.Version, v.Hash)
	}
	return nil
}
