package settle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
)

// onBothStores runs a story on a SQLite file and on PostgreSQL.
func onBothStores(t *testing.T, story func(t *testing.T, b *bench)) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		story(t, setupOn(t, "sqlite:"+filepath.Join(t.TempDir(), "test.db"), nil))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		story(t, setupOn(t, pgserver.Start(t).Database(t), nil))
	})
}

// publishHeld publishes the refund story under a contract that holds to the
// close and forbids a second refund.
func publishHeld(t *testing.T, b *bench) {
	t.Helper()
	text, err := os.ReadFile("../../contracts/refund_workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	held := strings.NewReplacer(
		"id: refund_workflow", "id: held_refund",
		"\naction:\n", "\naction:\n  settle: at_close\n",
	).Replace(string(text))
	c, diagnostics := contract.Parse("held_refund.yaml", []byte(held))
	if c == nil || !c.SettleAtClose || !strings.Contains(held, "effect_count_exceeds") {
		t.Fatalf("the contract is not what the story needs: %v", diagnostics)
	}
	b.update(func(tx ledger.Tx) error { return tx.PublishContracts(t.Context(), []*contract.Contract{c}, requested) })
}

// wantHeld fails at once: what was not held is never judged again, and waiting for that would be in vain.
func (b *bench) wantHeld(id string) {
	b.t.Helper()
	if b.wantStory(id, "pending PASS/PASS by action, tells action.pending"); b.t.Failed() {
		b.t.FailNow()
	}
}

// TestD28_EarlyPassIsHeld: it stays pending until the window has closed, and settles then.
func TestD28_EarlyPassIsHeld(t *testing.T) {
	onBothStores(t, func(t *testing.T, b *bench) {
		publishHeld(t, b)
		b.at(60)
		b.push("a", allEffects...)
		b.recordUnder("held_refund", "a")
		b.settleAll(hasRuns(b, "a", 1))
		b.wantHeld("a")
		if a := b.action("a"); a.NextCheckAt == nil || *a.NextCheckAt != requested+900 {
			t.Errorf("looked at again at %v, want the close at %v", a.NextCheckAt, requested+900)
		}
		b.at(900)
		b.settleAll(settled(b, "a"))
		b.wantStory("a", "pending PASS/PASS by action, tells action.pending", "settled PASS/PASS by recheck, tells action.verified")
	})
}

// TestD28_LaterDuplicateCounts: a second refund minutes after the early PASS makes
// the policy verdict a FAIL, where a contract that does not hold has settled.
func TestD28_LaterDuplicateCounts(t *testing.T) {
	onBothStores(t, func(t *testing.T, b *bench) {
		publishHeld(t, b)
		b.at(60)
		for _, id := range []string{"held", "early"} {
			b.push(id, allEffects...)
		}
		b.recordUnder("held_refund", "held")
		b.record("early")
		b.settleAll(func() bool { return hasRuns(b, "held", 1)() && settled(b, "early")() })
		b.wantHeld("held")
		b.at(600)
		for _, id := range []string{"held", "early"} {
			b.push(id, "stripe.refund_created@590")
		}
		b.settleAll(hasRuns(b, "held", 2))
		b.at(900)
		b.settleAll(settled(b, "held"))
		b.wantStory("held",
			"pending PASS/PASS by action, tells action.pending",
			"pending PASS/FAIL by fact:stripe.refund_created@590 held, tells ",
			"settled PASS/FAIL by recheck, tells action.verified",
		)
		b.wantStory("early", "settled PASS/PASS by action, tells action.verified")
	})
}

// TestD17_EvidenceOfAnotherSubject: the latest fact of a total may be about
// another action's subject, and stays evidence of this one.
func TestD17_EvidenceOfAnotherSubject(t *testing.T) {
	onBothStores(t, func(t *testing.T, b *bench) {
		text, err := os.ReadFile("../../contracts/payout.yaml")
		if err != nil {
			t.Fatal(err)
		}
		payout, diagnostics := contract.Parse("payout.yaml", text)
		if len(diagnostics) > 0 {
			t.Fatal(diagnostics)
		}
		b.update(func(tx ledger.Tx) error {
			return tx.PublishContracts(t.Context(), []*contract.Contract{payout}, requested)
		})
		b.at(60)
		b.recordUnder("payout", "early", "late")
		paid, err := engine.ParseObject([]byte(`{"amount":180}`))
		if err != nil {
			t.Fatal(err)
		}
		batch := ledger.FactBatch{Trust: engine.Shared}
		for id, after := range map[string]engine.Instant{"early": 10, "late": 20} {
			batch.Facts = append(batch.Facts, engine.Fact{
				Source: "payments", Type: "payout_created", SubjectID: "order_" + id, RawRef: "po_" + id, OccurredAt: requested + after, Attributes: paid,
			})
		}
		b.ingest(batch)
		run, err := b.verifier.Verify(t.Context(), tenant, []string{engine.ClaimID(tenant, "early")}, nil, "manual")
		if err != nil {
			t.Fatal(err)
		}
		if len(run) != 1 || !strings.Contains(string(run[0].Report), `"raw_ref":"po_late"`) || len(run[0].Evidence) != 2 {
			t.Errorf("evidence is not both payouts: %+v", run)
		}
	})
}
