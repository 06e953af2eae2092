package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/api"
)

func newKeysAudit(t *terminal) *cobra.Command {
	var flags backendFlags
	var filter ledger.KeyEventFilter
	var since, until string
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show what was done to keys, and with them",
		Long: `Lists when keys were made, rotated and revoked, and how they were used: from which address, at which
endpoint, how often on each day, and what was refused. Uses stand here ten seconds after they happened at the
latest. Keys that nobody knows belong to no tenant: those are in the sidecar's log.`,
		Example: "  countersign keys audit --kind refused --since 7d",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			filter.Kind = engine.Fold(filter.Kind)
			if filter.Kind != "" && !slices.Contains(ledger.KeyEventKinds(), filter.Kind) {
				return usagef("--kind: %q is none of %s", filter.Kind, strings.Join(ledger.KeyEventKinds(), ", "))
			}
			if filter.Since, err = moment("--since", since, now()); err != nil {
				return err
			}
			if filter.Until, err = moment("--until", until, now()); err != nil {
				return err
			}
			return flags.with(cmd.Context(), func(b backend) error {
				list, err := b.KeyEvents(cmd.Context(), filter)
				if err != nil {
					return err
				}
				return printKeyEvents(t, list)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&filter.Key, "key", "", "of this key: its id, or the visible start of its secret")
	cmd.Flags().StringVar(&filter.Kind, "kind", "", strings.Join(ledger.KeyEventKinds(), ", "))
	cmd.Flags().StringVar(&since, "since", "", "happened at or after: RFC 3339, or how long ago, like 7d")
	cmd.Flags().StringVar(&until, "until", "", "happened before: RFC 3339, or how long ago")
	cmd.Flags().StringVar(&filter.Cursor, "cursor", "", "next_cursor of the page before")
	cmd.Flags().IntVar(&filter.Limit, "limit", 50, "how many, 1 to 500")
	return inRange(cmd, "limit", &filter.Limit, 1, 500)
}

func printKeyEvents(t *terminal, list api.KeyEventList) error {
	if t.json() {
		return t.printJSON(list)
	}
	if len(list.Events) == 0 {
		t.printf("nothing happened\n")
		return nil
	}
	b := table{head: []string{"FIRST", "LAST", "TIMES", "WHAT", "KEY", "STARTS WITH", "ENDPOINT", "ANSWER", "FROM", "DETAIL"}}
	for _, e := range list.Events {
		b.add(e.FirstAt.String(), e.LastAt.String(), strconv.Itoa(e.Times), e.Kind, printable(e.KeyID), printable(e.Prefix),
			orDash(e.Route), orDash(e.Status), orDash(e.Remote), orDash(printable(e.Detail)))
	}
	t.print(b)
	if list.Next != nil {
		t.printf("%s\n", t.style.dim("more: --cursor "+*list.Next))
	}
	return nil
}
