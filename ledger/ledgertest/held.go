package ledgertest

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
)

// untilSettled is a version of a contract with updates: until_settled, which compares facts with the session.
func untilSettled(t *testing.T, id string, n int) *contract.Contract {
	t.Helper()
	document := version(t, id, n).Document
	document = bytes.Replace(document, []byte("  window: \"15m\"\n"), []byte("  window: \"15m\"\n  updates: until_settled\n"), 1)
	document = bytes.Replace(document, []byte("type: refund_created, min_trust: shared"), []byte("type: refund_created, min_trust: shared, where_action: {session: session_id}"), 1)
	c := parse(t, document)
	if len(c.HeldFields()) != 6 {
		t.Fatalf("held are %v", c.HeldFields())
	}
	return c
}

// held is an action under "held".
func held(id string) engine.Action {
	a := act(id, "order_1")
	a.ContractID = "held"
	return a
}

// again records an action and says what became of it.
func (b *bundle) again(a engine.Action) ledger.Recorded {
	b.t.Helper()
	return b.record(a)[0]
}

func exerciseHeld(t *testing.T, open opener) {
	setup := func(t *testing.T) *bundle {
		b := setup(t, open)
		b.publish(untilSettled(t, "held", 1))
		return b
	}
	evil := func(t *testing.T) engine.Action {
		a := full(t)
		a.ActionID, a.ContractID, a.ContractVersion, a.Compensates = "a", "held", 0, ""
		return a
	}
	all := []string{"subject_id", "requested_at", "params", "agent_id", "channel", "session_id"}

	t.Run("StandsOnceSettled", func(t *testing.T) {
		b := setup(t)
		b.record(held("a"))
		before := held("a")
		before.Channel, before.Params = "mail", params(t, `{"amount": 400}`)
		got := b.again(before)
		wantSame(t, "before it settled", [2]any{got.Changed, len(got.Conflicting)}, [2]any{true, 0})
		b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.NotVerified, noon)

		sent := evil(t)
		sent.RequestedAt++
		want := before
		want.ContractVersion, want.ActionType, want.SubjectKind = 1, "refund_order", "order"
		// No verdict depends on these.
		want.WorkflowID, want.TraceID, want.SpanID, want.ReferenceID, want.Tool, want.ReportedOutcome = sent.WorkflowID, sent.TraceID, sent.SpanID, sent.ReferenceID, sent.Tool, sent.ReportedOutcome
		sent.SubjectID = "order_2"
		got = b.again(sent)
		wantSame(t, "recorded", got, ledger.Recorded{ClaimID: engine.ClaimID(acme, "a"), Action: want, Changed: true, Conflicting: all})
		wantSame(t, "stored", b.action("a").Action, want)
		b.wantDue("a", notDue)

		got = b.again(sent)
		wantSame(t, "again", [2]any{got.Changed, got.Conflicting}, [2]any{false, all})
	})

	t.Run("EachFieldByItself", func(t *testing.T) {
		b := setup(t)
		original := evil(t)
		b.record(original)
		b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.NotVerified, noon)
		for field, change := range map[string]func(*engine.Action){
			"subject_id":   func(a *engine.Action) { a.SubjectID = "order_2" },
			"requested_at": func(a *engine.Action) { a.RequestedAt-- },
			"params":       func(a *engine.Action) { a.Params = engine.Object{} },
			"agent_id":     func(a *engine.Action) { a.AgentID = "another" },
			"channel":      func(a *engine.Action) { a.Channel = "" },
		} {
			sent := original
			change(&sent)
			got := b.again(sent)
			wantSame(t, field, [2]any{got.Changed, got.Conflicting}, [2]any{false, []string{field}})
			want := original
			want.ContractVersion = 1
			wantSame(t, "stored after "+field, b.action("a").Action, want)
		}
	})

	t.Run("SameContentAgain", func(t *testing.T) {
		b := setup(t)
		original := evil(t)
		b.record(original)
		b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.NotVerified, noon)
		got := b.again(original)
		wantSame(t, "the same", [2]any{got.Changed, got.Conflicting}, [2]any{false, []string(nil)})

		other := original
		other.Params = params(t, `{"reason": "damaged", "amount": 180}`) // the same for every verdict
		other.AgentID, other.SessionID = "", ""                          // not sent: nothing that an update would change
		wantSame(t, "in other words", len(b.again(other).Conflicting), 0)

		other.RequestedAt = noon + 9
		got = b.recordItems(acme, noon+9, ledger.RecordRequest{Action: other, Untimed: true})[0]
		wantSame(t, "without a time", [2]any{len(got.Conflicting), got.Action.RequestedAt}, [2]any{0, noon})
	})

	t.Run("TheDefaultIsTheSpecification", func(t *testing.T) {
		b := setup(t)
		b.record(act("a", "order_1"))
		b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.NotVerified, noon)
		got := b.again(act("a", "order_2"))
		wantSame(t, "recorded", [3]any{got.Changed, len(got.Conflicting), got.Action.SubjectID}, [3]any{true, 0, "order_2"})
	})

	t.Run("ThePinnedVersionDecides", func(t *testing.T) {
		b := setup(t)
		b.record(held("was held"), act("was free", "order_1"))
		b.publish(version(t, "held", 2), untilSettled(t, "refund", 2))
		for _, id := range []string{"was held", "was free"} {
			b.settle(engine.ClaimID(acme, id), ledger.Settled, engine.NotVerified, noon)
		}
		first, second := held("was held"), act("was free", "order_2")
		first.SubjectID = "order_2"
		got := b.record(first, second, held("new"))
		wantSame(t, "conflicting", [3]any{len(got[0].Conflicting), len(got[1].Conflicting), len(got[2].Conflicting)}, [3]any{1, 0, 0})
		wantSame(t, "changed", [3]bool{got[0].Changed, got[1].Changed, got[2].Changed}, [3]bool{false, true, true})
		wantSame(t, "stored", [2]string{b.action("was held").Action.SubjectID, b.action("was free").Action.SubjectID}, [2]string{"order_1", "order_2"})
	})

	t.Run("WhatSettledOnceStandsWhilePendingAgain", func(t *testing.T) {
		b := setup(t)
		item := started("a", 250)
		item.Action.ContractID = "held"
		b.recordItems(acme, noon, item)
		b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.NotVerified, noon)
		b.settle(engine.ClaimID(acme, "a"), ledger.Pending, engine.NotVerified, noon+1)
		sent := held("a")
		sent.SubjectID = "order_2"
		wantSame(t, "conflicting", b.again(sent).Conflicting, []string{"subject_id"})
		b.contexts(noon+1, span("01", 100, 900, "accomplice", "s"))
		wantSame(t, "agent from a context", b.who("a"), [2]string{})
		b.recordItems(acme, noon+1, item)
		wantSame(t, "agent from a context that was there", b.who("a"), [2]string{})
	})

	t.Run("WhatChangedWhileItWasJudgedIsJudgedAnew", func(t *testing.T) {
		b := setup(t)
		b.record(held("a"), held("b"), held("c"))
		due := b.leaseDue(owner, noon)
		runs := make([]ledger.Run, len(due))
		for i := range due {
			runs[i] = runOf(&due[i], due[i].ClaimID, ledger.Settled, engine.NotVerified, engine.NotVerified, noon)
			judged := b.action(due[i].ClaimID).Action
			runs[i].Judged = &judged
			if judged.ActionID == "c" {
				runs[i].Status = ledger.Pending
			}
		}
		sent, pending := held("a"), held("c")
		sent.SubjectID, pending.SubjectID = "order_2", "order_2"
		b.record(sent, pending)

		var stored []ledger.Run
		b.update(func(tx ledger.Tx) (err error) {
			if stored, err = tx.StoreRuns(t.Context(), acme, runs); err != nil {
				return err
			}
			return tx.ReleaseDue(t.Context(), acme, owner, due)
		})
		for i := range stored {
			if stored[i].ClaimID == engine.ClaimID(acme, "a") {
				t.Errorf("stored a settled run of what is recorded no more")
			}
		}
		wantSame(t, "runs", [3]int{len(b.runs("a")), len(b.runs("b")), len(b.runs("c"))}, [3]int{0, 1, 1})
		wantSame(t, "chain", len(b.checkChain(acme)), 4)
		var again []string
		for _, d := range b.leaseDue(owner, noon+1) {
			again = append(again, b.action(d.ClaimID).Action.ActionID)
		}
		wantSame(t, "still due", len(again), 2)

		// Alone, it leaves nothing to store.
		b.update(func(tx ledger.Tx) error {
			stored, err := tx.StoreRuns(t.Context(), acme, []ledger.Run{func() ledger.Run {
				run := runOf(nil, engine.ClaimID(acme, "a"), ledger.Settled, engine.NotVerified, engine.NotVerified, noon)
				judged := held("a")
				run.Judged = &judged
				return run
			}()})
			wantSame(t, "stored", len(stored), 0)
			return err
		})
		wantSame(t, "chain", len(b.checkChain(acme)), 4)
	})

	// An update and a settlement that meet end in one of two orders: the verdict is
	// about what was recorded first and the update conflicts, or the update came
	// first and what it says is judged.
	t.Run("AnUpdateAndASettlementThatMeet", func(t *testing.T) {
		b := setup(t)
		ended := map[string]int{}
		for round := range 40 {
			id := fmt.Sprintf("a%d", round)
			b.record(held(id))
			var conflicting bool
			together(t, 2, func(ctx context.Context, i int) error {
				if i == 0 {
					return b.settleJudging(ctx, engine.ClaimID(acme, id))
				}
				sent := held(id)
				sent.SubjectID = "order_2"
				return b.store.Update(ctx, func(tx ledger.Tx) error {
					results, err := ledger.Record(ctx, tx, acme, []ledger.RecordRequest{{Action: sent, Verify: true}}, noon)
					conflicting = err == nil && len(results[0].Conflicting) > 0
					return err
				})
			})
			subject, runs := b.action(id).Action.SubjectID, b.runs(id)
			switch {
			case conflicting && subject == "order_1" && len(runs) == 1 && runs[0].Headline == "order_1":
				ended["settled first"]++
			case !conflicting && subject == "order_2" && len(runs) == 1 && runs[0].Headline == "order_2":
				ended["updated first"]++
			case !conflicting && subject == "order_2" && len(runs) == 0:
				ended["updated meanwhile"]++
				b.wantDue(id, noon.String())
			default:
				t.Fatalf("round %d: conflicting %t, recorded is %s, runs are %+v", round, conflicting, subject, runs)
			}
		}
		t.Log(ended)
	})
}

// settleJudging leases an action, looks at it and stores a settled run, as a
// verifier does; the headline is the subject that was looked at.
func (b *bundle) settleJudging(ctx context.Context, claimID string) error {
	var due []ledger.Due
	err := b.store.Update(ctx, func(tx ledger.Tx) (err error) {
		due, err = tx.LeaseActions(ctx, acme, leaseOf(owner, noon), []string{claimID})
		return err
	})
	if err != nil {
		return err
	}
	run := runOf(&due[0], claimID, ledger.Settled, engine.NotVerified, engine.NotVerified, noon)
	err = b.store.View(ctx, func(tx ledger.Tx) error {
		found, err := tx.Actions(ctx, acme, []string{claimID})
		if err == nil {
			run.Judged, run.Headline = &found[0].Action, found[0].Action.SubjectID
		}
		return err
	})
	if err != nil {
		return err
	}
	return b.store.Update(ctx, func(tx ledger.Tx) error {
		stored, err := tx.StoreRuns(ctx, acme, []ledger.Run{run})
		if err != nil || len(stored) > 0 {
			return err
		}
		return tx.ReleaseDue(ctx, acme, owner, due)
	})
}
