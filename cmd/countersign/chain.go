package main

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func newLog(t *terminal) *cobra.Command {
	return group("log", "The chain of verdicts", newLogVerify(t))
}

type chainView struct {
	Tenant   string `json:"tenant"`
	OK       bool   `json:"ok"`
	Verified int64  `json:"verified"`
	// Facts is how many facts that verdicts name as evidence were read and hold.
	Facts int64 `json:"facts"`
	// Dropped is how many times a verdict names a fact that retention has dropped, and
	// DroppedReports how many runs have lost their report to it.
	Dropped        int64 `json:"dropped_by_retention,omitempty"`
	DroppedReports int64 `json:"reports_dropped_by_retention,omitempty"`
	// Horizon is that of retention: what is older may be dropped.
	Horizon *engine.Instant `json:"retention_horizon,omitempty"`
	// Head is the chain hash of the newest verdict; all zero for an empty chain.
	Head string `json:"head"`
	// RunHead is the hash of the newest run. It covers Head, and what reports say
	// and the facts contained that verdicts name.
	RunHead string `json:"run_head"`
	// RunsWithoutHash is how many runs are of programs that did not hash runs.
	RunsWithoutHash int64 `json:"runs_without_hash,omitempty"`
	// BrokenAt is the first sequence number that does not hold; 0 when all do.
	BrokenAt int64  `json:"broken_at,omitempty"`
	Problem  string `json:"problem,omitempty"`
}

func newLogVerify(t *terminal) *cobra.Command {
	var flags storeFlags
	var head string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Re-read the chain and what it rests on",
		Long: `Reads every verdict of the tenant from the store and names the first sequence number
that does not hold:

  - the hash of the verdict's document and the chain hash that follows from its predecessor;
  - what the row says beside the document: lens, verdict, reasons, action;
  - its run: that there is one for each two verdicts and no other, under the same action and
    contract, that its report names the same checks and the same evidence, and the hash of
    the run that follows from its predecessor;
  - the contract version, by its content;
  - every fact that it names as evidence: that it is there and that its content is the one
    that was ingested and judged. What retention dropped is counted and breaks nothing;
  - the actions: that lists and counts show the verdict of the newest run;
  - the end: nothing behind the head, nothing missing before it.

Give --head the head or the run head that you noted at an earlier time to see that the
chain of today still contains it. The run head covers more: the chain, what reports say,
and what the facts contained. Without one, a person who can rewrite the whole store can
rewrite the whole chain.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !isHead(head) {
				return usagef("--head: %q is no hash of 64 lowercase hex digits, as log verify prints it", head)
			}
			return withStore(cmd.Context(), flags.url(), func(store ledger.Ledger) error {
				view, err := verifyChain(cmd.Context(), t, store, flags.tenant, head)
				if err != nil {
					return err
				}
				return printChain(t, view)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&head, "head", "", "a head or run head (64 hex digits) that has to stand in the chain")
	return cmd
}

// isHead: a mistyped head is no news about the chain. None given is none wanted.
func isHead(text string) bool {
	raw, err := hex.DecodeString(text)
	return text == "" || (err == nil && len(raw) == 32 && text == hex.EncodeToString(raw))
}

// chainPage is how many verdicts are read at once. It is even, so that the two
// verdicts of a run stand in one page.
const chainPage = 1000

// verifyChain reads page by page: the chain is append-only, so that what was
// read stays as it was. The head is read first; what is appended meanwhile is
// not looked at.
func verifyChain(ctx context.Context, t *terminal, store ledger.Ledger, tenant, wanted string) (chainView, error) {
	view := chainView{Tenant: tenant}
	end, err := readEnd(ctx, store, tenant)
	if err != nil {
		return view, err
	}
	bar := t.progress("verdicts", end.Seq)
	defer bar.done()
	c := newChainCheck(tenant)
	seen := wanted == "" || c.at(wanted)
	for view.Verified < end.Seq {
		page, err := c.read(ctx, store, view.Verified, int(min(chainPage, end.Seq-view.Verified)))
		if err != nil {
			return view, err
		}
		if len(page.verdicts) == 0 {
			return broken(view, view.Verified+1, fmt.Sprintf("is missing; the head says that there are %d", end.Seq)), nil
		}
		for _, entry := range page.verdicts {
			if problem := c.check(page, entry, view.Verified+1, &view); problem != "" {
				return broken(view, view.Verified+1, problem), nil
			}
			seen = seen || c.at(wanted)
			view.Verified++
		}
		bar.at(view.Verified)
	}
	view.Head, view.RunHead = hex.EncodeToString(c.running[:]), hex.EncodeToString(c.runs[:])
	switch {
	case c.running != end.Hash:
		return broken(view, end.Seq, fmt.Sprintf("has the chain hash %s, the head says %x", view.Head, end.Hash)), nil
	case end.beyond != 0:
		return broken(view, end.beyond, fmt.Sprintf("stands behind the head, which says that there are %d: it was put in, or the head was set back", end.Seq)), nil
	case c.runs != end.RunHash:
		return broken(view, end.Seq, fmt.Sprintf("has a run with the hash %s, the head says %x", view.RunHead, end.RunHash)), nil
	}
	misleading, err := checkLatest(ctx, store, tenant)
	switch {
	case err != nil:
		return view, err
	case misleading != 0:
		return broken(view, misleading, "belongs to the newest run of an action that is listed with another verdict or status"), nil
	case !seen:
		return broken(view, 0, fmt.Sprintf("the chain does not contain %s: it is not the chain that had this head", printable(wanted))), nil
	}
	view.OK = true
	return view, nil
}

// checkLatest compares what lists and counts show with the newest runs. It
// returns the first run that is not shown as it is, or 0.
func checkLatest(ctx context.Context, store ledger.Ledger, tenant string) (brokenAt int64, err error) {
	after := ""
	for {
		var page ledger.LatestCheck
		if err := store.View(ctx, func(tx ledger.Tx) (err error) {
			page, err = tx.CheckLatest(ctx, tenant, after, chainPage)
			return err
		}); err != nil {
			return 0, err
		}
		if page.BrokenAt != 0 && (brokenAt == 0 || page.BrokenAt < brokenAt) {
			brokenAt = page.BrokenAt
		}
		if page.Actions < chainPage {
			return brokenAt, nil
		}
		after = page.Last
	}
}

// chainEnd is where the chain ends, read at one moment.
type chainEnd struct {
	ledger.ChainHead
	// beyond is the first verdict or run behind the head; 0 for none.
	beyond int64
}

func readEnd(ctx context.Context, store ledger.Ledger, tenant string) (end chainEnd, err error) {
	err = store.View(ctx, func(tx ledger.Tx) error {
		end = chainEnd{}
		var err error
		if end.ChainHead, err = tx.ChainHead(ctx, tenant); err != nil {
			return err
		}
		verdicts, err := tx.ReadChain(ctx, tenant, end.Seq, 1)
		if err != nil {
			return err
		}
		runs, err := tx.ChainRuns(ctx, tenant, end.Seq, 1)
		if err != nil {
			return err
		}
		if len(verdicts) > 0 {
			end.beyond = verdicts[0].Seq
		}
		if len(runs) > 0 && (end.beyond == 0 || runs[0].Seq < end.beyond) {
			end.beyond = runs[0].Seq
		}
		return nil
	})
	return end, err
}

func broken(view chainView, seq int64, problem string) chainView {
	view.OK, view.BrokenAt, view.Problem = false, seq, problem
	return view
}

func printChain(t *terminal, view chainView) error {
	if t.json() {
		if err := t.printJSON(view); err != nil {
			return err
		}
	} else {
		printChainText(t, view)
	}
	if !view.OK {
		return errAnswered
	}
	return nil
}

func printChainText(t *terminal, view chainView) {
	switch {
	case view.OK && view.Verified == 0:
		t.printf("%s tenant %s has no verdict in this store; is that the tenant, and the store?\n", t.style.yellow("nothing to verify:"), printable(view.Tenant))
	case view.OK:
		t.printf("%s %s of tenant %s on %s, head %s, run head %s\n", t.style.green("intact:"), plural(int(view.Verified), "verdict"), printable(view.Tenant), plural(int(view.Facts), "fact"), view.Head, view.RunHead)
		if view.RunsWithoutHash > 0 {
			t.printf("%s of an earlier version, whose reports and facts are not covered by a hash of the run\n", plural(int(view.RunsWithoutHash), "run"))
		}
		if view.Dropped > 0 || view.DroppedReports > 0 {
			t.printf("dropped by retention, older than %s: %s that verdicts name, %s\n", view.Horizon, plural(int(view.Dropped), "fact"), plural(int(view.DroppedReports), "report"))
		}
	case view.BrokenAt == 0:
		t.printf("%s %s\n", t.style.red("broken:"), view.Problem)
	default:
		t.printf("%s the verdict with sequence number %d of tenant %s %s\n", t.style.red("broken:"), view.BrokenAt, printable(view.Tenant), view.Problem)
		t.printf("the %d before it hold\n", view.Verified)
	}
}
