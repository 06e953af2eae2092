package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"
	"go.uber.org/goleak"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
)

const (
	tenant      = "acme"
	secret      = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	otherSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	noon        = engine.Instant(1_790_592_120)
)

func TestMain(m *testing.M) {
	if store := os.Getenv("COUNTERSIGN_TEST_SENDER"); store != "" {
		runSender(store, os.Getenv("COUNTERSIGN_TEST_URL"))
		return
	}
	goleak.VerifyTestMain(m)
}

// fixture is a store with one action, whose runs are what is told.
type fixture struct {
	url   string
	store ledger.Ledger
	clock atomic.Int64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureOn(t, "sqlite:"+filepath.Join(t.TempDir(), "test.db"))
}

func newFixtureOn(t *testing.T, url string) *fixture {
	t.Helper()
	f := &fixture{url: url}
	f.clock.Store(int64(noon))
	store, err := open.Ledger(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	f.store = store
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	document, err := os.ReadFile("../../contracts/refund_workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, diagnostics := contract.Parse("refund_workflow.yaml", document)
	if c == nil {
		t.Fatal(diagnostics)
	}
	action := engine.Action{ActionID: "a", ContractID: c.ID, SubjectID: "order_1", RequestedAt: noon}
	if err := errors.Join(store.Migrate(t.Context()), store.Update(t.Context(), func(tx ledger.Tx) error {
		if err := tx.PublishContracts(t.Context(), []*contract.Contract{c}, 0); err != nil {
			return err
		}
		_, err := ledger.Record(t.Context(), tx, tenant, []ledger.RecordRequest{{Action: action}}, noon)
		return err
	})); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) now() engine.Instant { return engine.Instant(f.clock.Load()) }

// tell stores one run per kind; an empty kind is a run that tells nothing.
func (f *fixture) tell(t *testing.T, kinds ...string) {
	t.Helper()
	runs := make([]ledger.Run, len(kinds))
	for i, kind := range kinds {
		verdict := ledger.StoredVerdict{Verdict: engine.Verdict{Raw: engine.Verified, Reasons: []string{"effect_observed:stripe.refund_created"}}, Document: "{}"}
		runs[i] = ledger.Run{
			ClaimID: engine.ClaimID(tenant, "a"), Contract: ledger.ContractRef{ID: "refund_workflow", Version: 1}, Status: ledger.Settled, ComputedAt: noon,
			TriggeredBy: "manual", Headline: "PASS", Outcome: verdict, Policy: verdict, Report: []byte("{}"),
		}
		if kind != "" {
			runs[i].Events = []string{kind}
		}
	}
	if err := f.store.Update(t.Context(), func(tx ledger.Tx) error {
		_, err := tx.StoreRuns(t.Context(), tenant, runs)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// known makes the endpoints begin here, as a sidecar does at its first start.
func (f *fixture) known(t *testing.T, names ...string) {
	t.Helper()
	if err := f.store.Update(t.Context(), func(tx ledger.Tx) error {
		for _, name := range names {
			if _, err := tx.LockWebhook(t.Context(), tenant, name); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) deadLetters(t *testing.T) []ledger.Delivery {
	t.Helper()
	var page ledger.DeadLetterPage
	if err := f.store.View(t.Context(), func(tx ledger.Tx) (err error) {
		page, err = tx.DeadLetters(t.Context(), tenant, ledger.DeadLetterFilter{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return page.Deliveries
}

// config tries an endpoint three times.
func config(endpoints ...Endpoint) Config {
	c := DefaultConfig()
	c.MaxAttempts, c.Endpoints = 3, endpoints
	return c
}

func to(name, url string) Endpoint {
	return Endpoint{Name: name, Tenant: tenant, URL: url, Secret: configopaque.String(secret)}
}

// running runs a sender; stop ends it, and the test does at the latest.
func (f *fixture) running(t *testing.T, owner string, c Config) (stop func()) {
	t.Helper()
	s, err := New(c, Options{
		Ledger: f.store, Owner: owner, Now: f.now, Chance: func(below time.Duration) time.Duration { return below - 1 }, Version: "test",
		PollInterval: 5 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = func() {
		cancel()
		group.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// request is what arrived.
type request struct {
	header http.Header
	body   string
}

// receiver is an endpoint. It answers what answer says, which may block.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
}

func receive(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, got *http.Request) {
		body, err := io.ReadAll(got.Body)
		if err != nil {
			return // the sender was killed
		}
		r.mu.Lock()
		r.requests = append(r.requests, request{got.Header.Clone(), string(body)})
		n := len(r.requests)
		r.mu.Unlock()
		if answer != nil {
			answer(n, w, got)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// ids are how often each webhook-id arrived.
func (r *receiver) ids() map[string]int {
	ids := map[string]int{}
	for _, got := range r.got() {
		ids[got.header.Get("webhook-id")]++
	}
	return ids
}

func (r *receiver) wait(t *testing.T, n int) []request {
	t.Helper()
	within(t, fmt.Sprintf("%d requests", n), func() bool { return len(r.got()) >= n })
	return r.got()
}

// within fails the test when a condition does not hold in time.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		<-ticker.C
	}
}
