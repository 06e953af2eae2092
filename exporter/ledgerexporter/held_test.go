package ledgerexporter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/exporter/ledgerexporter/internal/metadatatest"
	"github.com/countersign-otel/countersign/ledger"
)

// TestSettledActionsThatAreHeld: an action that comes again as something else,
// after it settled under updates: until_settled, stands; nothing is retried,
// nothing beside it falls, and it is counted and told once a batch.
func TestSettledActionsThatAreHeld(t *testing.T) {
	t.Parallel()
	b, telemetry, logged := setupObserved(t)
	publishUntilSettled(t, b.store)

	b.write(t, spans(withAction(refund(1)), withAction(refund(2)), withAction(refund(3))))
	settleAsFailed(t, b.store, "act_001", "act_002", "act_003")
	first, second := refund(1), refund(2)
	first.Action.SubjectID, second.Action.SubjectID = "order_666", "order_666"
	first.Action.ReferenceID = "late" // no verdict depends on it
	b.write(t, spans(withAction(first), withAction(second), withAction(refund(3)), withAction(refund(4))))

	var subjects []string
	for _, a := range actions(t, b.store, engine.DefaultTenant) {
		subjects = append(subjects, strings.TrimSpace(a.Action.SubjectID+" "+a.Action.ReferenceID))
	}
	if diff := cmp.Diff([]string{"order_001 late", "order_002", "order_003", "order_004"}, subjects); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
	point := func(n int64, outcome string) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("kind", string(kindAction)), attribute.String("outcome", outcome))}
	}
	metadatatest.AssertEqualExporterLedgerItems(t, telemetry, []metricdata.DataPoint[int64]{
		point(4, outcomeCreated), point(2, outcomeConflicting), point(1, outcomeUnchanged),
	}, metricdatatest.IgnoreTimestamp())
	if logged.Len() != 1 {
		t.Fatalf("said: %+v", logged.All())
	}
	said := logged.All()[0]
	want := map[string]any{"actions": int64(2), "tenant": engine.DefaultTenant, "action_id": "act_001", "fields": []any{"subject_id"}}
	if diff := cmp.Diff(want, said.ContextMap()); diff != "" || !strings.Contains(said.Message, "record a new action that compensates it") {
		t.Errorf("said %q (-want +got):\n%s", said.Message, diff)
	}
	// What is sent again is told again, and a batch without any says nothing.
	b.write(t, ptrace.NewTraces())
	b.write(t, spans(withAction(first)))
	if logged.Len() != 2 {
		t.Errorf("said %d times, want once a batch", logged.Len())
	}
}

// publishUntilSettled makes a next version of the test's contract the latest.
func publishUntilSettled(t *testing.T, store ledger.Ledger) {
	t.Helper()
	document := strings.NewReplacer("\nversion: 1\n", "\nversion: 2\n", "\naction:\n", "\naction:\n  updates: until_settled\n").Replace(testContract)
	c, diagnostics := contract.Parse("refund_workflow.yaml", []byte(document))
	if c == nil {
		t.Fatal(diagnostics)
	}
	err := store.Update(t.Context(), func(tx ledger.Tx) error {
		return tx.PublishContracts(t.Context(), []*contract.Contract{c}, 1790592000)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func settleAsFailed(t *testing.T, store ledger.Ledger, ids ...string) {
	t.Helper()
	var runs []ledger.Run
	for _, id := range ids {
		runs = append(runs, ledger.Run{
			ClaimID: engine.ClaimID(engine.DefaultTenant, id), Contract: ledger.ContractRef{ID: "refund_workflow", Version: 2},
			ComputedAt: 1790592300, TriggeredBy: "action", Status: ledger.Settled, Headline: "FAIL",
			Outcome: ledger.StoredVerdict{Verdict: engine.Verdict{Raw: engine.NotVerified}, Document: "{}"},
			Policy:  ledger.StoredVerdict{Verdict: engine.Verdict{Raw: engine.NotVerified}, Document: "{}"},
		})
	}
	err := store.Update(t.Context(), func(tx ledger.Tx) error {
		_, err := tx.StoreRuns(t.Context(), engine.DefaultTenant, runs)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
