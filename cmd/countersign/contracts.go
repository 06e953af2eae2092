package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
	"github.com/countersign-otel/countersign/verifier/api"
)

func newContracts(t *terminal) *cobra.Command {
	return group("contracts", "Write, check and publish action contracts",
		newContractsValidate(t), newContractsExplain(t), newContractsTest(t), newContractsDiff(t),
		newContractsPublish(t), newContractsList(t), newContractsSchema(t), newContractsLint(t))
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
				known, err := publish(cmd.Context(), store, contracts)
				if err != nil {
					return fmt.Errorf("nothing was published: %w", err)
				}
				return printPublished(t, contracts, known)
			})
		},
	}
	flags.addStore(cmd, "sqlite:PATH or postgres://...; COUNTERSIGN_STORE (default "+open.Default+")")
	return cmd
}

// publish returns which of the versions the store knew already.
func publish(ctx context.Context, store ledger.Ledger, contracts []*contract.Contract) (map[ledger.ContractRef]bool, error) {
	refs := make([]ledger.ContractRef, len(contracts))
	for i, c := range contracts {
		refs[i] = ledger.ContractRef{ID: c.ID, Version: c.Version}
	}
	var known map[ledger.ContractRef]bool
	err := store.Update(ctx, func(tx ledger.Tx) error {
		documents, err := tx.ContractVersions(ctx, refs)
		if err != nil {
			return err
		}
		known = map[ledger.ContractRef]bool{} // anew: the store may run this twice
		for _, d := range documents {
			known[ledger.ContractRef{ID: d.ID, Version: d.Version}] = true
		}
		return tx.PublishContracts(ctx, contracts, now())
	})
	return known, err
}

func printPublished(t *terminal, contracts []*contract.Contract, known map[ledger.ContractRef]bool) error {
	published, unchanged := []contractView{}, []contractView{}
	for _, c := range contracts {
		v := contractView{ID: c.ID, Version: c.Version, Hash: c.Hash}
		word := "published"
		if known[ledger.ContractRef{ID: c.ID, Version: c.Version}] {
			word, unchanged = "unchanged", append(unchanged, v)
		} else {
			published = append(published, v)
		}
		if !t.json() {
			t.printf("%s %s version %d (%.12s)\n", word, v.ID, v.Version, v.Hash)
		}
	}
	if t.json() {
		return t.printJSON(map[string]any{"published": published, "unchanged": unchanged})
	}
	return nil
}

func newContractsList(t *terminal) *cobra.Command {
	var flags backendFlags
	cmd := &cobra.Command{
		Use:   "list [ID]",
		Short: "List published contracts",
		Long: `Lists the latest version of each contract that is published, or all versions of one. Contracts
belong to all tenants. With -o json the versions of one contract have their texts.`,
		Example: "  countersign contracts list\n  countersign contracts list refund_workflow --server http://localhost:8383",
		Args:    atMostOne("the id of one contract"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(cmd.Context(), func(b backend) error {
				list, err := b.Contracts(cmd.Context(), strings.Join(args, ""))
				if err != nil {
					return err
				}
				return printContracts(t, list)
			})
		},
	}
	flags.add(cmd)
	return cmd
}

func printContracts(t *terminal, list api.ContractList) error {
	if t.json() {
		return t.printJSON(list)
	}
	if len(list.Contracts) == 0 {
		t.printf("no contract is published; countersign contracts publish does it\n")
		return nil
	}
	b := table{head: []string{"CONTRACT", "VERSION", "HASH", "WINDOW", "PUBLISHED"}}
	for _, c := range list.Contracts {
		b.add(c.ID, strconv.Itoa(c.Version), c.Hash[:min(12, len(c.Hash))], cmp.Or(c.Window, "-"), c.PublishedAt.String())
	}
	t.print(b)
	return nil
}
