package ledgertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func (b *bundle) reject(tenant string, now engine.Instant, rejected ...ledger.RejectedFact) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) error { return tx.RejectFacts(b.t.Context(), tenant, rejected, now) })
}

func (b *bundle) rejected(tenant string, filter ledger.RejectedFilter) (found []ledger.RejectedFact) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) (err error) {
		found, err = tx.RejectedFacts(b.t.Context(), tenant, filter)
		return err
	})
	return found
}

// badFact is what a source sent and a store refused.
func badFact(source, ref string) ledger.RejectedFact {
	return ledger.RejectedFact{
		Kind: "fact", Source: source, Connection: "webhook", Reason: "invalid", Error: "subject_id: is empty",
		RawRef: ref, SubjectID: "order_1", Item: `{"source":"` + source + `"}`,
	}
}

func exerciseRejected(t *testing.T, open opener) {
	t.Run("TheSameAgainCounts", func(t *testing.T) {
		b := setup(t, open)
		b.reject(acme, noon, badFact("stripe", "re_1"), badFact("stripe", "re_1"), badFact("crm", "n_1"))
		b.reject(acme, noon-9, badFact("stripe", "re_1"))
		again := badFact("stripe", "re_1")
		again.Error = "subject_id: is empty, still"
		b.reject(acme, noon+9, again)
		b.reject(other, noon, badFact("stripe", "theirs"))
		stripe, crm := again, badFact("crm", "n_1")
		stripe.ReceivedAt, stripe.LastAt, stripe.Times = noon, noon+9, 4
		crm.ReceivedAt, crm.LastAt, crm.Times = noon, noon, 1
		wantSame(t, "all", b.rejected(acme, ledger.RejectedFilter{Limit: 10}), []ledger.RejectedFact{stripe, crm})
		since := noon + 1
		wantSame(t, "since", b.rejected(acme, ledger.RejectedFilter{Since: &since, Limit: 10}), []ledger.RejectedFact{stripe})
		wantSame(t, "of a source", b.rejected(acme, ledger.RejectedFilter{Source: "crm", Limit: 10}), []ledger.RejectedFact{crm})
		wantSame(t, "of no source", len(b.rejected(acme, ledger.RejectedFilter{Source: "a\x00b", Limit: 10})), 0)
		wantSame(t, "limited", b.rejected(acme, ledger.RejectedFilter{Limit: 1}), []ledger.RejectedFact{stripe})
		b.view(func(tx ledger.Tx) error {
			counts, err := tx.CountRejected(t.Context(), acme, noon)
			wantSame(t, "counts", counts, []ledger.RejectedCount{{Source: "crm", Items: 1, Times: 1, LastAt: noon}, {Source: "stripe", Items: 1, Times: 4, LastAt: noon + 9}})
			return err
		})
	})

	t.Run("HostileTextIsBounded", func(t *testing.T) {
		b := setup(t, open)
		hostile := ledger.RejectedFact{
			Kind: "fact", Source: "a\x00b", Reason: "unreadable", Error: strings.Repeat("e", 9999),
			RawRef: "\xff\xfe", Item: strings.Repeat("é", ledger.MaxRejectedItem),
		}
		b.reject(acme, noon, hostile, hostile)
		found := b.rejected(acme, ledger.RejectedFilter{Limit: 10})
		if len(found) != 1 || found[0].Times != 2 {
			t.Fatalf("%+v", found)
		}
		wantSame(t, "source", found[0].Source, "a\uFFFDb")
		if len(found[0].Item) > ledger.MaxRejectedItem || len(found[0].Error) > 1000 {
			t.Errorf("%d bytes of the item, %d of the error", len(found[0].Item), len(found[0].Error))
		}
	})

	t.Run("RetentionTakesTheOld", func(t *testing.T) {
		b := setup(t, open)
		for i := range 7 {
			b.reject(acme, noon, badFact("stripe", fmt.Sprintf("old %d", i)))
		}
		b.reject(acme, horizon, badFact("stripe", "young"), badFact("stripe", "old 3"))
		b.reject(other, noon, badFact("stripe", "theirs"))
		wantSame(t, "rehearsed", b.expire(horizon, true).Rejected, 6)
		wantSame(t, "nothing went", len(b.rejected(acme, ledger.RejectedFilter{Limit: 100})), 8)
		page := ledger.ExpiryPage{Horizon: horizon, Limit: 4, Now: later}
		for pages := 1; ; pages++ {
			var result ledger.Expired
			b.update(func(tx ledger.Tx) (err error) {
				result, err = tx.ExpireRejected(t.Context(), acme, page)
				return err
			})
			if page.After = result.Next; page.After == "" {
				wantSame(t, "pages", pages, 2)
				break
			}
		}
		wantSame(t, "left", len(b.rejected(acme, ledger.RejectedFilter{Limit: 100})), 2)
		wantSame(t, "the other tenant's", len(b.rejected(other, ledger.RejectedFilter{Limit: 100})), 1)
		wantSame(t, "again", b.expire(horizon, false).Rejected, 0)
	})
}
