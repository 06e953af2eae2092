// Package ledgertest is the one suite that every store passes. A store's own
// tests keep only what no other store has.
package ledgertest

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
)

// Exercise runs the suite. open returns a store of the test's own, migrated and
// empty, and closes it with the test.
func Exercise(t *testing.T, open func(t *testing.T) ledger.Ledger) {
	t.Helper()
	for _, area := range []struct {
		name string
		run  func(*testing.T, opener)
	}{
		{"Transactions", exerciseTransactions},
		{"Contracts", exerciseContracts},
		{"Facts", exerciseFacts},
		{"Sources", exerciseSources},
		{"Settings", exerciseSettings},
		{"Rejected", exerciseRejected},
		{"Actions", exerciseActions},
		{"TraceContexts", exerciseTraceContexts},
		{"Held", exerciseHeld},
		{"Waking", exerciseWaking},
		{"Due", exerciseDue},
		{"Runs", exerciseRuns},
		{"Outbox", exerciseOutbox},
		{"Events", exerciseEvents},
		{"Webhooks", exerciseWebhooks},
		{"Evaluation", exerciseEvaluation},
		{"Reading", exerciseReading},
		{"Near", exerciseNear},
		{"Overview", exerciseOverview},
		{"Backlog", exerciseBacklog},
		{"Audit", exerciseAudit},
		{"Retention", exerciseRetention},
		{"Keys", exerciseKeys},
		{"KeyEvents", exerciseKeyEvents},
		{"Concurrency", exerciseConcurrency},
	} {
		t.Run(area.name, func(t *testing.T) {
			t.Parallel()
			area.run(t, open)
		})
	}
}

type opener func(*testing.T) ledger.Ledger

const (
	acme  = "acme"
	other = "other"
	// noon is when most of these stories happen.
	noon engine.Instant = 1_790_000_000
)

//go:embed testdata/refund.yaml
var refundYAML []byte

// bundle is a store of the test's own, with the contract "refund" published.
type bundle struct {
	t     *testing.T
	store ledger.Ledger
}

func setup(t *testing.T, open opener) *bundle {
	t.Helper()
	t.Parallel()
	b := &bundle{t: t, store: open(t)}
	b.publish(parse(t, refundYAML))
	return b
}

func parse(t *testing.T, document []byte) *contract.Contract {
	t.Helper()
	c, diagnostics := contract.Parse("suite.yaml", document)
	if c == nil {
		t.Fatalf("contract of the suite: %v", diagnostics)
	}
	return c
}

func (b *bundle) update(f func(tx ledger.Tx) error) {
	b.t.Helper()
	if err := b.store.Update(b.t.Context(), f); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) view(f func(tx ledger.Tx) error) {
	b.t.Helper()
	if err := b.store.View(b.t.Context(), f); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) publish(contracts ...*contract.Contract) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) error { return tx.PublishContracts(b.t.Context(), contracts, noon) })
}

// act is an action under "refund" for a subject, requested at noon.
func act(id, subject string) engine.Action {
	return engine.Action{ActionID: id, ContractID: "refund", SubjectID: subject, RequestedAt: noon}
}

// record records actions at noon, to be verified, and fails on any error.
func (b *bundle) record(actions ...engine.Action) []ledger.Recorded {
	b.t.Helper()
	return b.recordFor(acme, noon, true, actions...)
}

func (b *bundle) recordFor(tenant string, now engine.Instant, verify bool, actions ...engine.Action) []ledger.Recorded {
	b.t.Helper()
	items := make([]ledger.RecordRequest, len(actions))
	for i := range actions {
		items[i] = ledger.RecordRequest{Action: actions[i], Verify: verify}
	}
	return b.recordItems(tenant, now, items...)
}

func (b *bundle) recordItems(tenant string, now engine.Instant, items ...ledger.RecordRequest) []ledger.Recorded {
	b.t.Helper()
	var results []ledger.RecordResult
	b.update(func(tx ledger.Tx) (err error) {
		results, err = ledger.Record(b.t.Context(), tx, tenant, items, now)
		return err
	})
	recorded := make([]ledger.Recorded, len(results))
	for i := range results {
		if results[i].Err != nil {
			b.t.Fatalf("action %q: %v", items[i].Action.ActionID, results[i].Err)
		}
		recorded[i] = results[i].Recorded
	}
	return recorded
}

// fact is a normalized fact.
func fact(t *testing.T, ref, source, factType, subject string, at engine.Instant, attributes string) engine.Fact {
	t.Helper()
	object, err := engine.ParseObject([]byte(attributes))
	if err != nil {
		t.Fatal(err)
	}
	f, err := engine.Fact{RawRef: ref, Source: source, Type: factType, SubjectID: subject, SubjectKind: "order", OccurredAt: at, Attributes: object}.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (b *bundle) fact(ref, source, factType, subject string, at engine.Instant) engine.Fact {
	b.t.Helper()
	return fact(b.t, ref, source, factType, subject, at, `{"amount": 180.0}`)
}

func (b *bundle) ingest(now engine.Instant, facts ...engine.Fact) ledger.Ingested {
	b.t.Helper()
	return b.ingestBatch(acme, now, ledger.FactBatch{Facts: facts, Trust: engine.Shared})
}

func (b *bundle) ingestBatch(tenant string, now engine.Instant, batch ledger.FactBatch) (counts ledger.Ingested) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) (err error) {
		counts, err = tx.IngestFacts(b.t.Context(), tenant, batch, now)
		return err
	})
	return counts
}

func (b *bundle) link(now engine.Instant, a, c string) ledger.Ingested {
	b.t.Helper()
	return b.ingestBatch(acme, now, ledger.FactBatch{Links: []engine.Link{{SubjectID: a, LinkedSubjectID: c}}, Trust: engine.Shared})
}

// owner of leases in tests that need only one.
const owner = "verifier-1"

func leaseOf(owner string, now engine.Instant) ledger.Lease {
	return ledger.Lease{Owner: owner, Now: now, Until: now.Add(engine.Minute)}
}

func (b *bundle) leaseDue(owner string, now engine.Instant) (due []ledger.Due) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) (err error) {
		due, err = tx.LeaseDue(b.t.Context(), acme, leaseOf(owner, now), 100)
		return err
	})
	return due
}

// runOf is a run under a lease. Its verdict documents differ by action, status and time.
func runOf(d *ledger.Due, claimID, status string, outcome, policy engine.RawVerdict, at engine.Instant) ledger.Run {
	run := ledger.Run{
		ClaimID: claimID, Lease: d, Owner: owner, Contract: ledger.ContractRef{ID: "refund", Version: 1},
		ComputedAt: at, TriggeredBy: "action", Status: status, Headline: "PASS — all 2 expected effects observed",
		Report: json.RawMessage(`{"checks":[]}`),
	}
	for lens, verdict := range map[engine.Lens]*ledger.StoredVerdict{engine.Outcome: &run.Outcome, engine.Policy: &run.Policy} {
		verdict.Raw = map[engine.Lens]engine.RawVerdict{engine.Outcome: outcome, engine.Policy: policy}[lens]
		verdict.Reasons = []string{"effect_observed:stripe.refund_created", "limit_exceeded:amount"}
		verdict.Document = fmt.Sprintf(`{"action":%q,"at":%d,"lens":%q,"raw_verdict":%q}`, claimID, at, lens, verdict.Raw)
		verdict.Hash = sha256.Sum256([]byte(verdict.Document))
	}
	if status == ledger.Pending {
		next := at.Add(engine.Minute)
		run.NextCheckAt = &next
	}
	return run
}

func (b *bundle) storeRuns(runs ...ledger.Run) (stored []ledger.Run) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) (err error) {
		stored, err = tx.StoreRuns(b.t.Context(), acme, runs)
		return err
	})
	return stored
}

// settle leases an action, whether or not it is due, and stores a run.
func (b *bundle) settle(claimID, status string, verdict engine.RawVerdict, at engine.Instant, events ...string) ledger.Run {
	b.t.Helper()
	var due []ledger.Due
	b.update(func(tx ledger.Tx) (err error) {
		due, err = tx.LeaseActions(b.t.Context(), acme, leaseOf(owner, at), []string{claimID})
		return err
	})
	if len(due) != 1 {
		b.t.Fatalf("leased %d rows of %s, want 1", len(due), claimID)
	}
	run := runOf(&due[0], claimID, status, verdict, verdict, at)
	run.Events = events
	return b.storeRuns(run)[0]
}

func (b *bundle) actions(refs ...string) (found []ledger.StoredAction) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) (err error) {
		found, err = tx.Actions(b.t.Context(), acme, refs)
		return err
	})
	return found
}

// action is one that must be there.
func (b *bundle) action(ref string) ledger.StoredAction {
	b.t.Helper()
	found := b.actions(ref)
	if len(found) != 1 {
		b.t.Fatalf("%d actions under %q, want 1", len(found), ref)
	}
	return found[0]
}

// dueAt is when an action is due, or "not due".
func (b *bundle) dueAt(ref string) string {
	b.t.Helper()
	if at := b.action(ref).NextCheckAt; at != nil {
		return at.String()
	}
	return notDue
}

const notDue = "not due"

func (b *bundle) wantDue(ref, want string) {
	b.t.Helper()
	if got := b.dueAt(ref); got != want {
		b.t.Errorf("action %s is due: %s, want %s", ref, got, want)
	}
}

// options compare what stores return: an empty list is no list.
var options = cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b engine.Object) bool {
	return a.Captured() == b.Captured() && a.Text() == b.Text()
})}

func wantSame(t *testing.T, what string, got, want any) {
	t.Helper()
	if difference := cmp.Diff(want, got, options); difference != "" {
		t.Errorf("%s (-want +got):\n%s", what, difference)
	}
}

func wantText(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("error:\n  got  %v\n  want %s", err, want)
	}
}

// together runs f n times at once and fails with the first error.
func together(t *testing.T, n int, f func(ctx context.Context, i int) error) {
	t.Helper()
	var group sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		group.Go(func() { errs[i] = f(t.Context(), i) })
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("worker %d: %v", i, err)
		}
	}
}
