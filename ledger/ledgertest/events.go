package ledgertest

import (
	"context"
	"fmt"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func (b *bundle) readEvents(tenant string, after ledger.Position, limit int) (page ledger.EventPage) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) (err error) {
		page, err = tx.ReadEvents(b.t.Context(), tenant, after, limit)
		return err
	})
	return page
}

// allEvents reads page by page to the end.
func (b *bundle) allEvents(tenant string, after ledger.Position, limit int) (told []string) {
	b.t.Helper()
	for {
		page := b.readEvents(tenant, after, limit)
		for _, e := range page.Events {
			if e.Compare(after) <= 0 {
				b.t.Fatalf("event %s after %s", e.Position, after)
			}
			after = e.Position
			told = append(told, fmt.Sprintf("%s %s %s", e.Position, e.Kind, e.ActionID))
		}
		if page.Next != after {
			b.t.Fatalf("the next page begins at %s, not after %s", page.Next, after)
		}
		if !page.More {
			return told
		}
	}
}

func (b *bundle) eventHead(tenant string) (head ledger.Position) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) (err error) {
		head, err = tx.EventHead(b.t.Context(), tenant)
		return err
	})
	return head
}

func exerciseEvents(t *testing.T, open opener) {
	t.Run("OneSequenceOfRunsAndParkedWork", func(t *testing.T) {
		b := setup(t, open)
		wantSame(t, "empty", b.allEvents(acme, ledger.Position{}, 10), []string(nil))
		wantSame(t, "head of nothing", b.eventHead(acme), ledger.Position{})
		b.record(act("p", "order_9"), act("q", "order_9"))
		due := b.leaseDue(owner, noon)
		b.park(noon, ledger.Parked{Due: due[0], Error: "evaluators disagree"}, ledger.Parked{Due: due[1], Error: "no such thing \xff"})
		wantSame(t, "head before any run", b.eventHead(acme).Seq, int64(0))
		b.record(act("a", "order_1"), act("b", "order_2"))
		a, second := engine.ClaimID(acme, "a"), engine.ClaimID(acme, "b")
		b.settle(a, ledger.Pending, engine.NotVerified, noon, "action.pending")
		b.settle(a, ledger.Pending, engine.NotVerified, noon+1) // quiet
		b.settle(second, ledger.Settled, engine.Verified, noon+2, "action.verified", "action.compensated")
		b.record(act("r", "order_9"))
		due = b.leaseDue(owner, noon)
		b.park(noon+3, ledger.Parked{Due: due[0], Error: "evaluators disagree: x"})
		head := b.eventHead(acme)
		b.settle(a, ledger.Settled, engine.Verified, noon+4, "action.verified")
		parked := []string{"p", "q"}
		if engine.ClaimID(acme, "q") < engine.ClaimID(acme, "p") {
			parked = []string{"q", "p"}
		}
		want := []string{
			"0-16 action.parked " + parked[0], "0-17 action.parked " + parked[1],
			"2-0 action.pending a", "4-0  a", "6-0 action.verified b", "6-1 action.compensated b", "6-16 action.parked r", "8-0 action.verified a",
		}
		for limit := 1; limit <= 9; limit++ {
			wantSame(t, fmt.Sprintf("pages of %d", limit), b.allEvents(acme, ledger.Position{}, limit), want)
			for i := range want {
				after := b.readEvents(acme, ledger.Position{}, 10).Events[i].Position
				wantSame(t, fmt.Sprintf("pages of %d after %s", limit, after), b.allEvents(acme, after, limit), want[i+1:])
			}
		}
		wantSame(t, "after what was the head", b.allEvents(acme, head, 10), want[7:])
		wantSame(t, "after the end", b.allEvents(acme, b.eventHead(acme), 10), []string(nil))
		wantSame(t, "the other tenant's", b.allEvents(other, ledger.Position{}, 10), []string(nil))
	})

	t.Run("WhatAnEventHolds", func(t *testing.T) {
		b := setup(t, open)
		action := act("a", "order_1")
		action.AgentID, action.WorkflowID, action.Compensates = "bot", "wf", "a0"
		action.TraceID, action.SpanID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
		b.record(act("a0", "order_1"), action)
		id := engine.ClaimID(acme, "a")
		run := b.settle(id, ledger.Settled, engine.Verified, noon+1, "action.verified")
		verdict := func(v ledger.StoredVerdict) ledger.EventVerdict {
			return ledger.EventVerdict{Verdict: v.Verdict, Hash: v.Hash}
		}
		want := ledger.Event{
			Position: ledger.Position{Seq: run.Seq}, Kind: "action.verified", ClaimID: id, ActionID: "a", Contract: run.Contract,
			AgentID: "bot", WorkflowID: "wf", SubjectID: "order_1", Compensates: "a0", TraceID: action.TraceID, SpanID: action.SpanID,
			At: noon + 1, Status: ledger.Settled, Headline: run.Headline, Outcome: verdict(run.Outcome), Policy: verdict(run.Policy),
		}
		wantSame(t, "of a run", b.readEvents(acme, ledger.Position{}, 10).Events, []ledger.Event{want})
		b.record(act("b", "order_2"))
		for _, due := range b.leaseDue(owner, noon+2) {
			if due.ClaimID == engine.ClaimID(acme, "b") {
				b.park(noon+2, ledger.Parked{Due: due, Error: "evaluators disagree"})
			}
		}
		wantSame(t, "of parked work", b.readEvents(acme, want.Position, 10).Events, []ledger.Event{{
			Position: ledger.Position{Seq: run.Seq, N: ledger.FirstParking}, Kind: ledger.ParkedEvent, ClaimID: engine.ClaimID(acme, "b"), ActionID: "b",
			Contract: ledger.ContractRef{ID: "refund", Version: 1}, SubjectID: "order_2", At: noon + 2, Error: "evaluators disagree",
		}})
	})

	t.Run("RetentionTakesTheEventsOfParkedWork", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("mended", "order_1"), act("still", "order_2"), act("young", "order_3"), act("last", "order_4"))
		park := func(now engine.Instant, id string) {
			t.Helper()
			b.update(func(tx ledger.Tx) error {
				due, err := tx.LeaseActions(t.Context(), acme, leaseOf(owner, now), []string{engine.ClaimID(acme, id)})
				if err != nil {
					return err
				}
				return tx.Park(t.Context(), acme, owner, []ledger.Parked{{Due: due[0], Error: "x"}}, now)
			})
		}
		settle := func(id string) {
			b.settle(engine.ClaimID(acme, id), ledger.Settled, engine.Verified, later)
		}
		settle("mended") // so that the sequence does not begin with parked work
		park(noon, "mended")
		park(noon, "still")
		settle("mended")
		park(horizon, "young")
		settle("young")
		park(noon, "last")
		b.ingest(noon, b.fact("n1", "crm", "note_added", "order_4", noon)) // wakes it
		runs := []string{"2-0  mended", "4-0  mended", "6-0  young"}
		wantSame(t, "before", b.allEvents(acme, ledger.Position{}, 10), []string{
			runs[0], "2-16 action.parked mended", "2-17 action.parked still", runs[1], "4-16 action.parked young", runs[2], "6-16 action.parked last"})
		wantSame(t, "rehearsed", b.expire(horizon, true).Parkings, 1)
		wantSame(t, "nothing went", len(b.allEvents(acme, ledger.Position{}, 10)), 7)
		done := b.expire(horizon, false)
		wantSame(t, "gone and kept", [2]int{done.Parkings, done.KeptParkings}, [2]int{1, 2})
		park(later, "last")
		wantSame(t, "after", b.allEvents(acme, ledger.Position{}, 10), []string{
			runs[0], "2-17 action.parked still", runs[1], "4-16 action.parked young", runs[2], "6-16 action.parked last", "6-17 action.parked last"})
	})

	t.Run("WhatIsNotParkedIsNotTold", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"), act("b", "order_2"))
		due := b.leaseDue(owner, noon)
		b.ingest(noon+1, b.fact("n1", "crm", "note_added", "order_1", noon)) // wakes a
		b.update(func(tx ledger.Tx) error {
			if err := tx.Park(t.Context(), acme, "somebody", []ledger.Parked{{Due: due[0], Error: "x"}, {Due: due[1], Error: "x"}}, noon); err != nil {
				return err
			}
			return tx.Park(t.Context(), acme, owner, []ledger.Parked{{Due: due[0], Error: "x"}, {Due: due[1], Error: "x"}}, noon)
		})
		wantSame(t, "events", b.allEvents(acme, ledger.Position{}, 10), []string{"0-16 action.parked b"})
	})

	// Who reads up to what it sees, again and again, misses nothing, whoever commits meanwhile.
	t.Run("NothingIsPutBeforeWhatWasRead", func(t *testing.T) {
		b := setup(t, open)
		const writers, each = 4, 8
		var actions []engine.Action
		for i := range writers * each {
			actions = append(actions, act(fmt.Sprintf("a%d", i), "order_1"))
		}
		b.record(actions...)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		seen := map[string]int{}
		done := make(chan error, 1)
		go func() {
			var after ledger.Position
			for {
				ended := ctx.Err() != nil
				page := ledger.EventPage{Next: after}
				err := b.store.View(context.WithoutCancel(ctx), func(tx ledger.Tx) (err error) {
					page, err = tx.ReadEvents(context.WithoutCancel(ctx), acme, after, 5)
					return err
				})
				for _, e := range page.Events {
					seen[e.ActionID]++
				}
				after = page.Next
				if err != nil || ended && !page.More {
					done <- err
					return
				}
			}
		}()
		together(t, writers, func(ctx context.Context, w int) error {
			for i := range each {
				id := engine.ClaimID(acme, fmt.Sprintf("a%d", w*each+i))
				err := b.store.Update(ctx, func(tx ledger.Tx) error {
					due, err := tx.LeaseActions(ctx, acme, leaseOf(owner, noon), []string{id})
					if err != nil {
						return err
					}
					if i%2 == 1 {
						return tx.Park(ctx, acme, owner, []ledger.Parked{{Due: due[0], Error: "x"}}, noon)
					}
					run := runOf(&due[0], id, ledger.Settled, engine.Verified, engine.Verified, noon)
					run.Events = []string{"action.verified"}
					_, err = tx.StoreRuns(ctx, acme, []ledger.Run{run})
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for _, a := range actions {
			if seen[a.ActionID] != 1 {
				t.Errorf("action %s was told %d times", a.ActionID, seen[a.ActionID])
			}
		}
	})
}
