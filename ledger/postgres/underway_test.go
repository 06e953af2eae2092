package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
)

// meeting is a store with the contract "refund" (an effect of two sources, undone
// by stripe.refund_reversed), and one verifier with connections of its own.
type meeting struct {
	*testing.T
	store, verifier *Store
	address         string
	contract        *contract.Contract
}

func meet(t *testing.T) *meeting {
	t.Helper()
	document, err := os.ReadFile("../ledgertest/testdata/refund.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, diagnostics := contract.Parse("refund.yaml", document)
	if c == nil {
		t.Fatal(diagnostics)
	}
	m := &meeting{T: t, address: migratedURL(t), contract: c}
	m.store, m.verifier = open(t, m.address, WithMaxConnections(12)), open(t, m.address, WithMaxConnections(4), WithApplicationName("verifier"))
	update(t, m.store, func(ctx context.Context, tx ledger.Tx) error {
		return tx.PublishContracts(ctx, []*contract.Contract{c}, noon)
	})
	return m
}

func pinnedRefund(id, subject string) engine.Action {
	a := action(id, subject)
	a.ContractID = "refund"
	a.Params = parsed(`{"amount":180}`)
	return a
}

func (m *meeting) record(actions ...ledger.NewAction) func(ledger.Tx) error {
	return func(tx ledger.Tx) error {
		_, err := tx.RecordActions(m.Context(), tenant, actions, noon)
		return err
	}
}

func (m *meeting) ingest(batch ledger.FactBatch) func(ledger.Tx) error {
	batch.Trust = engine.Shared
	return func(tx ledger.Tx) error {
		_, err := tx.IngestFacts(m.Context(), tenant, batch, noon)
		return err
	}
}

func (m *meeting) do(f func(ledger.Tx) error) {
	m.Helper()
	update(m, m.store, func(_ context.Context, tx ledger.Tx) error { return f(tx) })
}

// begin runs f in a transaction that stays open until commit is called.
func (m *meeting) begin(f func(ledger.Tx) error) (commit func()) {
	m.Helper()
	written, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- m.store.Update(m.Context(), func(tx ledger.Tx) error {
			if err := f(tx); err != nil {
				return err
			}
			close(written)
			<-release
			return nil
		})
	}()
	select {
	case <-written:
	case err := <-done:
		m.Fatal(err)
	}
	return func() {
		m.Helper()
		close(release)
		if err := <-done; err != nil {
			m.Fatal(err)
		}
	}
}

func of(kind, subject string) engine.Fact {
	source := "stripe"
	if kind == "note_added" {
		source = "crm"
	}
	return engine.Fact{
		RawRef: kind + " " + subject, Source: source, Type: kind, SubjectID: subject, SubjectKind: "order",
		OccurredAt: noon + 7, Attributes: parsed(`{"amount":180}`),
	}
}

// effects are all that "refund" expects.
func effects(subject string) ledger.FactBatch {
	return ledger.FactBatch{Facts: []engine.Fact{of("refund_created", subject), of("note_added", subject)}}
}

func reversal(subject string) ledger.FactBatch {
	return ledger.FactBatch{Facts: []engine.Fact{of("refund_reversed", subject)}}
}

func linked(a, b string) ledger.FactBatch {
	return ledger.FactBatch{Links: []engine.Link{{SubjectID: a, LinkedSubjectID: b}}}
}

// judge leases what lease leases, judges it and stores the runs, as a verifier
// does. It reports how many actions that were.
func (m *meeting) judge(owner string, now engine.Instant, lease leaser) (int, error) {
	due, runs, err := m.evaluate(owner, now, lease)
	if err != nil || len(due) == 0 {
		return 0, err
	}
	return len(due), m.storeRuns(owner, due, runs)
}

type leaser func(tx ledger.Tx, l ledger.Lease) ([]ledger.Due, error)

func (m *meeting) evaluate(owner string, now engine.Instant, lease leaser) (due []ledger.Due, runs []ledger.Run, err error) {
	ctx := m.Context()
	if err := m.verifier.Update(ctx, func(tx ledger.Tx) (err error) {
		due, err = lease(tx, ledger.Lease{Owner: owner, Now: now, Until: now + 1000})
		return err
	}); err != nil || len(due) == 0 {
		return nil, nil, err
	}
	ids := make([]string, len(due))
	for i := range due {
		ids[i] = due[i].ClaimID
	}
	err = m.verifier.View(ctx, func(tx ledger.Tx) error {
		s, err := tx.Snapshot(ctx, tenant, m.contract, ids, nil)
		if err != nil {
			return err
		}
		for i, e := range goeval.Evaluate(m.contract, s) {
			runs = append(runs, m.run(s, s.Actions[i], e, now))
		}
		return nil
	})
	return due, runs, err
}

func (m *meeting) storeRuns(owner string, due []ledger.Due, runs []ledger.Run) error {
	for i := range runs {
		runs[i].Owner = owner
		runs[i].Lease = &due[slices.IndexFunc(due, func(d ledger.Due) bool { return d.ClaimID == runs[i].ClaimID })]
	}
	return m.verifier.Update(m.Context(), func(tx ledger.Tx) error {
		_, err := tx.StoreRuns(m.Context(), tenant, runs)
		return err
	})
}

func (m *meeting) run(s *engine.Snapshot, a engine.Action, e engine.Evaluation, now engine.Instant) ledger.Run {
	r := report.Make(m.contract, s, a, e, now, report.DefaultSettings())
	run := run(a.ActionID, nil, "")
	run.Contract, run.ComputedAt, run.NextCheckAt, run.Events = ledger.ContractRef{ID: "refund", Version: 1}, now, r.Settlement.NextCheckAt, nil
	if r.Settlement.Settled {
		run.Status = ledger.Settled
	}
	run.Outcome.Verdict, run.Policy.Verdict = e.Outcome, e.Policy
	return run
}

func leaseAll(ctx context.Context) leaser {
	return func(tx ledger.Tx, l ledger.Lease) ([]ledger.Due, error) { return tx.LeaseDue(ctx, tenant, l, 100) }
}

// whileOpen starts a verification, and returns when it has ended or waits for
// evidence that is under way; done gives its outcome.
func (m *meeting) whileOpen(lease leaser) (done func()) {
	m.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := m.judge("first", noon+10, lease)
		ended <- err
	}()
	watch := connect(m, m.address)
	deadline := time.Now().Add(20 * time.Second)
	for waits := false; !waits && len(ended) == 0; {
		if time.Now().After(deadline) {
			m.Fatal("the verifier neither ends nor waits")
		}
		if err := watch.QueryRow(m.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'verifier' AND query = $1)`, evidenceUnderWay.Text).Scan(&waits); err != nil {
			m.Fatal(err)
		}
	}
	return func() {
		m.Helper()
		if err := <-ended; err != nil {
			m.Fatal(err)
		}
	}
}

// settleAll verifies until nothing is due at a time.
func (m *meeting) settleAll(now engine.Instant) {
	m.Helper()
	for {
		n, err := m.judge("last", now, leaseAll(m.Context()))
		if err != nil {
			m.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// want fails unless the latest verdict of an action on its outcome is this one.
func (m *meeting) want(id string, outcome engine.RawVerdict, reasons ...string) {
	m.Helper()
	m.wantVerdict(id, func(r *ledger.Run) engine.Verdict { return r.Outcome.Verdict }, outcome, reasons)
}

// wantPolicy is want for the policy.
func (m *meeting) wantPolicy(id string, policy engine.RawVerdict, reasons ...string) {
	m.Helper()
	m.wantVerdict(id, func(r *ledger.Run) engine.Verdict { return r.Policy.Verdict }, policy, reasons)
}

func (m *meeting) wantVerdict(id string, lens func(*ledger.Run) engine.Verdict, raw engine.RawVerdict, reasons []string) {
	m.Helper()
	view(m, m.store, func(ctx context.Context, tx ledger.Tx) error {
		found, err := tx.Actions(ctx, tenant, []string{id})
		if err != nil {
			return err
		}
		latest := found[0].Latest
		if latest == nil {
			m.Errorf("%s: no run, want %s %q", id, raw, reasons)
			return nil
		}
		if got := lens(latest); got.Raw != raw || !cmp.Equal(got.Reasons, reasons) {
			m.Errorf("%s: %s %q, want %s %q", id, got.Raw, got.Reasons, raw, reasons)
		}
		return nil
	})
}

var (
	reversed = []string{"reversed:stripe.refund_reversed"}
	passed   = []string{"effect_observed:stripe.refund_created", "effect_observed:crm.note_added"}
)

// An action is recorded, judged and settled while a fact that undoes it is under way.
func TestReversalUnderWayWhileItsActionIsRecorded(t *testing.T) {
	t.Parallel()
	m := meet(t)
	m.do(m.ingest(effects("order_1")))
	commit := m.begin(m.ingest(reversal("order_1")))
	m.do(m.record(ledger.NewAction{Action: pinnedRefund("a", "order_1"), Verify: true}))
	done := m.whileOpen(leaseAll(t.Context()))
	commit()
	done()
	m.settleAll(noon + 10)
	m.want("a", engine.NotVerified, reversed...)
}

// The same with an action that nobody verified before somebody asks.
func TestReversalUnderWayWhileItsActionIsLeasedByHand(t *testing.T) {
	t.Parallel()
	m := meet(t)
	m.do(m.ingest(effects("order_1")))
	m.do(m.record(ledger.NewAction{Action: pinnedRefund("a", "order_1")}))
	commit := m.begin(m.ingest(reversal("order_1")))
	done := m.whileOpen(func(tx ledger.Tx, l ledger.Lease) ([]ledger.Due, error) {
		return tx.LeaseActions(t.Context(), tenant, l, []string{engine.ClaimID(tenant, "a")})
	})
	commit()
	done()
	m.settleAll(noon + 10)
	m.want("a", engine.NotVerified, reversed...)
}

// peers are three actions of one agent that together exceed its aggregate limit
// (3 * 180 > 500), each with all that a PASS needs stored before.
func (m *meeting) peers() (two, third func(ledger.Tx) error) {
	m.Helper()
	actions := make([]ledger.NewAction, 3)
	for i := range actions {
		order := fmt.Sprint("order_", i)
		eligible := of("order_status", order)
		eligible.Source, eligible.OccurredAt, eligible.Attributes = "shopify", noon-10, parsed(`{"status":"eligible"}`)
		batch := effects(order)
		batch.Facts = append(batch.Facts, eligible)
		m.do(m.ingest(batch))
		actions[i] = ledger.NewAction{Action: pinnedRefund(fmt.Sprint("act_", i), order), Verify: true}
	}
	return m.record(actions[:2]...), m.record(actions[2])
}

const exceeded = "aggregate_exceeded:stripe.refund_created.amount"

// An action whose peer is being recorded is judged with the peer's effects (decision D17).
func TestPeerUnderWayWhileAnActionIsJudged(t *testing.T) {
	t.Parallel()
	m := meet(t)
	two, third := m.peers()
	m.do(two)
	commit := m.begin(third)
	done := m.whileOpen(leaseAll(t.Context()))
	commit()
	done()
	m.settleAll(noon + 10)
	for i := range 3 {
		m.wantPolicy(fmt.Sprint("act_", i), engine.NotVerified, exceeded)
	}
}

// A peer that begins after the lease has the total in its own verdict. "An earlier
// action that passed stays PASS when a later one pushes the total over"
// (specification, aggregate_exceeds).
func TestPeerThatBeginsAfterTheLease(t *testing.T) {
	t.Parallel()
	m := meet(t)
	two, third := m.peers()
	m.do(two)
	due, runs, err := m.evaluate("first", noon+10, leaseAll(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	m.do(third)
	if err := m.storeRuns("first", due, runs); err != nil {
		t.Fatal(err)
	}
	m.settleAll(noon + 10)
	m.wantPolicy("act_0", engine.Verified, passed...)
	m.wantPolicy("act_1", engine.Verified, passed...)
	m.wantPolicy("act_2", engine.NotVerified, exceeded)
}

// A fact that begins while the action is being judged sees the lease and keeps it due.
func TestReversalThatBeginsAfterTheLease(t *testing.T) {
	t.Parallel()
	m := meet(t)
	m.do(m.ingest(effects("order_1")))
	m.do(m.record(ledger.NewAction{Action: pinnedRefund("a", "order_1"), Verify: true}))
	due, runs, err := m.evaluate("first", noon+10, leaseAll(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	m.do(m.ingest(reversal("order_1")))
	if err := m.storeRuns("first", due, runs); err != nil {
		t.Fatal(err)
	}
	m.want("a", engine.Verified, passed...)
	m.settleAll(noon + 10)
	m.want("a", engine.NotVerified, reversed...)
}

// A link and the reversal that it brings near overlap, and the action settled
// long before; whichever of both commits first.
func TestLinkAndReversalUnderWayAtOnce(t *testing.T) {
	t.Parallel()
	for name, linkFirst := range map[string]bool{"link commits first": true, "fact commits first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := meet(t)
			m.do(m.ingest(effects("order_1")))
			m.do(m.record(ledger.NewAction{Action: pinnedRefund("a", "order_1"), Verify: true}))
			m.settleAll(noon + 10)
			m.want("a", engine.Verified, passed...)
			link, fact := m.begin(m.ingest(linked("order_1", "case_1"))), m.begin(m.ingest(reversal("case_1")))
			if !linkFirst {
				link, fact = fact, link
			}
			link()
			done := m.whileOpen(leaseAll(t.Context()))
			fact()
			done()
			m.settleAll(noon + 10)
			m.want("a", engine.NotVerified, reversed...)
		})
	}
}

// D31: an action and the span of its agent are recorded by two transactions that overlap.
func TestTraceContextUnderWayWhileItsActionIsRecorded(t *testing.T) {
	t.Parallel()
	const trace = "0af7651916cd43dd8448eb211c80319c"
	m := meet(t)
	span := func(id string, start int64, agent string) func(ledger.Tx) error {
		return func(tx ledger.Tx) error {
			return tx.RecordTraceContexts(t.Context(), tenant, []ledger.TraceContext{
				{TraceID: trace, SpanID: id, StartNanos: start, EndNanos: 900, Agent: agent, Session: "s"},
			}, noon)
		}
	}
	m.do(m.ingest(effects("order_2"))) // who makes a tenant known holds up others
	inner := m.begin(span("02", 200, "inner"))
	a := pinnedRefund("a", "order_1")
	a.TraceID = trace
	m.do(m.record(ledger.NewAction{Action: a, StartedNanos: 500, Verify: true}))
	m.do(span("01", 100, "outer"))
	done := m.whileOpen(leaseAll(t.Context()))
	inner()
	done()
	view(t, m.store, func(ctx context.Context, tx ledger.Tx) error {
		found, err := tx.Actions(ctx, tenant, []string{"a"})
		if err == nil && (found[0].Action.AgentID != "inner" || found[0].Action.SessionID != "s") {
			t.Errorf("agent %q and session %q, want those of the inner span", found[0].Action.AgentID, found[0].Action.SessionID)
		}
		return err
	})
}

// A writer that hangs holds up verdicts, not for ever and not silently, and the work goes back.
func TestEvidenceThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	m := meet(t)
	m.verifier.patience = 20 * time.Millisecond
	m.do(m.record(ledger.NewAction{Action: pinnedRefund("a", "order_1"), Verify: true}))
	commit := m.begin(m.ingest(reversal("order_2"))) // the due row of another subject's action is not locked by it
	_, err := m.judge("first", noon, leaseAll(t.Context()))
	const want = "store unavailable: 1 transactions that write evidence of tenant acme have been under way for more than 20ms; nothing is judged without it (look at pg_stat_activity)"
	if err == nil || err.Error() != want {
		t.Errorf("error:\n  got  %v\n  want %s", err, want)
	}
	commit()
	if n, err := m.judge("second", noon, leaseAll(t.Context())); err != nil || n != 1 {
		t.Errorf("judged %d actions (%v), want 1: the lease was not given back", n, err)
	}
}

// Evidence of one tenant holds up nobody else's verdicts.
func TestEvidenceOfAnotherTenantIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	m := meet(t)
	m.verifier.patience = 0
	m.do(m.record(ledger.NewAction{Action: pinnedRefund("a", "order_1"), Verify: true}))
	commit := m.begin(func(tx ledger.Tx) error {
		_, err := tx.IngestFacts(t.Context(), "globex", reversal("order_1"), noon)
		return err
	})
	defer commit()
	if n, err := m.judge("first", noon, leaseAll(t.Context())); err != nil || n != 1 {
		t.Errorf("judged %d actions (%v), want 1", n, err)
	}
}

// Everything at once in random order: when all has been committed and settled
// once more, each verdict is that of a fresh evaluation of the facts.
func TestNoWakeIsLostUnderLoad(t *testing.T) {
	t.Parallel()
	m := meet(t)
	const actions, each = 120, 5
	type step = func(ledger.Tx) error
	var steps []step
	for i := range actions {
		order, ticket := fmt.Sprintf("order_%d", i), fmt.Sprintf("case_%d", i)
		a := pinnedRefund(fmt.Sprintf("act_%d", i), order)
		// No aggregate limit reaches over two actions: one that passed stays so when
		// another one comes later, and which one that is differs here from run to run.
		a.AgentID = a.ActionID
		steps = append(steps, m.record(ledger.NewAction{Action: a, Verify: true}), m.ingest(effects(order)))
		if i%3 > 0 { // undone over a link, or directly
			undone := order
			if i%3 == 2 {
				undone = ticket
			}
			steps = append(steps, m.ingest(reversal(undone)))
		}
		steps = append(steps, m.ingest(linked(order, ticket)))
	}
	// Steps of one action stay near each other, so that they meet.
	for i := range steps {
		j := min(len(steps)-1, i+rand.IntN(2*each))
		steps[i], steps[j] = steps[j], steps[i]
	}
	var next atomic.Int64
	var left atomic.Int64
	left.Store(6)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := atOnce(func(w int) error {
		if w >= 6 { // two verifiers beside six writers
			for left.Load() > 0 && ctx.Err() == nil {
				if _, err := m.judge(fmt.Sprint(w), noon+10, leaseAll(ctx)); err != nil {
					return err
				}
			}
			return ctx.Err()
		}
		defer left.Add(-1)
		for i := next.Add(1) - 1; i < int64(len(steps)); i = next.Add(1) - 1 {
			if err := m.store.Update(ctx, func(tx ledger.Tx) error {
				err := steps[i](tx)
				_ = rest(ctx, time.Duration(rand.IntN(3))*time.Millisecond) // so that transactions overlap
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	m.settleAll(noon + 10)
	ids, claims := make([]string, actions), make([]string, actions)
	for i := range ids {
		ids[i] = fmt.Sprintf("act_%d", i)
		claims[i] = engine.ClaimID(tenant, ids[i])
	}
	view(t, m.store, func(ctx context.Context, tx ledger.Tx) error {
		s, err := tx.Snapshot(ctx, tenant, m.contract, claims, nil)
		if err != nil {
			return err
		}
		latest, err := tx.LatestRuns(ctx, tenant, claims)
		for i, e := range goeval.Evaluate(m.contract, s) {
			id := s.Actions[i].ActionID
			got := latest[engine.ClaimID(tenant, id)]
			if got.Outcome.Raw != e.Outcome.Raw || !cmp.Equal(got.Outcome.Reasons, e.Outcome.Reasons) || got.Policy.Raw != e.Policy.Raw {
				t.Errorf("%s: stored %s %q, and the facts say %s %q", id, got.Outcome.Raw, got.Outcome.Reasons, e.Outcome.Raw, e.Outcome.Reasons)
			}
		}
		return err
	})
	checkChain(t, m.store)
}
