package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

type retentionView struct {
	Horizon engine.Instant  `json:"horizon"`
	DryRun  bool            `json:"dry_run"`
	Tenants []retainedEntry `json:"tenants"`
}

type retainedEntry struct {
	Tenant      string `json:"tenant"`
	Facts       int    `json:"facts_dropped"`
	KeptFacts   int    `json:"old_facts_still_needed"`
	Reports     int    `json:"reports_dropped"`
	KeptReports int    `json:"old_reports_still_needed"`
	Rejected    int    `json:"rejected_facts_dropped"`
	KeyEvents   int    `json:"key_events_dropped"`
	Webhooks    int    `json:"webhook_deliveries_dropped"`
	Parkings    int    `json:"parked_events_dropped"`
	// Contexts are agent-like spans, by which actions find their agent.
	Contexts     int `json:"trace_contexts_dropped"`
	KeptContexts int `json:"old_trace_contexts_still_needed"`
}

type retentionFlags struct {
	store     storeFlags
	olderThan string
	all       bool
	dryRun    bool
}

func newRetention(t *terminal) *cobra.Command {
	var flags retentionFlags
	cmd := &cobra.Command{
		Use:   "retention --older-than 400d",
		Short: "Drop facts, reports and trace contexts that are old and no longer needed",
		Long: `Drops facts that are older than the given time (30d at least), the reports of runs, the trace
contexts by which actions find their agent, what was rejected and did not come again since, uses of keys from
their audit log, webhooks that were done with or that nobody sends any more, and events of parked work, in
small transactions: it may be stopped at any time, and run beside everything else. Actions, runs, verdicts,
their documents, the chain, and what was done to keys stay, and log verify knows what was dropped.

A fact stays, however old, as long as an action about its subject or a linked one is younger
than that, is not settled, or may still be reversed, or as an aggregate limit reaches from
such an action to it. Actions from before the time can then neither be recorded nor verified
again: their last verdict stands.

On PostgreSQL the login has to be a member of the role countersign_retention.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			age, err := engine.ParseDuration(flags.olderThan)
			if err != nil {
				return usagef("--older-than: %w", err)
			}
			return withStore(cmd.Context(), flags.store.url(), func(store ledger.Ledger) error {
				view, err := retain(cmd.Context(), t, store, flags, age)
				if err != nil {
					return err
				}
				return printRetention(t, view)
			})
		},
	}
	flags.store.add(cmd)
	cmd.Flags().StringVar(&flags.olderThan, "older-than", "", "like 400d or 60w; at least 30d")
	cmd.Flags().BoolVar(&flags.all, "all-tenants", false, "all tenants of the store, instead of one")
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "only count")
	return required(cmd, "older-than")
}

func retain(ctx context.Context, t *terminal, store ledger.Ledger, flags retentionFlags, age engine.Duration) (retentionView, error) {
	at := now()
	view := retentionView{Horizon: at.Sub(age), DryRun: flags.dryRun, Tenants: []retainedEntry{}}
	tenants := []string{flags.store.tenant}
	if flags.all {
		if err := store.View(ctx, func(tx ledger.Tx) (err error) {
			tenants, err = tx.Tenants(ctx)
			return err
		}); err != nil {
			return view, err
		}
	}
	bar := t.progress("tenants", int64(len(tenants)))
	defer bar.done()
	for i, tenant := range tenants {
		done, err := ledger.Expire(ctx, store, tenant, view.Horizon, at, flags.dryRun, nil)
		if err != nil {
			return view, err
		}
		view.Tenants = append(view.Tenants, retainedEntry{
			Tenant: tenant, Facts: done.Facts, KeptFacts: done.KeptFacts, Reports: done.Reports, KeptReports: done.KeptReports, Rejected: done.Rejected, KeyEvents: done.KeyEvents,
			Webhooks: done.Webhooks, Parkings: done.Parkings,
			Contexts: done.Contexts, KeptContexts: done.KeptContexts,
		})
		bar.at(int64(i + 1))
	}
	return view, nil
}

func printRetention(t *terminal, view retentionView) error {
	if t.json() {
		return t.printJSON(view)
	}
	verb := "dropped"
	if view.DryRun {
		verb = "would drop"
	}
	for _, e := range view.Tenants {
		t.printf("tenant %s: %s %s and %s from before %s; %d and %d that are as old are still needed\n", printable(e.Tenant), verb,
			plural(e.Facts, "fact"), plural(e.Reports, "report"), view.Horizon, e.KeptFacts, e.KeptReports)
		if e.Rejected > 0 {
			t.printf("tenant %s: %s %s\n", printable(e.Tenant), verb, plural(e.Rejected, "rejected fact"))
		}
		if e.KeyEvents > 0 {
			t.printf("tenant %s: %s %s of keys from the audit log\n", printable(e.Tenant), verb, plural(e.KeyEvents, "use"))
		}
		if e.Webhooks > 0 {
			t.printf("tenant %s: %s %s\n", printable(e.Tenant), verb, plural(e.Webhooks, "webhook"))
		}
		if e.Parkings > 0 {
			t.printf("tenant %s: %s %s of parked work\n", printable(e.Tenant), verb, plural(e.Parkings, "event"))
		}
		if e.Contexts > 0 {
			t.printf("tenant %s: %s %s\n", printable(e.Tenant), verb, plural(e.Contexts, "trace context"))
		}
	}
	return nil
}
