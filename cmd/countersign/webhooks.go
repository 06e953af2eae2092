package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/api"
)

func newWebhooks(t *terminal) *cobra.Command {
	return group("webhooks", "Webhooks that were given up", newWebhooksDeadLetters(t), newWebhooksReplay(t))
}

func newWebhooksDeadLetters(t *terminal) *cobra.Command {
	var flags backendFlags
	var filter ledger.DeadLetterFilter
	cmd := &cobra.Command{
		Use:   "dead-letters",
		Short: "List webhooks that an endpoint did not take, the last ones first",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.with(cmd.Context(), func(b backend) error {
				list, err := b.DeadLetters(cmd.Context(), filter)
				if err != nil {
					return err
				}
				return printDeadLetters(t, list)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&filter.Endpoint, "endpoint", "", "those of this endpoint, by its name in the settings")
	cmd.Flags().StringVar(&filter.Cursor, "cursor", "", "next_cursor of the page before")
	cmd.Flags().IntVar(&filter.Limit, "limit", 50, "how many, 1 to 500")
	return inRange(cmd, "limit", &filter.Limit, 1, 500)
}

func printDeadLetters(t *terminal, list api.DeadLetterList) error {
	if t.json() {
		return t.printJSON(list)
	}
	if len(list.DeadLetters) == 0 {
		t.printf("no dead letters\n")
		return nil
	}
	b := table{head: []string{"ID", "ENDPOINT", "EVENT", "TYPE", "GIVEN UP", "ATTEMPTS", "ERROR"}}
	for _, d := range list.DeadLetters {
		b.add(printable(d.ID), printable(d.Endpoint), d.EventID, d.Type, d.GivenUpAt.String(), strconv.Itoa(d.Attempts), printable(d.Error))
	}
	t.print(b)
	if list.Next != nil {
		t.printf("%s\n", t.style.dim("more: --cursor "+*list.Next))
	}
	return nil
}

func newWebhooksReplay(t *terminal) *cobra.Command {
	var flags backendFlags
	cmd := &cobra.Command{
		Use:   "replay ID...",
		Short: "Send webhooks again, under the same ids",
		Long: `Makes webhooks due now, with all their attempts again, whether they were given up or
delivered. A running sidecar sends them.`,
		Args: atLeast(1, "one webhook id, like msg_..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(cmd.Context(), func(b backend) error {
				var failures []error
				for _, id := range args {
					replayed, err := b.Replay(cmd.Context(), id)
					switch {
					case err != nil:
						failures = append(failures, err)
					case t.json():
						failures = append(failures, t.printJSON(replayed))
					default:
						t.printf("%s is due\n", printable(replayed.ID))
					}
				}
				return errors.Join(failures...)
			})
		},
	}
	flags.add(cmd)
	return cmd
}
