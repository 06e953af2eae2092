package ledgertest

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func exerciseAudit(t *testing.T, open opener) {
	t.Run("ChainRuns", func(t *testing.T) {
		b := setup(t, open)
		correcting := act("b", "order_2")
		correcting.Compensates = "a"
		b.record(act("a", "order_1"), correcting)
		first := b.settle(engine.ClaimID(acme, "a"), ledger.Pending, engine.NotVerified, noon, "action.pending")
		second := b.settle(engine.ClaimID(acme, "b"), ledger.Settled, engine.Verified, noon+1)
		var previous [32]byte // hash of the run before
		asStored := func(r ledger.Run, a engine.Action) ledger.ChainRun {
			report := sha256.Sum256(r.Report)
			hash := r.Hash(previous, r.Policy.ChainHash, report)
			previous = hash
			r.Lease, r.Owner = nil, ""
			r.Outcome, r.Policy = ledger.StoredVerdict{Seq: r.Outcome.Seq}, ledger.StoredVerdict{Seq: r.Policy.Seq}
			r.Compensates = a.Compensates
			return ledger.ChainRun{Run: r, ReportHash: report[:], RunHash: hash[:], Action: ledger.ChainAction{
				ActionID: a.ActionID, Contract: ledger.ContractRef{ID: a.ContractID, Version: 1},
			}}
		}
		wantRuns := []ledger.ChainRun{asStored(first, act("a", "order_1")), asStored(second, correcting)}
		chainRuns := func(tenant string, after int64, limit int) (runs []ledger.ChainRun) {
			b.view(func(tx ledger.Tx) (err error) {
				runs, err = tx.ChainRuns(t.Context(), tenant, after, limit)
				return err
			})
			return runs
		}
		wantSame(t, "all", chainRuns(acme, 0, 10), wantRuns)
		wantSame(t, "one", chainRuns(acme, 0, 1), wantRuns[:1])
		wantSame(t, "the rest", chainRuns(acme, first.Seq, 10), wantRuns[1:])
		wantSame(t, "the other tenant's", len(chainRuns(other, 0, 10)), 0)
		b.view(func(tx ledger.Tx) error {
			head, err := tx.ChainHead(t.Context(), acme)
			wantSame(t, "hash of the newest run", head.RunHash, previous)
			return err
		})
	})

	t.Run("CheckLatest", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"), act("b", "order_2"), act("c", "order_3"))
		b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.Verified, noon)
		b.settle(engine.ClaimID(acme, "a"), ledger.Pending, engine.NotVerified, noon+1)
		b.settle(engine.ClaimID(acme, "b"), ledger.Settled, engine.NotVerified, noon+1)
		b.view(func(tx ledger.Tx) error {
			last, actions := "", 0
			for {
				got, err := tx.CheckLatest(t.Context(), acme, last, 2)
				if err != nil {
					return err
				}
				if got.BrokenAt != 0 {
					t.Errorf("broken at %d", got.BrokenAt)
				}
				if got.Actions == 0 {
					wantSame(t, "actions", actions, 3)
					return nil
				}
				last, actions = got.Last, actions+got.Actions
			}
		})
	})

	t.Run("FactsByRef", func(t *testing.T) {
		b := setup(t, open)
		one, two := b.fact("re_1", "stripe", "refund_created", "order_1", noon), b.fact("re_2", "crm", "note_added", "order_1", noon+1)
		b.ingest(noon, one, two)
		b.ingestBatch(other, noon, ledger.FactBatch{Facts: []engine.Fact{b.fact("re_3", "stripe", "refund_created", "order_1", noon)}})
		b.view(func(tx ledger.Tx) error {
			found, err := tx.FactsByRef(t.Context(), acme, []string{"re_2", "re_3", "re_1", "re_1", "", "re_\x00"})
			slices.SortFunc(found, func(a, b ledger.StoredFact) int { return strings.Compare(a.RawRef, b.RawRef) })
			hashOne, hashTwo := one.ContentHash(), two.ContentHash()
			wantSame(t, "facts", found, []ledger.StoredFact{{Fact: one, ContentHash: hashOne[:], IngestedAt: noon}, {Fact: two, ContentHash: hashTwo[:], IngestedAt: noon}})
			return err
		})
	})
}
