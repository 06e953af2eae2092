package ledgertest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func (b *bundle) park(now engine.Instant, parked ...ledger.Parked) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) error { return tx.Park(b.t.Context(), acme, owner, parked, now) })
}

func (b *bundle) parkedActions() (parked []ledger.Parked) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) (err error) {
		parked, err = tx.ParkedActions(b.t.Context(), acme, 10)
		return err
	})
	return parked
}

func (b *bundle) dueTenants(now engine.Instant) (tenants []string) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) (err error) {
		tenants, err = tx.DueTenants(b.t.Context(), now, 10)
		return err
	})
	return tenants
}

func (b *bundle) leaseActions(owner string, now engine.Instant, ids ...string) (due []ledger.Due) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) (err error) {
		due, err = tx.LeaseActions(b.t.Context(), acme, leaseOf(owner, now), ids)
		return err
	})
	return due
}

func claimsOf(due []ledger.Due) []string {
	var ids []string
	for _, d := range due {
		ids = append(ids, d.ClaimID)
	}
	return ids
}

func exerciseDue(t *testing.T, open opener) {
	t.Run("LeasesOldestFirst", func(t *testing.T) {
		b := setup(t, open)
		for i, offset := range []engine.Instant{5, 1, 9, 3} {
			b.recordFor(acme, noon+offset, true, act(fmt.Sprintf("a%d", i), "order_1"))
		}
		var due []ledger.Due
		b.update(func(tx ledger.Tx) (err error) {
			due, err = tx.LeaseDue(t.Context(), acme, leaseOf(owner, noon+8), 2)
			return err
		})
		wantSame(t, "first two", claimsOf(due), []string{engine.ClaimID(acme, "a1"), engine.ClaimID(acme, "a3")})
		wantSame(t, "row", due[0], ledger.Due{
			ClaimID: engine.ClaimID(acme, "a1"), Contract: ledger.ContractRef{ID: "refund", Version: 1},
			DueAt: noon + 1, Generation: due[0].Generation, TriggeredBy: "action", Attempts: 1,
		})
		wantSame(t, "the rest that is due", claimsOf(b.leaseDue("verifier-2", noon+8)), []string{engine.ClaimID(acme, "a0")})
	})

	t.Run("NobodyLeasesTwice", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		wantSame(t, "first", len(b.leaseDue(owner, noon)), 1)
		wantSame(t, "somebody else", len(b.leaseDue("verifier-2", noon+1)), 0)
		wantSame(t, "the same owner", len(b.leaseDue(owner, noon+1)), 0)
		wantSame(t, "by name", len(b.leaseActions("verifier-2", noon+1, engine.ClaimID(acme, "a"))), 0)
	})

	t.Run("EndedLeasesAreTakenOver", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		first := b.leaseDue(owner, noon)
		ends := noon.Add(engine.Minute)
		wantSame(t, "while it holds", len(b.leaseDue("verifier-2", ends-1)), 0)
		second := b.leaseDue("verifier-2", ends)
		wantSame(t, "taken over", [2]int{len(second), second[0].Attempts}, [2]int{1, 2})
		run := runOf(&first[0], first[0].ClaimID, ledger.Settled, engine.Verified, engine.Verified, noon)
		wantLeaseLost(t, b, run)
		run.Owner, run.Lease = "verifier-2", &second[0]
		b.storeRuns(run)
		wantLeaseLost(t, b, run) // the due row is gone
		wantSame(t, "runs", len(b.runs("a")), 1)
	})

	t.Run("ReleaseGivesBack", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		due := b.leaseDue(owner, noon)
		b.update(func(tx ledger.Tx) error { return tx.ReleaseDue(t.Context(), acme, "verifier-2", due) })
		wantSame(t, "not the owner's", len(b.leaseDue("verifier-2", noon)), 0)
		b.update(func(tx ledger.Tx) error { return tx.ReleaseDue(t.Context(), acme, owner, due) })
		again := b.leaseDue("verifier-2", noon)
		wantSame(t, "given back", [2]int{len(again), again[0].Attempts}, [2]int{1, 2})
	})

	t.Run("LeaseActionsMakesAndRemovesRows", func(t *testing.T) {
		b := setup(t, open)
		id := b.done("a", "order_1")
		b.recordFor(acme, noon+100, true, act("future", "order_1"))
		future := engine.ClaimID(acme, "future")
		due := b.leaseActions(owner, noon+5, id, future, "clm_unknown")
		byClaim := map[string]ledger.Due{}
		for _, d := range due {
			byClaim[d.ClaimID] = d
		}
		wantSame(t, "made", [2]bool{byClaim[id].Made, byClaim[future].Made}, [2]bool{true, false})
		wantSame(t, "why", [2]string{byClaim[id].TriggeredBy, byClaim[future].TriggeredBy}, [2]string{"manual", "manual"})
		b.update(func(tx ledger.Tx) error { return tx.ReleaseDue(t.Context(), acme, owner, due) })
		b.wantDue("a", notDue)
		b.wantDue("future", (noon + 100).String())
		wantSame(t, "why, given back", b.triggers(noon+100), map[string]string{future: "action"})
	})

	t.Run("MadeRowsThatWereWokenStay", func(t *testing.T) {
		b := setup(t, open)
		id := b.done("a", "order_1")
		due := b.leaseActions(owner, noon+5, id)
		b.ingest(noon+6, b.fact("n1", "crm", "note_added", "order_1", noon))
		b.update(func(tx ledger.Tx) error { return tx.ReleaseDue(t.Context(), acme, owner, due) })
		b.wantDue("a", (noon + 6).String())
	})

	t.Run("D16_WokenAfterTheLeaseStaysDue", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"), act("b", "order_2"))
		due := b.leaseDue(owner, noon)
		b.ingest(noon+3, b.fact("n1", "crm", "note_added", "order_1", noon))
		var runs []ledger.Run
		for i := range due {
			runs = append(runs, runOf(&due[i], due[i].ClaimID, ledger.Settled, engine.Verified, engine.Verified, noon+4))
		}
		b.storeRuns(runs...)
		b.wantDue("a", (noon + 3).String())
		b.wantDue("b", notDue)
		wantSame(t, "why", b.triggers(noon+3), map[string]string{engine.ClaimID(acme, "a"): "fact:n1"})
		wantSame(t, "attempts begin again", b.leaseDue(owner, noon+3)[0].Attempts, 2) // triggers leased it once
	})

	t.Run("ParkedWorkHoldsNobody", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("bad", "order_1"), act("good", "order_2"))
		due := b.leaseDue(owner, noon)
		bad := due[0]
		if bad.ClaimID != engine.ClaimID(acme, "bad") {
			bad = due[1]
		}
		b.park(noon+7, ledger.Parked{Due: bad, Error: "evaluators disagree: \"x\" \xff"})
		b.update(func(tx ledger.Tx) error { return tx.ReleaseDue(t.Context(), acme, owner, due) })
		wantSame(t, "due", claimsOf(b.leaseDue(owner, noon.Add(engine.Week))), []string{engine.ClaimID(acme, "good")})
		parked := b.parkedActions()
		wantSame(t, "parked", len(parked), 1)
		wantSame(t, "row", parked[0], ledger.Parked{
			Due:      ledger.Due{ClaimID: bad.ClaimID, Contract: bad.Contract, DueAt: noon, Generation: bad.Generation, TriggeredBy: "action", Attempts: 1},
			ActionID: "bad", Error: "evaluators disagree: \"x\" \uFFFD", At: noon + 7,
		})
		stored := b.action("bad")
		if stored.ParkedError != parked[0].Error || stored.NextCheckAt != nil {
			t.Errorf("stored action: parked %q, next check %v", stored.ParkedError, stored.NextCheckAt)
		}
		manual := b.leaseActions(owner, noon+8, bad.ClaimID)
		wantSame(t, "leased by name", len(manual), 1)
		b.storeRuns(runOf(&manual[0], bad.ClaimID, ledger.Settled, engine.Verified, engine.Verified, noon+8))
		wantSame(t, "parked after a run", len(b.parkedActions()), 0)
	})

	t.Run("WhatWasWokenIsNotParked", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		due := b.leaseDue(owner, noon)
		b.ingest(noon+3, b.fact("n1", "crm", "note_added", "order_1", noon))
		b.park(noon+4, ledger.Parked{Due: due[0], Error: "too early"})
		wantSame(t, "parked", len(b.parkedActions()), 0)
		b.wantDue("a", (noon + 3).String())
	})

	t.Run("DueTenants", func(t *testing.T) {
		b := setup(t, open)
		b.recordFor(other, noon+20, true, act("a", "order_1"))
		b.recordFor(acme, noon+10, true, act("a", "order_1"))
		wantSame(t, "tenants before", b.dueTenants(noon+9), []string{})
		wantSame(t, "tenants at the first", b.dueTenants(noon+10), []string{acme})
		wantSame(t, "tenants at both", b.dueTenants(noon+20), []string{acme, other})
		due := b.leaseDue(owner, noon+10)
		wantSame(t, "tenants without what is leased", b.dueTenants(noon+20), []string{other})
		b.park(noon+10, ledger.Parked{Due: due[0], Error: "x"})
		b.update(func(tx ledger.Tx) error {
			_, err := tx.LeaseDue(t.Context(), other, leaseOf(owner, noon+20), 10)
			return err
		})
		wantSame(t, "tenants when it ended", b.dueTenants((noon + 20).Add(engine.Minute)), []string{other})
	})

	t.Run("TenantsNeverMeet", func(t *testing.T) {
		b := setup(t, open)
		b.recordFor(other, noon, true, act("a", "order_1"))
		b.recordFor(other, noon, false, act("quiet", "order_1"))
		b.recordFor(acme, noon+1, true, act("a", "order_1"))
		theirs, quiet := engine.ClaimID(other, "a"), engine.ClaimID(other, "quiet")
		var first []ledger.Due
		b.update(func(tx ledger.Tx) (err error) {
			first, err = tx.LeaseDue(t.Context(), acme, leaseOf(owner, noon+1), 1)
			return err
		})
		wantSame(t, "one of mine, though theirs are older", claimsOf(first), []string{engine.ClaimID(acme, "a")})
		wantSame(t, "by the other's id", len(b.leaseActions(owner, noon, theirs, quiet)), 0)

		// Another tenant's work is not mine to give back, to park or to finish.
		var due []ledger.Due
		b.update(func(tx ledger.Tx) (err error) {
			due, err = tx.LeaseActions(t.Context(), other, leaseOf(owner, noon), []string{theirs, quiet})
			return err
		})
		wantSame(t, "leased there", len(due), 2)
		for i := range due {
			run := runOf(&due[i], due[i].ClaimID, ledger.Settled, engine.Verified, engine.Verified, noon)
			wantLeaseLost(t, b, run)
		}
		b.update(func(tx ledger.Tx) error {
			return errors.Join(
				tx.ReleaseDue(t.Context(), acme, owner, due),
				tx.Park(t.Context(), acme, owner, []ledger.Parked{{Due: due[0], Error: "x"}, {Due: due[1], Error: "x"}}, noon))
		})
		b.update(func(tx ledger.Tx) error {
			parked, err := tx.ParkedActions(t.Context(), other, 10)
			wantSame(t, "parked there", len(parked), 0)
			again, leaseErr := tx.LeaseActions(t.Context(), other, leaseOf("verifier-2", noon), []string{theirs, quiet})
			wantSame(t, "still held there", len(again), 0)
			return errors.Join(err, leaseErr)
		})
	})
}
