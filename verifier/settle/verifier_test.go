package settle_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
	"github.com/countersign-otel/countersign/verifier/settle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	tenant    = engine.DefaultTenant
	requested = engine.Instant(1_790_592_120) // 2026-09-28T10:42:00Z
)

// bench is a private store with a verifier whose clock the test moves.
type bench struct {
	t        *testing.T
	ledger   ledger.Ledger
	now      atomic.Int64
	config   settle.Config
	verifier *settle.Verifier
}

func setup(t *testing.T, change func(*settle.Config)) *bench {
	t.Helper()
	return setupOn(t, "memory:", change)
}

func setupOn(t *testing.T, url string, change func(*settle.Config)) *bench {
	t.Helper()
	l, err := open.Ledger(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	b := &bench{t: t, ledger: l}
	b.at(0)
	b.config = settle.Config{
		Ledger: l, Contracts: ledger.NewContractCache(8), Settings: report.DefaultSettings(), Owner: "test",
		Now: func() engine.Instant { return engine.Instant(b.now.Load()) },
	}
	if change != nil {
		change(&b.config)
	}
	b.verifier = settle.New(b.config)
	b.update(func(tx ledger.Tx) error {
		return tx.PublishContracts(t.Context(), []*contract.Contract{refundWorkflow(t)}, requested)
	})
	return b
}

func refundWorkflow(t *testing.T) *contract.Contract {
	t.Helper()
	text, err := os.ReadFile("../../contracts/refund_workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "\n"...)
	withReversal := strings.Replace(string(text), "  unverifiable_if:", "  reversed_by:\n    - effect_observed: {source: stripe, type: refund_failed}\n  unverifiable_if:", 1)
	c, diagnostics := contract.Parse("refund_workflow.yaml", []byte(withReversal))
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	return c
}

// at moves the clock to seconds after the request.
func (b *bench) at(seconds int64) { b.now.Store(int64(requested) + seconds) }

func (b *bench) update(f func(ledger.Tx) error) {
	b.t.Helper()
	if err := b.ledger.Update(b.t.Context(), f); err != nil {
		b.t.Fatal(err)
	}
}

// record queues the verification of actions; action i is about order i.
func (b *bench) record(ids ...string) {
	b.t.Helper()
	b.recordUnder("refund_workflow", ids...)
}

func (b *bench) recordUnder(contractID string, ids ...string) {
	b.t.Helper()
	params, err := engine.ParseObject([]byte(`{"amount":180.0}`))
	if err != nil {
		b.t.Fatal(err)
	}
	var requests []ledger.RecordRequest
	for _, id := range ids {
		requests = append(requests, ledger.RecordRequest{
			Action: engine.Action{ActionID: id, ContractID: contractID, SubjectID: "order_" + id, RequestedAt: requested, Params: params},
			Verify: true,
		})
	}
	b.update(func(tx ledger.Tx) error {
		results, err := ledger.Record(b.t.Context(), tx, tenant, requests, b.config.Now())
		for _, r := range results {
			err = errors.Join(err, r.Err)
		}
		return err
	})
}

// push delivers facts "source.type@seconds" about an action's order.
func (b *bench) push(id string, facts ...string) {
	b.t.Helper()
	batch := ledger.FactBatch{Trust: engine.Shared}
	for _, text := range facts {
		var f engine.Fact
		var seconds int64
		name, at, _ := strings.Cut(text, "@")
		f.Source, f.Type, _ = strings.Cut(name, ".")
		if _, err := fmt.Sscan(at, &seconds); err != nil {
			b.t.Fatal(err)
		}
		f.SubjectID, f.OccurredAt, f.RawRef = "order_"+id, requested+engine.Instant(seconds), text+" "+id
		f.Attributes = engine.EmptyObject()
		if f.Type == "order_status" {
			f.Attributes, _ = engine.ParseObject([]byte(`{"status":"eligible"}`))
		}
		batch.Facts = append(batch.Facts, f)
	}
	b.ingest(batch)
}

func (b *bench) ingest(batch ledger.FactBatch) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) error {
		result, err := ledger.Ingest(b.t.Context(), tx, tenant, batch, b.config.Now())
		if err == nil && len(result.RejectedFacts) > 0 {
			err = fmt.Errorf("rejected: %v", result.RejectedFacts)
		}
		return err
	})
}

// settleAll runs the settle loop until the condition holds.
func (b *bench) settleAll(done func() bool) {
	b.t.Helper()
	ctx, stop := context.WithCancel(b.t.Context())
	stored := make(chan struct{}, 1)
	config := b.config
	tell := func() {
		select {
		case stored <- struct{}{}:
		default:
		}
	}
	config.OnStored = func(string, []ledger.Run) { tell() }
	config.OnParked = func(string, []ledger.Parked) { tell() }
	ended := make(chan error, 1)
	go func() { ended <- settle.New(config).Run(ctx) }()
	for !done() {
		select {
		case <-stored:
		case err := <-ended:
			b.t.Fatalf("the loop ended: %v", err)
		case <-b.t.Context().Done():
			b.t.Fatal("the test's time is up")
		}
	}
	stop()
	if err := <-ended; err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) action(id string) ledger.StoredAction {
	b.t.Helper()
	var found []ledger.StoredAction
	err := b.ledger.View(b.t.Context(), func(tx ledger.Tx) (err error) {
		found, err = tx.Actions(b.t.Context(), tenant, []string{id})
		return err
	})
	if err != nil || len(found) != 1 {
		b.t.Fatalf("action %s: found %d, %v", id, len(found), err)
	}
	return found[0]
}

func (b *bench) runs(id string) []ledger.Run {
	b.t.Helper()
	var runs []ledger.Run
	err := b.ledger.View(b.t.Context(), func(tx ledger.Tx) (err error) {
		runs, err = tx.Runs(b.t.Context(), tenant, engine.ClaimID(tenant, id))
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return runs
}

// story is what happened to an action, run by run.
func (b *bench) story(id string) []string {
	var lines []string
	for _, run := range b.runs(id) {
		lines = append(lines, fmt.Sprintf("%s %s/%s by %s, tells %s", run.Status, run.Outcome.Raw.Label(), run.Policy.Raw.Label(), run.TriggeredBy, strings.Join(run.Events, "+")))
	}
	return lines
}

func (b *bench) wantStory(id string, want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.story(id)); diff != "" {
		b.t.Errorf("story of %s (-want +got):\n%s", id, diff)
	}
}

var allEffects = []string{"shopify.order_status@-30", "stripe.refund_created@7", "shopify.order_cancelled@20", "crm.note_added@40", "messaging.customer_notified@60"}

func settled(b *bench, id string) func() bool {
	return func() bool { a := b.action(id); return a.Latest != nil && a.Latest.Status == ledger.Settled }
}

func hasRuns(b *bench, id string, n int) func() bool {
	return func() bool { return len(b.runs(id)) >= n }
}

// TestPendingThenPass: the first provisional verdict tells action.pending
// once, a re-check that stays pending is quiet, and an early PASS settles at once.
func TestPendingThenPass(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.push("a", allEffects[:2]...)
	b.record("a")
	b.settleAll(hasRuns(b, "a", 1))
	b.push("a", allEffects[2])
	b.settleAll(hasRuns(b, "a", 2))
	b.push("a", allEffects[3:]...)
	b.settleAll(settled(b, "a"))
	b.wantStory("a",
		"pending FAIL/FAIL by action, tells action.pending",
		"pending FAIL/FAIL by fact:shopify.order_cancelled@20 a, tells ",
		"settled PASS/PASS by fact:crm.note_added@40 a, tells action.verified",
	)
	if a := b.action("a"); a.NextCheckAt != nil {
		t.Errorf("a settled action is due again at %s", a.NextCheckAt)
	}
}

// TestWindowClosesByTheClock: nothing new comes, so the queued re-check settles the FAIL.
func TestWindowClosesByTheClock(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.push("a", allEffects[:2]...)
	b.record("a")
	b.settleAll(hasRuns(b, "a", 1))
	b.at(900)
	b.settleAll(settled(b, "a"))
	b.wantStory("a", "pending FAIL/FAIL by action, tells action.pending", "settled FAIL/FAIL by recheck, tells action.verified")
}

// TestWatermarkBringsTheRecheckForward: a closed window waits for a source that is behind, and settles when it catches up.
func TestWatermarkBringsTheRecheckForward(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.push("a", allEffects[:2]...)
	b.ingest(ledger.FactBatch{Trust: engine.Shared, Watermarks: map[string]engine.Instant{"crm": requested}})
	b.at(1000)
	b.record("a")
	b.settleAll(hasRuns(b, "a", 1))
	if headline := b.action("a").Latest.Headline; headline != "PENDING — 1 of 4 expected effects observed; window closed 2026-09-28T10:57:00Z, waiting for crm (16m behind) to catch up" {
		// The precondition holds and no limit fired, so the line is that of the first missing effect.
		t.Errorf("headline is %q", headline)
	}
	b.ingest(ledger.FactBatch{Trust: engine.Shared, Watermarks: map[string]engine.Instant{"crm": requested + 900}})
	b.settleAll(settled(b, "a"))
	if got := b.action("a").Latest.Status; got != ledger.Settled {
		t.Errorf("status is %s", got)
	}
}

// TestReversalVerifiesAgain: a fact named in reversed_by makes a settled PASS a FAIL, told again.
func TestReversalVerifiesAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.push("a", allEffects...)
	b.record("a")
	b.settleAll(settled(b, "a"))
	b.at(86400)
	b.push("a", "stripe.refund_failed@80000")
	b.settleAll(hasRuns(b, "a", 2))
	b.wantStory("a",
		"settled PASS/PASS by action, tells action.verified",
		"settled FAIL/FAIL by fact:stripe.refund_failed@80000 a, tells action.verified",
	)
	if runs := b.runs("a"); !runs[1].Changed || runs[1].PreviousSeq != runs[0].Seq {
		t.Errorf("the second run does not say that it replaces the first: %+v", runs[1])
	}
}

// TestReversalInsideTheWindow: the verdict is provisional again, without a second action.pending.
func TestReversalInsideTheWindow(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.push("a", allEffects...)
	b.record("a")
	b.settleAll(settled(b, "a"))
	b.at(100)
	b.push("a", "stripe.refund_failed@90")
	b.settleAll(hasRuns(b, "a", 2))
	b.at(900)
	b.settleAll(settled(b, "a"))
	b.wantStory("a",
		"settled PASS/PASS by action, tells action.verified",
		"pending FAIL/FAIL by fact:stripe.refund_failed@90 a, tells ",
		"settled FAIL/FAIL by recheck, tells action.verified",
	)
}

// TestD23_DisagreementParks: one action on which the evaluators disagree is
// parked with what each said; the others settle; a new fact tries again.
func TestD23_DisagreementParks(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(t *testing.T) string{
		"sqlite":   func(*testing.T) string { return "memory:" },
		"postgres": func(t *testing.T) string { return pgserver.Start(t).Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disagree(t, url(t))
		})
	}
}

func disagree(t *testing.T, url string) {
	t.Helper()
	var honest atomic.Bool
	b := setupOn(t, url, func(c *settle.Config) {
		c.Derive = func(c *contract.Contract, s *engine.Snapshot) []engine.Evaluation {
			evaluations := goeval.Evaluate(c, s)
			for i := range evaluations {
				if evaluations[i].ActionID == "bad" && !honest.Load() {
					evaluations[i].Policy.Raw = engine.NotVerified
				}
			}
			return evaluations
		}
	})
	for _, id := range []string{"bad", "good"} {
		b.push(id, allEffects...)
	}
	b.record("bad", "good")
	b.settleAll(func() bool { return settled(b, "good")() && b.action("bad").ParkedError != "" })
	want := "evaluators disagree: policy: SQL says {Raw:VERIFIED Reasons:[effect_observed:stripe.refund_created effect_observed:shopify.order_cancelled effect_observed:crm.note_added effect_observed:messaging.customer_notified]}, " +
		"Go says {Raw:NOT_VERIFIED Reasons:[effect_observed:stripe.refund_created effect_observed:shopify.order_cancelled effect_observed:crm.note_added effect_observed:messaging.customer_notified]}"
	if got := b.action("bad").ParkedError; got != want {
		t.Errorf("parked with %q, want %q", got, want)
	}
	if n := len(b.runs("bad")); n != 0 {
		t.Errorf("%d runs were stored of a disagreement", n)
	}
	honest.Store(true)
	b.push("bad", "crm.note_added@50")
	b.settleAll(settled(b, "bad"))
}

// poisoned fails to evaluate one action, as a statement on broken data would.
type poisoned struct{ ledger.Ledger }

type poisonedTx struct{ ledger.Tx }

var errPoison = errors.New("numeric overflow")

func (p poisoned) View(ctx context.Context, f func(ledger.Tx) error) error {
	return p.Ledger.View(ctx, func(tx ledger.Tx) error { return f(poisonedTx{tx}) })
}

func (p poisonedTx) Evaluate(ctx context.Context, tenant string, c *contract.Contract, claims, unavailable []string) ([]engine.Evaluation, error) {
	if slices.Contains(claims, engine.ClaimID(tenant, "7")) {
		return nil, errPoison
	}
	return p.Tx.Evaluate(ctx, tenant, c, claims, unavailable)
}

// TestPoisonHoldsNobodyElse: a batch that cannot be evaluated is halved until the one action stands alone.
func TestPoisonHoldsNobodyElse(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *settle.Config) { c.Ledger = poisoned{c.Ledger} })
	var ids []string
	for i := range 20 {
		ids = append(ids, fmt.Sprint(i))
		b.push(fmt.Sprint(i), allEffects...)
	}
	b.record(ids...)
	b.settleAll(func() bool {
		return b.action("7").ParkedError != "" && !slices.ContainsFunc(ids, func(id string) bool { return id != "7" && !settled(b, id)() })
	})
	if got := b.action("7").ParkedError; got != errPoison.Error() {
		t.Errorf("parked with %q, want %q", got, errPoison)
	}
}

// awayFor is unavailable to whoever evaluates one contract.
type awayFor struct {
	ledger.Ledger
	contract string
}

type awayForTx struct {
	ledger.Tx
	contract string
}

func (a awayFor) View(ctx context.Context, f func(ledger.Tx) error) error {
	return a.Ledger.View(ctx, func(tx ledger.Tx) error { return f(awayForTx{tx, a.contract}) })
}

func (a awayForTx) Evaluate(ctx context.Context, tenant string, c *contract.Contract, claims, unavailable []string) ([]engine.Evaluation, error) {
	if c.ID == a.contract {
		return nil, ledger.ErrUnavailable
	}
	return a.Tx.Evaluate(ctx, tenant, c, claims, unavailable)
}

// TestAFailureGivesAllLeasesBack: what one contract's failure left undone, also
// of other contracts, can be leased at once, whichever comes first.
func TestAFailureGivesAllLeasesBack(t *testing.T) {
	t.Parallel()
	for _, away := range []string{"refund_workflow", "other_workflow"} {
		t.Run(away, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(c *settle.Config) { c.Ledger = awayFor{c.Ledger, away} })
			other := refundWorkflow(t)
			text := strings.Replace(string(other.Document), "id: refund_workflow", "id: other_workflow", 1)
			other, diagnostics := contract.Parse("other_workflow.yaml", []byte(text))
			if len(diagnostics) > 0 {
				t.Fatal(diagnostics)
			}
			b.update(func(tx ledger.Tx) error {
				return tx.PublishContracts(t.Context(), []*contract.Contract{other}, requested)
			})
			b.record("a", "b")
			b.recordUnder("other_workflow", "c", "d")
			ids := []string{"a", "c", "b", "d"}
			claims := make([]string, len(ids))
			for i, id := range ids {
				claims[i] = engine.ClaimID(tenant, id)
			}
			if _, err := b.verifier.Verify(t.Context(), tenant, claims, nil, "test"); !errors.Is(err, ledger.ErrUnavailable) {
				t.Fatalf("verified with %v, want %v", err, ledger.ErrUnavailable)
			}
			settled := 0
			for _, id := range ids {
				settled += len(b.runs(id))
			}
			lease := ledger.Lease{Owner: "another", Now: b.config.Now(), Until: b.config.Now() + 60}
			b.update(func(tx ledger.Tx) error {
				due, err := tx.LeaseActions(t.Context(), tenant, lease, claims)
				if len(due) != len(ids) {
					t.Errorf("%d of %d actions can be leased after %d runs were stored, want all", len(due), len(ids), settled)
				}
				return err
			})
		})
	}
}

// TestTwoVerifiersShareTheWork: each action is settled once, in a chain without gaps.
func TestTwoVerifiersShareTheWork(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *settle.Config) { c.BatchSize = 7 })
	var ids []string
	for i := range 60 {
		ids = append(ids, fmt.Sprint(i))
		b.push(fmt.Sprint(i), allEffects...)
	}
	b.record(ids...)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	var stored atomic.Int64
	all := make(chan struct{})
	for _, owner := range []string{"one", "two"} {
		config := b.config
		config.Owner = owner
		config.OnStored = func(_ string, runs []ledger.Run) {
			if stored.Add(int64(len(runs))) == int64(len(ids)) {
				close(all)
			}
		}
		go func() { ended <- settle.New(config).Run(ctx) }()
	}
	select {
	case <-all:
	case <-t.Context().Done():
		t.Fatal("the test's time is up")
	}
	stop()
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		b.wantStory(id, "settled PASS/PASS by action, tells action.verified")
	}
	err := b.ledger.View(t.Context(), func(tx ledger.Tx) error {
		head, err := tx.ChainHead(t.Context(), tenant)
		if err == nil && head.Seq != int64(2*len(ids)) {
			err = fmt.Errorf("the chain has %d links, want %d", head.Seq, 2*len(ids))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestVerifyStoresARunEachTime: manual verification is a new run, the same hashes, and no event.
func TestVerifyStoresARunEachTime(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.push("a", allEffects...)
	b.record("a")
	claims := []string{engine.ClaimID(tenant, "a")}
	first, err := b.verifier.Verify(t.Context(), tenant, claims, nil, "manual")
	if err != nil {
		t.Fatal(err)
	}
	b.at(5000)
	second, err := b.verifier.Verify(t.Context(), tenant, claims, nil, "manual")
	if err != nil {
		t.Fatal(err)
	}
	if first[0].Policy.Hash != second[0].Policy.Hash || first[0].Outcome.Hash != second[0].Outcome.Hash {
		t.Error("the same facts gave different hashes")
	}
	b.wantStory("a", "settled PASS/PASS by manual, tells action.verified", "settled PASS/PASS by manual, tells ")
	if _, err := b.verifier.Verify(t.Context(), tenant, []string{"clm_unknown"}, nil, "manual"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("an unknown action gives %v", err)
	}
}
