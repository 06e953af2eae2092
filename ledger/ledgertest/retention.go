package ledgertest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// later is when retention runs; what happened at noon is older than the horizon.
const (
	later   = noon + 500*engine.Instant(engine.Day)
	horizon = later - 400*engine.Instant(engine.Day)
)

func (b *bundle) expire(horizon engine.Instant, rehearse bool) ledger.Expiry {
	b.t.Helper()
	done, err := ledger.Expire(b.t.Context(), b.store, acme, horizon, later, rehearse, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return done
}

func (b *bundle) dropped(tenant string) (dropped ledger.Dropped) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) (err error) {
		dropped, err = tx.Dropped(b.t.Context(), tenant)
		return err
	})
	return dropped
}

// left are those of the references whose facts are still there.
func (b *bundle) left(refs ...string) (left []string) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) error {
		found, err := tx.FactsByRef(b.t.Context(), acme, refs)
		there := map[string]bool{}
		for _, f := range found {
			there[f.RawRef] = true
		}
		for _, ref := range refs {
			if there[ref] {
				left = append(left, ref)
			}
		}
		return err
	})
	return left
}

func exerciseRetention(t *testing.T, open opener) {
	t.Run("WhatNothingNeedsGoes", func(t *testing.T) {
		b := setup(t, open)
		young := act("young", "order_young")
		young.RequestedAt = horizon
		// Two days from the others: no limit of the contract reaches from them to these.
		pending, unverified := act("pending", "order_pending"), act("unverified", "order_unverified")
		pending.RequestedAt, unverified.RequestedAt = noon.Sub(2*engine.Day), noon.Sub(2*engine.Day)
		b.record(act("settled", "order_settled"), pending, act("linking", "order_linking"), young)
		b.recordFor(acme, noon, false, unverified)
		b.link(noon, "order_linking", "ticket_1")
		b.link(noon, "order_pending", "ticket_2")
		settled := b.settle(engine.ClaimID(acme, "settled"), ledger.Settled, engine.Verified, noon)
		b.settle(engine.ClaimID(acme, "linking"), ledger.Settled, engine.Verified, noon)
		waiting := b.settle(engine.ClaimID(acme, "pending"), ledger.Pending, engine.NotVerified, noon)
		b.settle(engine.ClaimID(acme, "young"), ledger.Settled, engine.Verified, horizon)
		refs := []string{}
		for _, subject := range []string{"order_settled", "order_pending", "order_linking", "ticket_1", "ticket_2", "order_young", "order_unverified", "nobody"} {
			b.ingest(noon, b.fact(subject+" old", "crm", "note_added", subject, noon), b.fact(subject+" new", "crm", "note_added", subject, horizon))
			refs = append(refs, subject+" old", subject+" new")
		}
		b.ingestBatch(other, noon, ledger.FactBatch{Facts: []engine.Fact{b.fact("theirs", "crm", "note_added", "nobody", noon)}})
		want := ledger.Expiry{Horizon: horizon, Facts: 4, KeptFacts: 4, Reports: 2, KeptReports: 1}
		wantSame(t, "rehearsed", b.expire(horizon, true), want)
		wantSame(t, "nothing went", len(b.left(refs...)), len(refs))
		wantSame(t, "nothing noted", b.dropped(acme), ledger.Dropped{})
		wantSame(t, "expired", b.expire(horizon, false), want)
		wantSame(t, "left", b.left(refs...), []string{
			"order_settled new", "order_pending old", "order_pending new", "order_linking new", "ticket_1 new", "ticket_2 old", "ticket_2 new",
			"order_young old", "order_young new", "order_unverified old", "order_unverified new", "nobody new",
		})
		wantSame(t, "noted", b.dropped(acme), ledger.Dropped{Horizon: horizon, Facts: 4, Reports: 2})
		wantSame(t, "the other tenant's", b.dropped(other), ledger.Dropped{})
		wantSame(t, "report", string(b.runs("settled")[0].Report), ledger.DroppedReport)
		stored := b.runs("settled")[0]
		stored.Report, settled.Report, settled.Lease, settled.Owner = nil, nil, nil, ""
		wantSame(t, "the rest of the run", stored, settled)
		wantSame(t, "pending report", string(b.runs("pending")[0].Report), string(waiting.Report))
		wantSame(t, "chain", len(b.checkChain(acme)), 8)
		wantSame(t, "again", b.expire(horizon, false), ledger.Expiry{Horizon: horizon, KeptFacts: 4, KeptReports: 1})
	})

	t.Run("ReversalsLookAhead", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.Verified, noon)
		b.ingest(noon, b.fact("old", "crm", "note_added", "order_1", noon))
		// The contract of the suite looks 30 days ahead; its aggregate limit reaches a day.
		done := b.expire(noon.Add(31*engine.Day), false)
		wantSame(t, "while it is open", [2]int{done.Facts, done.KeptFacts}, [2]int{0, 1})
		done = b.expire(noon.Add(31*engine.Day)+1, false)
		wantSame(t, "after it closed", [2]int{done.Facts, done.KeptFacts}, [2]int{1, 0})
	})

	t.Run("AggregatesReachTheirNeighbours", func(t *testing.T) {
		b := setup(t, open)
		near, far := act("near", "order_near"), act("far", "order_far")
		near.RequestedAt, far.RequestedAt = noon.Sub(engine.Day), noon.Sub(engine.Day)-1
		b.record(act("awaiting", "order_awaiting"), near, far)
		b.settle(engine.ClaimID(acme, "near"), ledger.Settled, engine.Verified, noon)
		b.settle(engine.ClaimID(acme, "far"), ledger.Settled, engine.Verified, noon)
		b.ingest(noon, b.fact("near", "stripe", "refund_created", "order_near", noon-9), b.fact("far", "stripe", "refund_created", "order_far", noon-9))
		b.expire(horizon, false)
		wantSame(t, "left", b.left("near", "far"), []string{"near"})
	})

	t.Run("ContextsOfSettledTracesGo", func(t *testing.T) {
		b := setup(t, open)
		in := func(traceID, id string, verify bool) (context ledger.TraceContext, item ledger.RecordRequest) {
			a := act(id, "order_1")
			a.TraceID = traceID
			return ledger.TraceContext{TraceID: traceID, SpanID: "01", StartNanos: 1, EndNanos: 9, Agent: "bot"}, ledger.RecordRequest{Action: a, StartedNanos: 20, Verify: verify}
		}
		settled, one := in(`quote " and \\`, "settled", true)
		pending, two := in("pending", "pending", true)
		younger, three := in("younger", "younger", true)
		three.Action.RequestedAt = horizon
		unused, _ := in("unused", "", false)
		b.recordItems(acme, noon, one, two, three)
		b.contexts(noon, settled, pending, younger, unused)
		theirs := pending
		theirs.TraceID = "theirs"
		b.update(func(tx ledger.Tx) error {
			return tx.RecordTraceContexts(t.Context(), other, []ledger.TraceContext{theirs}, noon)
		})
		late := settled
		late.TraceID = "recorded late"
		b.contexts(horizon, late)
		for id, status := range map[string]string{"settled": ledger.Settled, "pending": ledger.Pending} {
			b.settle(engine.ClaimID(acme, id), status, engine.Verified, noon)
		}
		b.settle(engine.ClaimID(acme, "younger"), ledger.Settled, engine.Verified, horizon)
		for _, rehearse := range []bool{true, false} {
			done := b.expire(horizon, rehearse)
			wantSame(t, "dropped and kept", [2]int{done.Contexts, done.KeptContexts}, [2]int{2, 2})
		}
		wantSame(t, "noted, so that no old action is recorded without its agent", b.dropped(acme).Horizon, horizon)
		done := b.expire(horizon, false)
		wantSame(t, "again", [2]int{done.Contexts, done.KeptContexts}, [2]int{0, 2})
		page, looked := ledger.ExpiryPage{Horizon: horizon + 1, Limit: 1, Now: later, Rehearse: true}, 0
		for {
			var result ledger.Expired
			b.update(func(tx ledger.Tx) (err error) {
				result, err = tx.ExpireTraceContexts(t.Context(), acme, page)
				return err
			})
			looked += result.Looked
			if page.After = result.Next; page.After == "" {
				break
			}
		}
		wantSame(t, "pages meet every row", looked, 3)
	})

	t.Run("EventsAreDeliveredWhole", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.Verified, noon, "action.verified")
		wantSame(t, "waiting", b.expire(horizon, false).Reports, 0)
		b.update(func(tx ledger.Tx) error {
			events, err := tx.LeaseOutbox(t.Context(), leaseOf(owner, noon), 10)
			return errors.Join(err, tx.CompleteOutbox(t.Context(), owner, events, nil))
		})
		wantSame(t, "delivered", b.expire(horizon, false).Reports, 1)
	})

	t.Run("PagesMeetEveryRow", func(t *testing.T) {
		b := setup(t, open)
		var facts []engine.Fact
		for i := range 25 {
			facts = append(facts, b.fact(fmt.Sprintf("re_%d", i), "crm", "note_added", fmt.Sprintf("order \" %d", i%4), noon+engine.Instant(i%3)))
		}
		b.ingest(noon, facts...)
		page := ledger.ExpiryPage{Horizon: horizon, Limit: 3, Now: later}
		looked, dropped := 0, 0
		for {
			var result ledger.Expired
			b.update(func(tx ledger.Tx) (err error) {
				result, err = tx.ExpireFacts(t.Context(), acme, page)
				return err
			})
			looked, dropped = looked+result.Looked, dropped+result.Dropped
			if page.After = result.Next; page.After == "" {
				break
			}
		}
		wantSame(t, "looked at and dropped", [2]int{looked, dropped}, [2]int{25, 25})
	})

	t.Run("NoVerdictWithoutItsFacts", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.Verified, noon)
		b.ingest(noon, b.fact("old", "crm", "note_added", "order_1", noon))
		b.expire(horizon, false)
		err := b.store.Update(t.Context(), func(tx ledger.Tx) error {
			_, err := tx.LeaseActions(t.Context(), acme, leaseOf(owner, later), []string{engine.ClaimID(acme, "a")})
			return err
		})
		wantText(t, err, `older than what retention keeps: action "a"; its last verdict stands`)
		late, fresh := act("late", "order_1"), act("fresh", "order_1")
		fresh.RequestedAt = horizon
		b.update(func(tx ledger.Tx) error {
			results, err := ledger.Record(t.Context(), tx, acme, []ledger.RecordRequest{{Action: late, Verify: true}, {Action: fresh, Verify: true}, {Action: act("a", "order_1"), Verify: true}}, later)
			if err == nil {
				wantText(t, results[0].Err, "invalid action: requested_at "+noon.String()+` of action "late" is older than what retention keeps: facts before `+horizon.String()+" were dropped; record actions sooner")
				wantSame(t, "fresh and known", [2]error{results[1].Err, results[2].Err}, [2]error{})
			}
			return err
		})
		b.wantDue("a", notDue)
	})

	t.Run("TooShort", func(t *testing.T) {
		b := setup(t, open)
		_, err := ledger.Expire(t.Context(), b.store, acme, later.Sub(29*engine.Day), later, false, nil)
		if !errors.Is(err, engine.ErrDuration) {
			t.Errorf("error %v, want %v", err, engine.ErrDuration)
		}
	})
}
