package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/settle"
	"github.com/countersign-otel/countersign/verifier/view"
)

// counting counts the transactions of a store.
type counting struct {
	ledger.Ledger
	mu    sync.Mutex
	views int
}

func (c *counting) View(ctx context.Context, f func(ledger.Tx) error) error {
	c.mu.Lock()
	c.views++
	c.mu.Unlock()
	return c.Ledger.View(ctx, f)
}

func (c *counting) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.views
}

// TestThousandWaitersAskTheStoreNothingWhileTheyWait: each is answered soon
// after its verdict settled, and the store is asked per waiter only at the
// start and at the end.
func TestThousandWaitersAskTheStoreNothingWhileTheyWait(t *testing.T) {
	t.Parallel()
	const waiters, actions = 1000, 100
	f := newFixture(t)
	store := &counting{Ledger: f.store}
	f.service.Ledger, f.hub.store = store, store
	f.hub.poll = 10 * time.Millisecond
	f.pending(t, actions)
	f.settling(t)
	caller := Caller{ledger.Key{Tenant: tenantA, Role: ledger.RoleRecorder}}
	var waiting sync.WaitGroup
	results := make([]Waited, waiters)
	errs := make([]error, waiters)
	answered := make([]time.Time, waiters)
	for i := range waiters {
		waiting.Go(func() {
			results[i], errs[i] = f.service.Wait(context.Background(), caller, fmt.Sprintf("act_%d", i%actions), MaxWait)
			answered[i] = time.Now()
		})
	}
	within(t, time.Minute, "all wait", func() bool { return f.hub.Waiters() == waiters })
	before := store.count()
	// The hub's own scans go on meanwhile: one query for all waiters, not one for each.
	within(t, time.Minute, "the hub looked for settled verdicts", func() bool { return store.count() >= before+3 })
	if asked := store.count() - before; asked > 20 {
		t.Errorf("%d transactions while %d wait", asked, waiters)
	}
	var all []string
	for i := range actions {
		named := strings.NewReplacer("order_10231", fmt.Sprintf("order_%d", i),
			`"sh_`, fmt.Sprintf(`"%d_sh_`, i), `"raw_ref": "re_`, fmt.Sprintf(`"raw_ref": "%d_re_`, i), "crm_1", fmt.Sprintf("crm_%d", i), "msg_1", fmt.Sprintf("msg_%d", i))
		for _, fact := range []string{eligible, refunded, cancelled, noted, notified} {
			all = append(all, named.Replace(fact))
		}
	}
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(all...))
	waiting.Wait()
	for i := range waiters {
		if errs[i] != nil || results[i].TimedOut || results[i].Policy.Verdict != "PASS" || results[i].Action.ActionID != fmt.Sprintf("act_%d", i%actions) {
			t.Fatalf("waiter %d: %v %+v", i, errs[i], results[i])
		}
	}
	if f.hub.Waiters() != 0 || len(f.hub.gates) != 0 {
		t.Errorf("%d waiters and %d gates are left", f.hub.Waiters(), len(f.hub.gates))
	}
}

// pending records and verifies actions act_0, act_1, ... on orders order_0, order_1, ...
func (f *fixture) pending(t *testing.T, n int) {
	t.Helper()
	requests, claims := make([]ledger.RecordRequest, n), make([]string, n)
	for i := range n {
		id := fmt.Sprintf("act_%d", i)
		claims[i] = claimID(tenantA, id)
		requests[i].Action = engine.Action{
			ActionID: id, ContractID: "refund_workflow", SubjectID: fmt.Sprintf("order_%d", i),
			RequestedAt: instant(t, "2026-09-28T10:42:00Z"), Params: engine.EmptyObject(),
		}
	}
	err := f.store.Update(context.Background(), func(tx ledger.Tx) error {
		_, err := ledger.Record(context.Background(), tx, tenantA, requests, engine.Instant(f.clock.Load()))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.verifier.Verify(context.Background(), tenantA, claims, nil, "action"); err != nil {
		t.Fatal(err)
	}
}

func TestWaitAnswersAtOnceWhenSettled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded, cancelled, noted, notified))
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	// Nothing runs that could wake anybody.
	got := f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/act_1/wait?timeout=60", "")
	var waited Waited
	got.decode(t, &waited)
	if waited.TimedOut || waited.Status != ledger.Settled {
		t.Error(got.body)
	}
}

// TestWaitMovesNoVerdict: a timeout tells the verdict as it stands.
func TestWaitMovesNoVerdict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded))
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	var first, second Waited
	f.must(t, http.StatusOK, ledger.RoleRecorder, "GET", "/v1/actions/act_1/wait?timeout=0", "").decode(t, &first)
	if !first.TimedOut || first.Status != ledger.Pending || first.Run == nil {
		t.Errorf("the first wait did not verify: %+v", first)
	}
	f.must(t, http.StatusOK, ledger.RoleRecorder, "GET", "/v1/actions/act_1/wait?timeout=0.02", "").decode(t, &second)
	if diff := cmp.Diff(first.Verification, second.Verification, objects); diff != "" {
		t.Error(diff)
	}
	if second.WaitedSeconds < 0.02 || !second.TimedOut {
		t.Errorf("waited %v, timed out %t", second.WaitedSeconds, second.TimedOut)
	}
}

// TestViewerWaitsWithoutVerifying: reading changes nothing.
func TestViewerWaitsWithoutVerifying(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	var waited Waited
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/act_1/wait?timeout=0", "").decode(t, &waited)
	if waited.Status != view.Unverified || waited.Run != nil || !waited.TimedOut {
		t.Errorf("got %+v", waited)
	}
}

// TestWaitSeesWhatAnotherProcessStored: the runs of a verifier without this hub.
func TestWaitSeesWhatAnotherProcessStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.hub.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer cancel()
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	var waited Waited
	running.Go(func() {
		var err error
		waited, err = f.service.Wait(ctx, Caller{ledger.Key{Tenant: tenantA, Role: ledger.RoleViewer}}, "act_1", MaxWait)
		if err != nil {
			t.Error(err)
		}
		cancel()
	})
	within(t, time.Minute, "it waits", func() bool { return f.hub.Waiters() == 1 })
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded, cancelled, noted, notified))
	other := settle.New(settle.Config{Ledger: f.store, Contracts: ledger.NewContractCache(0), Owner: "other", Now: func() engine.Instant { return engine.Instant(f.clock.Load()) }})
	if _, err := other.Verify(ctx, tenantA, []string{claimID(tenantA, "act_1")}, nil, "manual"); err != nil {
		t.Fatal(err)
	}
	running.Wait()
	if waited.TimedOut || waited.Policy == nil || waited.Policy.Verdict != "PASS" {
		t.Errorf("got %+v", waited)
	}
}

// TestShutdownLetsWaitersGo: with what is known, and no success.
func TestShutdownLetsWaitersGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.hub.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	var waited Waited
	running.Go(func() {
		var err error
		waited, err = f.service.Wait(context.Background(), Caller{ledger.Key{Tenant: tenantA, Role: ledger.RoleRecorder}}, "act_1", MaxWait)
		if err != nil {
			t.Error(err)
		}
	})
	within(t, time.Minute, "it waits", func() bool { return f.hub.Waiters() == 1 })
	cancel()
	running.Wait()
	if !waited.TimedOut {
		t.Errorf("got %+v", waited)
	}
}
