package ledgertest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func (b *bundle) list(filter ledger.ActionFilter) (page ledger.ActionPage) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) (err error) {
		page, err = tx.ListActions(b.t.Context(), acme, filter)
		return err
	})
	return page
}

func (b *bundle) summary(filter ledger.ActionFilter) (summary ledger.Summary) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) (err error) {
		summary, err = tx.Summary(b.t.Context(), acme, filter)
		return err
	})
	return summary
}

func actionIDs(actions []ledger.StoredAction) []string {
	var ids []string
	for _, a := range actions {
		ids = append(ids, a.Action.ActionID)
	}
	return ids
}

func exerciseReading(t *testing.T, open opener) {
	t.Run("Pages", func(t *testing.T) {
		b := setup(t, open)
		var want []string
		for i := range 7 {
			a := act(fmt.Sprintf("a%d", i), "order_1")
			a.RequestedAt = noon + engine.Instant(i/3) // three at one moment
			b.record(a)
		}
		all := b.list(ledger.ActionFilter{})
		wantSame(t, "one page", [2]string{fmt.Sprint(len(all.Actions)), all.Next}, [2]string{"7", ""})
		for i := 1; i < 7; i++ {
			if all.Actions[i-1].Action.RequestedAt < all.Actions[i].Action.RequestedAt {
				t.Errorf("action %d is newer than the one before", i)
			}
		}
		want = actionIDs(all.Actions)
		var got []string
		filter := ledger.ActionFilter{Limit: 2}
		for {
			page := b.list(filter)
			got = append(got, actionIDs(page.Actions)...)
			if filter.Cursor = page.Next; page.Next == "" {
				break
			}
		}
		wantSame(t, "pages of two", got, want)
		b.record(act("new", "order_1"))
		err := b.store.View(t.Context(), func(tx ledger.Tx) error {
			_, err := tx.ListActions(t.Context(), acme, ledger.ActionFilter{Cursor: "nonsense"})
			return err
		})
		if !errors.Is(err, ledger.ErrFilter) {
			t.Errorf("bad cursor: %v, want ErrFilter", err)
		}
	})

	t.Run("Filters", func(t *testing.T) {
		b := setup(t, open)
		b.publish(version(t, "other_contract", 1))
		special := full(t)
		special.ContractID, special.RequestedAt, special.Compensates = "other_contract", noon+10, ""
		b.record(act("plain", "order_9"), special)
		since, until := noon+10, noon+10
		for name, filter := range map[string]ledger.ActionFilter{
			"contract": {ContractID: "other_contract"}, "agent": {AgentID: "bot"}, "subject": {SubjectID: "order_1"},
			"trace": {TraceID: special.TraceID}, "workflow": {WorkflowID: "wf"}, "since": {Since: &since},
			"all": {ContractID: "other_contract", AgentID: "bot", SubjectID: "order_1", TraceID: special.TraceID, WorkflowID: "wf", Since: &since},
		} {
			wantSame(t, name, actionIDs(b.list(filter).Actions), []string{"act 1"})
			wantSame(t, name+" summary", b.summary(filter), ledger.Summary{Total: 1, Unverified: 1})
		}
		wantSame(t, "until", actionIDs(b.list(ledger.ActionFilter{Until: &until}).Actions), []string{"plain"})
		wantSame(t, "none", len(b.list(ledger.ActionFilter{SubjectID: "order_1", AgentID: "nobody"}).Actions), 0)
	})

	t.Run("VerdictsAndSummary", func(t *testing.T) {
		b := setup(t, open)
		for id, run := range map[string]struct {
			status  string
			verdict engine.RawVerdict
		}{
			"pass": {ledger.Settled, engine.Verified}, "fail": {ledger.Settled, engine.NotVerified}, "unknown": {ledger.Settled, engine.Unverifiable},
			"pending": {ledger.Pending, engine.NotVerified},
		} {
			b.record(act(id, "order_1"))
			b.settle(engine.ClaimID(acme, id), run.status, run.verdict, noon)
		}
		b.recordFor(acme, noon, false, act("unverified", "order_1"))
		// The policy verdict counts, not the outcome.
		mixed := act("mixed", "order_1")
		mixed.RequestedAt = noon + 1
		b.recordFor(acme, noon, false, mixed)
		b.storeRuns(runOf(nil, engine.ClaimID(acme, "mixed"), ledger.Settled, engine.Verified, engine.NotVerified, noon))
		wantSame(t, "summary", b.summary(ledger.ActionFilter{}), ledger.Summary{Total: 6, Pass: 1, Fail: 3, Unknown: 1, Pending: 1, Unverified: 1})
		wantSame(t, "PASS", actionIDs(b.list(ledger.ActionFilter{Verdict: "PASS"}).Actions), []string{"pass"})
		wantSame(t, "UNKNOWN", actionIDs(b.list(ledger.ActionFilter{Verdict: "UNKNOWN"}).Actions), []string{"unknown"})
		wantSame(t, "PENDING", actionIDs(b.list(ledger.ActionFilter{Verdict: "PENDING"}).Actions), []string{"pending"})
		wantSame(t, "FAIL", len(b.list(ledger.ActionFilter{Verdict: "FAIL"}).Actions), 3)
		wantSame(t, "newest", b.list(ledger.ActionFilter{Verdict: "FAIL", Limit: 1}).Actions[0].Action.ActionID, "mixed")
		err := b.store.View(t.Context(), func(tx ledger.Tx) error {
			_, err := tx.ListActions(t.Context(), acme, ledger.ActionFilter{Verdict: "MAYBE"})
			return err
		})
		if !errors.Is(err, ledger.ErrFilter) {
			t.Errorf("unknown verdict: %v, want ErrFilter", err)
		}
	})

	t.Run("D18_CompensationFollowsTheLatestSettledVerdict", func(t *testing.T) {
		b := setup(t, open)
		correcting := func(id, of string, at engine.Instant) engine.Action {
			a := act(id, "order_1")
			a.Compensates, a.RequestedAt = of, at
			return a
		}
		b.record(act("failed", "order_1"), act("untouched", "order_1"))
		compensation := func() (found map[string]ledger.Compensation) {
			b.view(func(tx ledger.Tx) (err error) {
				found, err = tx.Compensations(t.Context(), acme, []string{"failed", "untouched", "nobody"})
				return err
			})
			return found
		}
		state := func() string {
			c, ok := compensation()["failed"]
			return fmt.Sprint(ok, " ", c.By.Action.ActionID, " ", c.Settled)
		}
		compensated := func() int { return b.summary(ledger.ActionFilter{}).Compensated }
		wantSame(t, "none", state(), "false  ")
		b.record(correcting("c1", "failed", noon+1))
		wantSame(t, "recorded", state(), "true c1 ")
		b.settle(engine.ClaimID(acme, "c1"), ledger.Pending, engine.NotVerified, noon+1)
		wantSame(t, "pending", state(), "true c1 ")
		wantSame(t, "compensated while pending", compensated(), 0)
		b.settle(engine.ClaimID(acme, "c1"), ledger.Settled, engine.Verified, noon+2)
		wantSame(t, "settled", state(), "true c1 VERIFIED")
		wantSame(t, "by", compensation()["failed"].By, b.action("c1"))
		b.settle(engine.ClaimID(acme, "c1"), ledger.Pending, engine.NotVerified, noon+3)
		wantSame(t, "pending again", state(), "true c1 VERIFIED")
		wantSame(t, "COMPENSATED", actionIDs(b.list(ledger.ActionFilter{Verdict: "COMPENSATED"}).Actions), []string{"failed"})
		wantSame(t, "compensated", compensated(), 1)
		b.record(correcting("c0", "failed", noon)) // recorded later, requested earlier
		wantSame(t, "the latest by request", state(), "true c1 VERIFIED")
		b.record(correcting("c2", "failed", noon+9))
		wantSame(t, "a later correction", state(), "true c2 ")
		wantSame(t, "compensated by the later one", compensated(), 0)
	})

	t.Run("Orphans", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		b.link(noon, "order_1", "ticket_9")
		b.link(noon, "ticket_9", "case_7")
		b.ingest(noon,
			b.fact("own", "stripe", "refund_created", "order_1", noon), b.fact("linked", "stripe", "refund_created", "ticket_9", noon),
			b.fact("two hops", "stripe", "refund_created", "case_7", noon+1), b.fact("orphan", "stripe", "refund_created", "order_2", noon+2),
			b.fact("other source", "paypal", "refund_created", "order_2", noon+3), b.fact("other type", "stripe", "charge", "order_2", noon+4),
			b.fact("any source", "crm", "note_added", "order_2", noon+5))
		b.ingestBatch(other, noon, ledger.FactBatch{Facts: []engine.Fact{b.fact("foreign", "stripe", "refund_created", "order_2", noon)}})
		b.recordFor(other, noon, false, act("explains nothing here", "order_2"), act("nor over a link", "ticket_9"))
		orphans := func(filter ledger.OrphanFilter) []string {
			t.Helper()
			filter.Effects = []ledger.EffectType{{Source: "stripe", Type: "refund_created"}, {Type: "note_added"}}
			var found []engine.Fact
			b.view(func(tx ledger.Tx) (err error) {
				found, err = tx.Orphans(t.Context(), acme, filter)
				return err
			})
			return rawRefs(found)
		}
		wantSame(t, "newest first", orphans(ledger.OrphanFilter{Limit: 10}), []string{"any source", "orphan", "two hops"})
		since, until := noon+2, noon+5
		wantSame(t, "within a time", orphans(ledger.OrphanFilter{Limit: 10, Since: &since, Until: &until}), []string{"orphan"})
		wantSame(t, "limited", orphans(ledger.OrphanFilter{Limit: 1}), []string{"any source"})

		counts := func(since, until engine.Instant, limit int) (found []ledger.OrphanCount) {
			t.Helper()
			b.view(func(tx ledger.Tx) (err error) {
				found, err = tx.CountOrphans(t.Context(), []ledger.EffectType{{Source: "stripe", Type: "refund_created"}, {Type: "note_added"}}, since, until, limit)
				return err
			})
			return found
		}
		b.ingestBatch(other, noon, ledger.FactBatch{Facts: []engine.Fact{
			b.fact("theirs", "stripe", "refund_created", "order_1", noon+3), b.fact("explained", "stripe", "refund_created", "ticket_9", noon+3)}})
		wantSame(t, "of all tenants, the most first", counts(noon, noon+6, 10), []ledger.OrphanCount{{Source: "stripe", Facts: 3}, {Source: "crm", Facts: 1}})
		wantSame(t, "counted within a time", counts(noon+2, noon+3, 10), []ledger.OrphanCount{{Source: "stripe", Facts: 1}})
		wantSame(t, "the most only", counts(noon, noon+6, 1), []ledger.OrphanCount{{Source: "stripe", Facts: 3}})
	})

	t.Run("TenantsNeverMeet", func(t *testing.T) {
		b := setup(t, open)
		theirs := full(t)
		theirs.Compensates = "mine"
		b.recordFor(other, noon, true, theirs)
		id := engine.ClaimID(other, theirs.ActionID)
		run := runOf(nil, id, ledger.Pending, engine.Verified, engine.Verified, noon)
		run.Events = []string{"action.pending"}
		later := noon.Add(engine.Week)
		b.update(func(tx ledger.Tx) error {
			ctx := t.Context()
			settingErr := tx.SetConnection(ctx, other, ledger.ConnectionSetting{Source: "crm", Watermark: &later}, noon)
			due, err := tx.LeaseDue(ctx, other, leaseOf(owner, noon), 10)
			if err != nil {
				return err
			}
			_, storeErr := tx.StoreRuns(ctx, other, []ledger.Run{run})
			due, err = tx.LeaseActions(ctx, other, leaseOf(owner, later), []string{due[0].ClaimID})
			return errors.Join(settingErr, storeErr, err,
				tx.Park(ctx, other, owner, []ledger.Parked{{Due: due[0], Error: "x"}}, noon),
				tx.CreateKey(ctx, ledger.Key{Tenant: other, ID: "k", Role: ledger.RoleViewer, CreatedAt: noon}))
		})
		b.view(func(tx ledger.Tx) error {
			parked, err := tx.ParkedActions(t.Context(), other, 10)
			wantSame(t, "parked there", len(parked), 1)
			return err
		})
		b.record(act("mine", "order_1"))
		for name, filter := range map[string]ledger.ActionFilter{
			"all": {}, "subject": {SubjectID: "order_1"}, "trace": {TraceID: theirs.TraceID}, "pass": {Verdict: "PASS"}, "compensated": {Verdict: "COMPENSATED"},
		} {
			want := map[string][]string{"all": {"mine"}, "subject": {"mine"}}[name]
			wantSame(t, name, actionIDs(b.list(filter).Actions), want)
			wantSame(t, name+" summary", b.summary(filter), ledger.Summary{Total: len(want), Unverified: len(want)})
		}
		wantSame(t, "by reference", len(b.actions(theirs.ActionID, id)), 0)
		wantSame(t, "parked", len(b.parkedActions()), 0)
		wantSame(t, "connections", len(b.connections()), 0)
		b.view(func(tx ledger.Tx) error {
			ctx := t.Context()
			runs, runsErr := tx.Runs(ctx, acme, id)
			latest, latestErr := tx.LatestRuns(ctx, acme, []string{id})
			compensations, compensationsErr := tx.Compensations(ctx, acme, []string{"mine"})
			keys, keysErr := tx.ListKeys(ctx, acme)
			chain, chainErr := tx.ReadChain(ctx, acme, 0, 10)
			wantSame(t, "foreign rows", []int{len(runs), len(latest), len(compensations), len(keys), len(chain)}, []int{0, 0, 0, 0, 0})
			return errors.Join(runsErr, latestErr, compensationsErr, keysErr, chainErr)
		})
		// A watermark that somebody else declared is not what mine moves from.
		b.settle(engine.ClaimID(acme, "mine"), ledger.Pending, engine.NotVerified, noon)
		closes := noon.Add(15 * engine.Minute)
		wantSame(t, "woken", b.ingestBatch(acme, noon, ledger.FactBatch{Watermarks: map[string]engine.Instant{"crm": closes}}).Woken, 1)
	})

	t.Run("OverviewsNeverMeet", func(t *testing.T) {
		b := setup(t, open)
		b.recordFor(other, noon, false, act("a", "order_1"))
		run := runOf(nil, engine.ClaimID(other, "a"), ledger.Settled, engine.NotVerified, engine.NotVerified, noon)
		b.update(func(tx ledger.Tx) error {
			_, err := tx.StoreRuns(t.Context(), other, []ledger.Run{run})
			return err
		})
		b.ingestBatch(other, noon, ledger.FactBatch{
			Facts: []engine.Fact{b.fact("n1", "crm", "note_added", "order_1", noon), b.fact("n2", "crm", "note_added", "ticket_9", noon)},
			Links: []engine.Link{{SubjectID: "order_1", LinkedSubjectID: "ticket_9"}},
		})
		b.view(func(tx ledger.Tx) error {
			ctx, filter := t.Context(), ledger.TallyFilter{Until: noon + 1, Step: engine.Day, Limit: 10}
			contracts, err1 := tx.TallyContracts(ctx, acme, filter)
			agents, err2 := tx.TallyAgents(ctx, acme, filter)
			failures, err3 := tx.NewestFailures(ctx, acme, 10, 10)
			reasons, err4 := tx.CountReasons(ctx, acme, "refund", 10)
			byHash, err5 := tx.ActionsByHash(ctx, acme, run.Policy.Hash, 10)
			linked, err6 := tx.LinkedSubjects(ctx, acme, "order_1", 10)
			facts, err7 := tx.CaseFacts(ctx, acme, "order_1", 0, noon, 10)
			recent, err8 := tx.RecentFacts(ctx, acme, 0, 10)
			found := []int{len(contracts), len(agents), len(failures), len(reasons), len(byHash), len(linked), len(facts), len(recent)}
			wantSame(t, "foreign rows", found, make([]int, 8))
			return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8)
		})
	})

	t.Run("Tenants", func(t *testing.T) {
		b := setup(t, open)
		b.recordFor("zeta", noon, false, act("a", "order_1"))
		b.ingestBatch("eta", noon, ledger.FactBatch{Facts: []engine.Fact{b.fact("n1", "crm", "note_added", "order_1", noon)}})
		b.update(func(tx ledger.Tx) error {
			return tx.CreateKey(t.Context(), ledger.Key{Tenant: "beta", ID: "k", Role: ledger.RoleViewer, Prefix: "p", Hash: [32]byte{1}, CreatedAt: noon})
		})
		b.view(func(tx ledger.Tx) error {
			tenants, err := tx.Tenants(t.Context())
			wantSame(t, "tenants", tenants, []string{"beta", "eta", "zeta"})
			return err
		})
	})
}
