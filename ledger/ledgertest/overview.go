package ledgertest

import (
	"fmt"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// story is one action of a tally: what became of it, and what its agent said.
type story struct {
	id, agent, reported string
	at                  engine.Instant
	// status is empty for an action that was not verified.
	status          string
	outcome, policy engine.RawVerdict
	// corrected: a later action compensates this one and passes.
	corrected bool
}

func (b *bundle) tell(stories ...story) {
	b.t.Helper()
	for _, s := range stories {
		a := act(s.id, "order_"+s.id)
		a.AgentID, a.ReportedOutcome, a.RequestedAt = s.agent, s.reported, s.at
		b.recordFor(acme, s.at, false, a)
		if s.status != "" {
			b.storeRuns(runOf(nil, engine.ClaimID(acme, s.id), s.status, s.outcome, s.policy, s.at))
		}
		if !s.corrected {
			continue
		}
		by := act("fix-"+s.id, "order_"+s.id)
		by.AgentID, by.Compensates, by.RequestedAt = "repair", s.id, s.at+1
		b.recordFor(acme, s.at, false, by)
		b.storeRuns(runOf(nil, engine.ClaimID(acme, by.ActionID), ledger.Settled, engine.Verified, engine.Verified, s.at+1))
	}
}

func exerciseOverview(t *testing.T, open opener) {
	const step = engine.Hour
	hour := noon - noon%engine.Instant(step)
	pass, fail, unknown := engine.Verified, engine.NotVerified, engine.Unverifiable
	stories := []story{
		{"a", "bot", "success", hour, ledger.Settled, pass, pass, false},
		{"b", "bot", "success", hour + 3599, ledger.Settled, fail, fail, false},
		{"c", "bot", "error", hour + 3600, ledger.Settled, fail, fail, false},
		{"d", "bot", "success", hour + 3600, ledger.Settled, pass, fail, true},
		{"e", "", "success", hour + 3601, ledger.Pending, fail, fail, false},
		{"f", "", "", hour + 3601, ledger.Settled, unknown, unknown, false},
		{"g", "clerk", "", hour + 7199, "", "", "", false},
		{"late", "bot", "", hour + 7200, ledger.Settled, pass, pass, false},
	}
	all := ledger.TallyFilter{Since: hour, Until: hour + 7200, Step: step, Limit: 10}
	tally := func(b *bundle, filter ledger.TallyFilter) (contracts, agents []ledger.Tally) {
		b.t.Helper()
		b.view(func(tx ledger.Tx) (err error) {
			if contracts, err = tx.TallyContracts(b.t.Context(), acme, filter); err != nil {
				return err
			}
			agents, err = tx.TallyAgents(b.t.Context(), acme, filter)
			return err
		})
		return contracts, agents
	}

	t.Run("Tallies", func(t *testing.T) {
		b := setup(t, open)
		b.tell(stories...)
		b.recordFor(other, noon, false, act("foreign", "order_a"))
		contracts, agents := tally(b, all)
		wantSame(t, "by contract and hour", contracts, []ledger.Tally{
			{Key: "refund", At: hour, Total: 2, Pass: 1, Fail: 1, Contradicted: 1},
			{Key: "refund", At: hour + 3600, Total: 6, Pass: 1, Fail: 2, Unknown: 1, Pending: 1, Unverified: 1, Compensated: 1},
		})
		wantSame(t, "by agent", agents, []ledger.Tally{
			{Key: "bot", Total: 4, Pass: 1, Fail: 3, Compensated: 1, Contradicted: 1},
			{Key: "", Total: 2, Unknown: 1, Pending: 1},
			{Key: "clerk", Total: 1, Unverified: 1},
			{Key: "repair", Total: 1, Pass: 1},
		})
	})

	t.Run("TalliesOfOneAgentAndContract", func(t *testing.T) {
		b := setup(t, open)
		b.publish(version(t, "other_contract", 1))
		b.tell(stories[0])
		elsewhere := act("z", "order_z")
		elsewhere.ContractID, elsewhere.AgentID, elsewhere.RequestedAt = "other_contract", "bot", hour
		b.recordFor(acme, hour, false, elsewhere)
		filter := all
		filter.ContractID, filter.AgentID = "refund", "bot"
		contracts, agents := tally(b, filter)
		wantSame(t, "by contract", contracts, []ledger.Tally{{Key: "refund", At: hour, Total: 1, Pass: 1}})
		wantSame(t, "by agent", agents, []ledger.Tally{{Key: "bot", Total: 1, Pass: 1}})
		filter = all
		filter.Limit, filter.Step = 1, 2*step
		contracts, agents = tally(b, filter)
		wantSame(t, "contracts in order", []string{contracts[0].Key, contracts[1].Key}, []string{"other_contract", "refund"})
		wantSame(t, "limited", len(agents), 1)
	})

	t.Run("NewestFailures", func(t *testing.T) {
		b := setup(t, open)
		b.tell(stories...)
		failures := func(newest, limit int) (found []ledger.StoredAction) {
			t.Helper()
			b.view(func(tx ledger.Tx) (err error) {
				found, err = tx.NewestFailures(t.Context(), acme, newest, limit)
				return err
			})
			return found
		}
		wantSame(t, "latest run first, pending ones left out", actionIDs(failures(100, 10)), []string{"d", "c", "b"})
		wantSame(t, "whole", failures(100, 1)[0], b.action("d"))
		wantSame(t, "among the newest five runs", actionIDs(failures(5, 10)), []string{"d"})
		b.storeRuns(runOf(nil, engine.ClaimID(acme, "c"), ledger.Settled, pass, pass, noon))
		b.storeRuns(runOf(nil, engine.ClaimID(acme, "b"), ledger.Settled, fail, fail, noon))
		wantSame(t, "the latest run decides", actionIDs(failures(100, 10)), []string{"b", "d"})
	})

	t.Run("CountReasons", func(t *testing.T) {
		b := setup(t, open)
		for i, reasons := range [][]string{{"limit_exceeded:amount"}, {"no_structured_signal"}, {"limit_exceeded:amount", "duplicate_effect:stripe.refund"}} {
			id := fmt.Sprint("r", i)
			a := act(id, "order_"+id)
			a.RequestedAt = noon + engine.Instant(i)
			b.recordFor(acme, noon, false, a)
			run := runOf(nil, engine.ClaimID(acme, id), ledger.Settled, fail, fail, noon)
			run.Policy.Reasons = reasons
			b.storeRuns(run)
		}
		b.recordFor(acme, noon, false, act("unverified", "order_1"))
		count := func(newest int) (counts []ledger.ReasonCount) {
			t.Helper()
			b.view(func(tx ledger.Tx) (err error) {
				counts, err = tx.CountReasons(t.Context(), acme, "refund", newest)
				return err
			})
			return counts
		}
		wantSame(t, "reasons", count(100), []ledger.ReasonCount{{Code: "limit_exceeded:amount", Actions: 2}, {Code: "duplicate_effect:stripe.refund", Actions: 1}, {Code: "no_structured_signal", Actions: 1}})
		wantSame(t, "reasons of the newest", count(1), []ledger.ReasonCount{{Code: "duplicate_effect:stripe.refund", Actions: 1}, {Code: "limit_exceeded:amount", Actions: 1}})
	})

	t.Run("ActionsByHash", func(t *testing.T) {
		b := setup(t, open)
		b.tell(stories[:2]...)
		hash := b.action("b").Latest.Policy.Hash
		find := func(tenant string, hash [32]byte) (found []string) {
			t.Helper()
			b.view(func(tx ledger.Tx) (err error) {
				found, err = tx.ActionsByHash(t.Context(), tenant, hash, 5)
				return err
			})
			return found
		}
		wantSame(t, "known", find(acme, hash), []string{engine.ClaimID(acme, "b")})
		wantSame(t, "of another tenant", find(other, hash), []string(nil))
		wantSame(t, "unknown", find(acme, [32]byte{1}), []string(nil))
	})

	t.Run("CaseFacts", func(t *testing.T) {
		b := setup(t, open)
		b.link(noon, "order_1", "ticket_9")
		b.link(noon, "ticket_9", "case_7")
		b.ingest(noon,
			b.fact("early", "stripe", "refund_created", "order_1", noon-1), b.fact("b", "stripe", "refund_created", "order_1", noon),
			b.fact("a", "crm", "note_added", "ticket_9", noon), b.fact("last", "crm", "note_added", "order_1", noon+9),
			b.fact("late", "crm", "note_added", "order_1", noon+10), b.fact("two hops", "crm", "note_added", "case_7", noon))
		b.ingestBatch(other, noon, ledger.FactBatch{Facts: []engine.Fact{b.fact("foreign", "crm", "note_added", "order_1", noon)}})
		b.view(func(tx ledger.Tx) error {
			facts, err := tx.CaseFacts(t.Context(), acme, "order_1", noon, noon+9, 10)
			if err != nil {
				return err
			}
			wantSame(t, "own and linked, newest first", rawRefs(facts), []string{"last", "b", "a"})
			wantSame(t, "whole", facts[1], b.fact("b", "stripe", "refund_created", "order_1", noon))
			if facts, err = tx.CaseFacts(t.Context(), acme, "order_1", noon, noon+9, 1); err != nil {
				return err
			}
			wantSame(t, "limited", rawRefs(facts), []string{"last"})
			linked, err := tx.LinkedSubjects(t.Context(), acme, "ticket_9", 10)
			if err != nil {
				return err
			}
			wantSame(t, "linked", linked, []string{"case_7", "order_1"})
			linked, err = tx.LinkedSubjects(t.Context(), acme, "ticket_9", 1)
			wantSame(t, "linked, limited", linked, []string{"case_7"})
			return err
		})
	})

	t.Run("RecentFacts", func(t *testing.T) {
		b := setup(t, open)
		b.ingest(noon, b.fact("b", "stripe", "refund_created", "order_1", noon), b.fact("a", "stripe", "refund_created", "order_2", noon),
			b.fact("newest", "crm", "note_added", "order_3", noon+5), b.fact("old", "crm", "note_added", "order_3", noon-5))
		b.ingestBatch(other, noon, ledger.FactBatch{Facts: []engine.Fact{b.fact("foreign", "crm", "note_added", "order_1", noon)}})
		b.view(func(tx ledger.Tx) error {
			facts, err := tx.RecentFacts(t.Context(), acme, noon, 10)
			if err != nil {
				return err
			}
			wantSame(t, "newest first", rawRefs(facts), []string{"newest", "b", "a"})
			facts, err = tx.RecentFacts(t.Context(), acme, noon, 1)
			wantSame(t, "limited", rawRefs(facts), []string{"newest"})
			return err
		})
	})
}
