package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/countersign-otel/countersign/ledger"
)

// Texts that PostgreSQL cannot hold come from URLs and from telemetry. They find
// nothing, and they take nothing down with them.
func TestTextsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	store := open(t, migratedURL(t))
	update(t, store, func(ctx context.Context, tx ledger.Tx) error {
		_, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: action("act_1", "order_1")}}, noon)
		return err
	})
	for _, hostile := range []string{"act_1\x00", "\x00", "act\xff", "\xed\xa0\x80"} {
		update(t, store, func(ctx context.Context, tx ledger.Tx) error {
			actions, err := tx.Actions(ctx, tenant, []string{hostile, "act_1"})
			if err != nil || len(actions) != 1 {
				return fmt.Errorf("actions: %d, %w", len(actions), err)
			}
			for _, filter := range []ledger.ActionFilter{
				{ContractID: hostile}, {AgentID: hostile}, {SubjectID: hostile}, {TraceID: hostile}, {WorkflowID: hostile},
			} {
				page, err := tx.ListActions(ctx, tenant, filter)
				if err != nil || len(page.Actions) != 0 {
					return fmt.Errorf("list %+v: %d, %w", filter, len(page.Actions), err)
				}
				if sum, err := tx.Summary(ctx, tenant, filter); err != nil || sum.Total != 0 {
					return fmt.Errorf("summary %+v: %+v, %w", filter, sum, err)
				}
			}
			for _, filter := range []ledger.ActionFilter{{Verdict: hostile}, {Cursor: hostile}, {Cursor: "1." + hostile}} {
				if _, err := tx.ListActions(ctx, tenant, filter); !errors.Is(err, ledger.ErrFilter) {
					return fmt.Errorf("list %+v: %w, want %w", filter, err, ledger.ErrFilter)
				}
			}
			if runs, err := tx.Runs(ctx, tenant, hostile); err != nil || len(runs) != 0 {
				return fmt.Errorf("runs: %w", err)
			}
			if found, err := tx.ContractVersions(ctx, []ledger.ContractRef{{ID: hostile}}); err != nil || len(found) != 0 {
				return fmt.Errorf("contract versions: %w", err)
			}
			if found, err := tx.ListContracts(ctx, hostile); err != nil || len(found) != 0 {
				return fmt.Errorf("contracts: %w", err)
			}
			if err := tx.RevokeKey(ctx, tenant, hostile, noon); !errors.Is(err, ledger.ErrNotFound) {
				return fmt.Errorf("revoke: %w, want %w", err, ledger.ErrNotFound)
			}
			return tx.RecordTraceContexts(ctx, tenant, []ledger.TraceContext{
				{TraceID: hostile, SpanID: hostile, Agent: hostile, Session: hostile},
			}, noon)
		})
	}
}
