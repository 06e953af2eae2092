package ledgertest

import (
	"errors"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func params(t *testing.T, text string) engine.Object {
	t.Helper()
	object, err := engine.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// full is an action with every field sent.
func full(t *testing.T) engine.Action {
	return engine.Action{
		ActionID: "act 1", ContractID: "refund", ContractVersion: 1, WorkflowID: "wf", AgentID: "bot", ActionType: "refund_order",
		SubjectID: "order_1", SubjectKind: "order", RequestedAt: noon, Params: params(t, `{"amount": 180.0, "reason": "damaged"}`),
		Channel: "chat", Compensates: "act 0", TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331",
		SessionID: "s1", ReferenceID: "ref", Tool: "refund", ReportedOutcome: "success",
	}
}

func exerciseActions(t *testing.T, open opener) {
	t.Run("EverythingIsKept", func(t *testing.T) {
		b := setup(t, open)
		action := full(t)
		got := b.record(action)
		wantSame(t, "recorded", got, []ledger.Recorded{{ClaimID: engine.ClaimID(acme, "act 1"), Action: action, Created: true, Changed: true}})
		at := noon
		want := ledger.StoredAction{ClaimID: engine.ClaimID(acme, "act 1"), Action: action, RecordedAt: noon, NextCheckAt: &at}
		wantSame(t, "by action id", b.action("act 1"), want)
		wantSame(t, "by internal id", b.action(engine.ClaimID(acme, "act 1")), want)
		wantSame(t, "again", b.record(action), []ledger.Recorded{{ClaimID: engine.ClaimID(acme, "act 1"), Action: action}})
	})

	t.Run("WhatAnUpdateChanges", func(t *testing.T) {
		b := setup(t, open)
		b.publish(version(t, "other_contract", 1))
		b.record(full(t))
		update := engine.Action{
			ActionID: "act 1", ContractID: "other_contract", WorkflowID: "wf2", AgentID: "bot2", ActionType: "x",
			SubjectID: "order_2", SubjectKind: "ticket", RequestedAt: noon + 5, Params: params(t, `{"amount": 1}`),
			Channel: "mail", Compensates: "y", TraceID: "1af7651916cd43dd8448eb211c80319c", SpanID: "c7ad6b7169203331",
			SessionID: "s2", ReferenceID: "ref2", Tool: "t2", ReportedOutcome: "error",
		}
		want := full(t)
		want.WorkflowID, want.AgentID, want.SubjectID, want.RequestedAt, want.Params, want.Channel = "wf2", "bot2", "order_2", noon+5, update.Params, "mail"
		got := b.recordFor(acme, noon+60, true, update)
		wantSame(t, "recorded", got, []ledger.Recorded{{ClaimID: engine.ClaimID(acme, "act 1"), Action: want, Changed: true}})
		stored := b.action("act 1")
		wantSame(t, "stored", stored.Action, want)
		wantSame(t, "recorded at", stored.RecordedAt, noon)
	})

	t.Run("UpdateFillsGapsAndKeepsAgent", func(t *testing.T) {
		b := setup(t, open)
		bare := act("a", "order_1")
		bare.AgentID, bare.WorkflowID, bare.Channel, bare.Params = "bot", "wf", "chat", params(t, `{"amount": 1}`)
		b.record(bare)
		update := act("a", "order_1")
		update.TraceID, update.SpanID, update.SessionID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "s1"
		update.ReferenceID, update.Tool, update.ReportedOutcome = "ref", "t", "success"
		want := update
		want.ContractVersion, want.ActionType, want.SubjectKind, want.AgentID = 1, "refund_order", "order", "bot"
		wantSame(t, "recorded", b.record(update)[0].Action, want)
		wantSame(t, "stored", b.action("a").Action, want)
	})

	t.Run("SameIdTwiceInOneBatch", func(t *testing.T) {
		b := setup(t, open)
		first, second := act("a", "order_1"), act("a", "order_2")
		first.Channel = "chat"
		second.SessionID = "s1"
		got := b.record(first, act("b", "order_9"), second)
		wantSame(t, "created", []bool{got[0].Created, got[1].Created, got[2].Created}, []bool{true, true, false})
		wantSame(t, "changed", []bool{got[0].Changed, got[1].Changed, got[2].Changed}, []bool{true, true, true})
		stored := b.action("a").Action
		wantSame(t, "stored", [3]string{stored.SubjectID, stored.SessionID, stored.Channel}, [3]string{"order_2", "s1", ""})
	})

	t.Run("D33_NotCapturedIsNotEmpty", func(t *testing.T) {
		b := setup(t, open)
		empty, hidden := act("empty", "order_1"), act("hidden", "order_1")
		empty.Params = engine.EmptyObject()
		b.record(empty, hidden)
		wantSame(t, "captured", [2]bool{b.action("empty").Action.Params.Captured(), b.action("hidden").Action.Params.Captured()}, [2]bool{true, false})
	})

	t.Run("VersionIsPinned", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("old", "order_1"))
		b.publish(version(t, "refund", 2))
		explicit := act("explicit", "order_1")
		explicit.ContractVersion = 1
		got := b.record(act("new", "order_1"), act("old", "order_1"), explicit)
		wantSame(t, "versions", [3]int{got[0].Action.ContractVersion, got[1].Action.ContractVersion, got[2].Action.ContractVersion}, [3]int{2, 1, 1})
	})

	t.Run("DefaultsAreTheContracts", func(t *testing.T) {
		b := setup(t, open)
		got := b.recordFor(acme, noon+7, false, act("a", "order_1"))[0].Action
		wantSame(t, "defaults", [2]string{got.ActionType, got.SubjectKind}, [2]string{"refund_order", "order"})
	})

	t.Run("TheFirstMomentIsAMoment", func(t *testing.T) {
		b := setup(t, open)
		action := act("a", "order_1")
		action.RequestedAt = 0
		b.record(action)
		wantSame(t, "requested at", b.action("a").Action.RequestedAt.String(), "1970-01-01T00:00:00Z")
	})

	t.Run("RecordTakesTheGoodOnes", func(t *testing.T) {
		b := setup(t, open)
		unknown, versioned, bad := act("u", "order_1"), act("v", "order_1"), act("w", "order_1")
		unknown.ContractID, versioned.ContractVersion, bad.SubjectID = "nobody", 9, ""
		var results []ledger.RecordResult
		b.update(func(tx ledger.Tx) (err error) {
			results, err = ledger.Record(t.Context(), tx, acme, []ledger.RecordRequest{
				{Action: unknown}, {Action: act("good", "order_1")}, {Action: versioned}, {Action: bad},
			}, noon)
			return err
		})
		wantText(t, results[0].Err, `unknown contract "nobody": it was not published to this store; run countersign contracts publish with its file`)
		wantText(t, results[2].Err, `unknown contract "refund" version 9: it was not published to this store; run countersign contracts publish with its file`)
		wantText(t, results[3].Err, `invalid action: invalid id: subject_id is empty; 1 to 512 bytes are needed`)
		if results[1].Err != nil || !results[1].Created {
			t.Errorf("the good one: %+v", results[1])
		}
		wantSame(t, "stored", len(b.actions("u", "good", "v", "w")), 1)
	})

	t.Run("D15_VerifyQueuesTheFirstVerification", func(t *testing.T) {
		b := setup(t, open)
		b.recordFor(acme, noon, false, act("quiet", "order_1"))
		b.record(act("auto", "order_1"))
		b.wantDue("quiet", notDue)
		b.wantDue("auto", noon.String())
		changed := act("quiet", "order_2")
		b.recordFor(acme, noon+1, false, changed)
		b.wantDue("quiet", notDue) // never verified, never asked for
		b.recordFor(acme, noon+2, true, changed)
		b.wantDue("quiet", (noon + 2).String())
		b.recordFor(acme, noon+3, true, changed)
		b.wantDue("quiet", (noon + 2).String())
	})

	t.Run("UpdateMakesUnsettledDue", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("pending", "order_1"), act("settled", "order_1"))
		b.settle(engine.ClaimID(acme, "pending"), ledger.Pending, engine.NotVerified, noon)
		b.settle(engine.ClaimID(acme, "settled"), ledger.Settled, engine.Verified, noon)
		next := noon.Add(engine.Minute).String()
		b.wantDue("pending", next)
		b.recordFor(acme, noon+10, true, act("pending", "order_1"), act("settled", "order_1"))
		b.wantDue("pending", next) // nothing changed
		b.wantDue("settled", notDue)
		b.recordFor(acme, noon+20, false, act("pending", "order_2"), act("settled", "order_2"))
		b.wantDue("pending", (noon + 20).String())
		b.wantDue("settled", notDue)
	})

	t.Run("D18_CyclesAreRejected", func(t *testing.T) {
		b := setup(t, open)
		compensating := func(id, of string) engine.Action {
			a := act(id, "order_1")
			a.Compensates = of
			return a
		}
		b.record(compensating("b", "a"), compensating("c", "b")) // a is not known yet
		var results []ledger.RecordResult
		b.update(func(tx ledger.Tx) (err error) {
			results, err = ledger.Record(t.Context(), tx, acme, []ledger.RecordRequest{
				{Action: compensating("a", "c")}, {Action: compensating("d", "d")}, {Action: compensating("x", "y")}, {Action: compensating("y", "x")}, {Action: compensating("e", "c")},
			}, noon)
			return err
		})
		wantText(t, results[0].Err, `compensation cycle: action "a" compensates "c", which compensates it in turn; name the action that is corrected`)
		wantText(t, results[1].Err, `invalid action: compensates names the action itself`)
		wantText(t, results[3].Err, `compensation cycle: action "y" compensates "x", which compensates it in turn; name the action that is corrected`)
		if !errors.Is(results[0].Err, ledger.ErrCycle) || results[2].Err != nil || results[4].Err != nil {
			t.Errorf("results %+v", results)
		}
		// Of a known action the recorded compensation stands.
		b.record(compensating("c", "e"))
		wantSame(t, "compensates", b.action("c").Action.Compensates, "b")
	})

	t.Run("D18_ChainsEndAtTheTenant", func(t *testing.T) {
		b := setup(t, open)
		compensating := func(id, of string) engine.Action {
			a := act(id, "order_1")
			a.Compensates = of
			return a
		}
		b.recordFor(other, noon, false, compensating("b", "a"), compensating("y", "z"))
		b.recordFor(acme, noon, false, compensating("x", "y"))
		b.recordFor(acme, noon, false, compensating("a", "b"), compensating("z", "x"))
		b.view(func(tx ledger.Tx) error {
			leads, err := tx.CompensationChains(t.Context(), acme, []string{"z", "b", "nobody"})
			wantSame(t, "chains", leads, map[string]string{"z": "x", "x": "y"})
			return err
		})
	})

	t.Run("TenantsNeverMeet", func(t *testing.T) {
		b := setup(t, open)
		mine, theirs := act("a", "order_1"), act("a", "order_2")
		got := append(b.recordFor(acme, noon, false, mine), b.recordFor(other, noon, false, theirs)...)
		wantSame(t, "created", [2]bool{got[0].Created, got[1].Created}, [2]bool{true, true})
		if got[0].ClaimID == got[1].ClaimID {
			t.Errorf("both have the internal id %s", got[0].ClaimID)
		}
		wantSame(t, "mine", b.action("a").Action.SubjectID, "order_1")
		wantSame(t, "theirs is not mine", len(b.actions(got[1].ClaimID)), 0)
	})

	t.Run("InternalIdWins", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		b.record(act(engine.ClaimID(acme, "a"), "order_2"))
		wantSame(t, "subject", b.action(engine.ClaimID(acme, "a")).Action.SubjectID, "order_1")
		found := b.actions("nobody", "a", engine.ClaimID(acme, "a"), "a")
		wantSame(t, "each once", len(found), 1)
	})

	t.Run("LargeParams", func(t *testing.T) {
		b := setup(t, open)
		large := act("a", "order_1")
		large.Params = params(t, `{"text":"`+strings.Repeat(`\u0001"`[:6], 5000)+`"}`)
		b.record(large)
		wantSame(t, "params", b.action("a").Action.Params.Text() == large.Params.Text(), true)
	})
}
