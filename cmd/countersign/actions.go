package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/api"
	"github.com/countersign-otel/countersign/verifier/view"
)

func newActions(t *terminal) *cobra.Command {
	return group("actions", "Record, verify and read actions",
		newActionsRecord(t), newActionsVerify(t), newActionsGet(t), newActionsList(t), newActionsWait(t), newActionsSummary(t))
}

func newActionsRecord(t *terminal) *cobra.Command {
	var flags backendFlags
	var file string
	cmd := &cobra.Command{
		Use:   "record --file body.json",
		Short: "Record one action, as POST /v1/actions does",
		Long: `Records one action, or updates a known one. Recording does not verify, unless the body
says "verify": "auto".`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			body, err := readBody(t, file)
			if err != nil {
				return err
			}
			return flags.with(cmd.Context(), func(b backend) error {
				recorded, created, err := b.Record(cmd.Context(), body)
				if err != nil {
					return err
				}
				return printRecorded(t, recorded, created)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&file, "file", "", "the body of POST /v1/actions; - reads standard input")
	return required(cmd, "file")
}

func printRecorded(t *terminal, recorded view.Recorded, created bool) error {
	if t.json() {
		return t.printJSON(map[string]any{"action": recorded, "created": created})
	}
	word := "updated"
	if created {
		word = "recorded"
	}
	t.printf("%s %s under %s version %d\n", word, printable(recorded.ActionID), recorded.ContractID, recorded.ContractVersion)
	return nil
}

func newActionsGet(t *terminal) *cobra.Command {
	var flags backendFlags
	cmd := &cobra.Command{
		Use:   "get REF",
		Short: "Show an action with its latest verification",
		Args:  exactly(1, "one action id, or internal id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.with(cmd.Context(), func(b backend) error {
				shown, err := b.Get(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return printVerification(t, shown, shown)
			})
		},
	}
	flags.add(cmd)
	return cmd
}

func newActionsList(t *terminal) *cobra.Command {
	var flags backendFlags
	var filters filterFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List actions with their latest verdicts, newest first",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := filters.resolve(now())
			if err != nil {
				return err
			}
			filter.Verdict = strings.ToUpper(filter.Verdict)
			if words := verdictWords(); filter.Verdict != "" && !slices.Contains(words, filter.Verdict) {
				return usagef("--verdict: %q is not known; write one of %s", filters.filter.Verdict, strings.Join(words, ", "))
			}
			return flags.with(cmd.Context(), func(b backend) error {
				page, err := b.List(cmd.Context(), filter)
				if err != nil {
					return err
				}
				return printPage(t, page)
			})
		},
	}
	flags.add(cmd)
	filters.add(cmd)
	cmd.Flags().StringVar(&filters.filter.Verdict, "verdict", "", strings.Join(verdictWords(), ", ")+": policy verdict of the latest verification")
	cmd.Flags().IntVar(&filters.filter.Limit, "limit", 50, "how many, 1 to 500")
	cmd.Flags().StringVar(&filters.filter.Cursor, "cursor", "", "next_cursor of the page before")
	return inRange(cmd, "limit", &filters.filter.Limit, 1, 500)
}

// inRange checks a number before the command runs.
func inRange(cmd *cobra.Command, flag string, value *int, least, most int) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *value < least || *value > most {
			return usagef("--%s: %d is not from %d to %d", flag, *value, least, most)
		}
		return run(cmd, args)
	}
	return cmd
}

func verdictWords() []string { return []string{"PASS", "FAIL", "UNKNOWN", "PENDING", "COMPENSATED"} }

func printPage(t *terminal, page api.Page) error {
	if t.json() {
		return t.printJSON(page)
	}
	b := table{head: []string{"ACTION", "SUBJECT", "REQUESTED", "OUTCOME", "POLICY", "HEADLINE"}}
	for _, row := range page.Actions {
		b.add(printable(row.Action.ActionID), printable(row.Action.SubjectID), row.Action.RequestedAt.String(),
			word(row.Status, row.Outcome), word(row.Status, row.Policy), printable(row.Summary.Headline))
	}
	t.print(b)
	if len(page.Actions) == 0 {
		fmt.Fprintln(t.stderr, "no recorded action matches")
	}
	if page.Next != nil {
		t.printf("%s\n", t.style.dim("more: --cursor "+*page.Next))
	}
	return nil
}

// word is a verdict for people: what is provisional is not shown as a verdict.
func word(status string, lens *view.Lens) string {
	switch {
	case lens == nil:
		return "-"
	case status == ledger.Pending:
		return "PENDING"
	}
	return lens.Verdict
}

func newActionsWait(t *terminal) *cobra.Command {
	var flags backendFlags
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait REF",
		Short: "Wait until the verdict settles",
		Long: `Waits until the action's verdict is settled, or the timeout passes. Exit code 0 only when the
verdict settled and is PASS under both lenses: a script may say "done" then, and not else.
On a store (--store) this process settles what is due meanwhile; with --server the sidecar does.`,
		Args: exactly(1, "one action id, or internal id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return usagef("--timeout: %s is negative", timeout)
			}
			return flags.with(cmd.Context(), func(b backend) error {
				waited, err := waitFor(cmd.Context(), b, args[0], timeout)
				if err != nil {
					return err
				}
				if err := printVerification(t, waited.Verification, waited); err != nil {
					return err
				}
				return answer(waited.Verification)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait, like 90s or 20m")
	return cmd
}

// waitFor makes one long wait of several: one call waits 60 seconds at most.
func waitFor(ctx context.Context, b backend, ref string, timeout time.Duration) (api.Waited, error) {
	began := time.Now()
	for {
		left := timeout - time.Since(began)
		waited, err := b.Wait(ctx, ref, max(min(left, api.MaxWait), 0))
		if err != nil || !waited.TimedOut || time.Since(began) >= timeout {
			waited.WaitedSeconds = time.Since(began).Round(time.Millisecond).Seconds()
			return waited, err
		}
	}
}

// answer is yes (nil) only for a settled PASS under both lenses.
func answer(v view.Verification) error {
	if v.Status == ledger.Settled && v.Outcome.Verdict == "PASS" && v.Policy.Verdict == "PASS" {
		return nil
	}
	return errAnswered
}

func newActionsSummary(t *terminal) *cobra.Command {
	var flags backendFlags
	var filters filterFlags
	cmd := &cobra.Command{
		Use:   "summary",
		Short: "Count actions by the policy verdict of their latest verification",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := filters.resolve(now())
			if err != nil {
				return err
			}
			return flags.with(cmd.Context(), func(b backend) error {
				s, err := b.Summary(cmd.Context(), filter)
				if err != nil {
					return err
				}
				return printSummary(t, s)
			})
		},
	}
	flags.add(cmd)
	filters.add(cmd)
	return cmd
}

func printSummary(t *terminal, s api.Counts) error {
	if t.json() {
		return t.printJSON(s)
	}
	for _, line := range []struct {
		word  string
		count int
	}{
		{"PASS", s.Pass}, {"FAIL", s.Fail}, {"UNKNOWN", s.Unknown}, {"not verified", s.Unverified}, {"total", s.Total},
		{"of these PENDING, counted above by their verdict so far", s.Pending}, {"of these COMPENSATED", s.Compensated},
	} {
		t.printf("%7d  %s\n", line.count, t.style.verdict(line.word))
	}
	return nil
}
