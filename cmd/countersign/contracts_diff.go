package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/contract/contracttest"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
)

func newContractsDiff(t *terminal) *cobra.Command {
	var flags storeFlags
	var since string
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Replay stored actions under another version and show whose verdict would change",
		Long: `Takes the actions that a store recorded under OLD (its id and version), evaluates each under
OLD and under NEW on the facts as they are now, and shows those whose verdict differs, each
as soon as it is found. Nothing is stored. OLD and NEW are contract files of one id.`,
		Example: "  countersign contracts diff contracts/refund_workflow.yaml edited.yaml --store sqlite:countersign.db --since 30d",
		Args:    exactly(2, "two contract files, OLD and NEW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := moment("--since", since, now())
			if err != nil {
				return err
			}
			versions, err := loadPair(t, args[0], args[1])
			if err != nil {
				return err
			}
			return withStore(cmd.Context(), flags.url(), func(store ledger.Ledger) error {
				d := diff{terminal: t, store: store, tenant: flags.tenant, old: versions[0], new: versions[1], now: now(), changes: map[string]int{}}
				return d.run(cmd.Context(), from)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&since, "since", "30d", "actions requested at or after: RFC 3339, or how long ago")
	return cmd
}

// loadPair parses two files that may hold the same id and version.
func loadPair(t *terminal, paths ...string) ([]*contract.Contract, error) {
	var pair []*contract.Contract
	for _, path := range paths {
		contracts, err := loadContracts(t, []string{path})
		if err != nil {
			return nil, err
		}
		if len(contracts) != 1 {
			return nil, usagef("%s holds %d contracts; name one file", path, len(contracts))
		}
		pair = append(pair, contracts[0])
	}
	if before, after := pair[0], pair[1]; before.ID != after.ID {
		return nil, usagef("%s is %s and %s is %s; name two versions of one contract", paths[0], before.ID, paths[1], after.ID)
	}
	return pair, nil
}

// diff replays actions under two versions.
type diff struct {
	terminal *terminal
	store    ledger.Ledger
	tenant   string
	old, new *contract.Contract
	now      engine.Instant

	replayed int
	// changes counts by change, as change has it.
	changes map[string]int
	listed  bool // something stands in the JSON list already
}

type changedAction struct {
	ActionID  string       `json:"action_id"`
	SubjectID string       `json:"subject_id"`
	Old       verdictLabel `json:"old"`
	New       verdictLabel `json:"new"`
}

type verdictLabel struct {
	Status        string   `json:"status"`
	Outcome       string   `json:"outcome"`
	Policy        string   `json:"policy"`
	PolicyReasons []string `json:"policy_reasons"`
	Headline      string   `json:"headline"`
}

func labelOf(v contracttest.Verdict) verdictLabel {
	label := verdictLabel{
		Status: ledger.Pending, Outcome: v.Evaluation.Outcome.Raw.Label(), Policy: v.Evaluation.Policy.Raw.Label(),
		PolicyReasons: v.Evaluation.Policy.Reasons, Headline: v.Report.Summary.Headline,
	}
	if v.Report.Settlement.Settled {
		label.Status = ledger.Settled
	}
	return label
}

// differs looks at the verdicts, not at reasons and headlines.
func (l verdictLabel) differs(other verdictLabel) bool {
	return l.Status != other.Status || l.Outcome != other.Outcome || l.Policy != other.Policy
}

// change names what differs: the policy verdict with whether it is provisional,
// or the outcome verdict where only that moved.
func change(before, after verdictLabel) (from, to string) {
	if from, to = before.word(), after.word(); from != to {
		return from, to
	}
	return "outcome " + before.Outcome, "outcome " + after.Outcome
}

func (l verdictLabel) word() string {
	if l.Status == ledger.Pending {
		return "PENDING (" + l.Policy + " so far)"
	}
	return l.Policy
}

// diffPage is how many actions are replayed in one transaction.
const diffPage = 500

func (d *diff) run(ctx context.Context, since *engine.Instant) error {
	filter := ledger.ActionFilter{ContractID: d.old.ID, Since: since, Limit: diffPage}
	total, err := d.count(ctx, filter)
	if err != nil {
		return err
	}
	bar := d.terminal.progress("actions", total)
	d.begin()
	var seen int64
	for more := true; more; {
		err := d.store.View(ctx, func(tx ledger.Tx) error {
			page, err := tx.ListActions(ctx, d.tenant, filter)
			if err != nil {
				return err
			}
			filter.Cursor, more = page.Next, page.Next != ""
			seen += int64(len(page.Actions))
			return d.replay(ctx, tx, page.Actions, bar)
		})
		if err != nil {
			bar.done()
			return err
		}
		bar.at(seen)
	}
	bar.done()
	return d.print()
}

func (d *diff) count(ctx context.Context, filter ledger.ActionFilter) (total int64, err error) {
	err = d.store.View(ctx, func(tx ledger.Tx) error {
		summary, err := tx.Summary(ctx, d.tenant, filter)
		total = int64(summary.Total)
		return err
	})
	return total, err
}

// replay evaluates those of a page that are pinned to the old version.
func (d *diff) replay(ctx context.Context, tx ledger.Tx, actions []ledger.StoredAction, bar *progress) error {
	var claims []string
	for _, a := range actions {
		if a.Action.ContractVersion == d.old.Version {
			claims = append(claims, a.ClaimID)
		}
	}
	if len(claims) == 0 {
		return nil
	}
	before, err := judge(ctx, tx, d.tenant, d.old, claims, nil, d.now, report.DefaultSettings())
	if err != nil {
		return err
	}
	after, err := judge(ctx, tx, d.tenant, d.new, claims, nil, d.now, report.DefaultSettings())
	if err != nil {
		return err
	}
	for _, a := range actions {
		if a.Action.ContractVersion != d.old.Version {
			continue
		}
		d.replayed++
		if err := d.compare(a, labelOf(before[a.Action.ActionID]), labelOf(after[a.Action.ActionID]), bar); err != nil {
			return err
		}
	}
	return nil
}

// compare prints an action as soon as its verdict turns out to differ: what was
// replayed is not kept, however much that is.
func (d *diff) compare(a ledger.StoredAction, before, after verdictLabel, bar *progress) error {
	if !before.differs(after) {
		return nil
	}
	from, to := change(before, after)
	d.changes[from+" -> "+to]++
	bar.done()
	t := d.terminal
	if t.json() {
		return d.list(changedAction{a.Action.ActionID, a.Action.SubjectID, before, after})
	}
	t.printf("%s  %s -> %s  %s\n", printable(a.Action.ActionID), t.style.verdict(from), t.style.verdict(to), printable(after.Headline))
	return nil
}

// begin, list and print write one JSON document piece by piece.
func (d *diff) begin() {
	if d.terminal.json() {
		d.terminal.printf(`{"changed": [`)
	}
}

func (d *diff) list(changed changedAction) error {
	text, err := json.Marshal(changed)
	if err != nil {
		return err
	}
	separator := "\n  "
	if d.listed {
		separator = ",\n  "
	}
	d.listed = true
	d.terminal.printf("%s%s", separator, text)
	return nil
}

func (d *diff) printJSONSummary() error {
	summary, err := json.MarshalIndent(map[string]any{
		"old": contractView{ID: d.old.ID, Version: d.old.Version, Hash: d.old.Hash},
		"new": contractView{ID: d.new.ID, Version: d.new.Version, Hash: d.new.Hash},
		"at":  d.now, "replayed": d.replayed, "changes": d.changes,
	}, "", "  ")
	if err != nil {
		return err
	}
	// The summary's members follow the list in one object.
	d.terminal.printf("],%s\n", strings.TrimPrefix(string(summary), "{"))
	return nil
}

func (d *diff) print() error {
	t := d.terminal
	if t.json() {
		return d.printJSONSummary()
	}
	if len(d.changes) == 0 {
		t.printf("%s replayed, no verdict would change\n", plural(d.replayed, "action"))
		return nil
	}
	lines := make([]string, 0, len(d.changes))
	total := 0
	for _, change := range slices.Sorted(maps.Keys(d.changes)) {
		lines = append(lines, fmt.Sprintf("%d %s", d.changes[change], change))
		total += d.changes[change]
	}
	t.printf("%s replayed, %s would change: %s\n", plural(d.replayed, "action"), plural(total, "verdict"), strings.Join(lines, ", "))
	return nil
}
