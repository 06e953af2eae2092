package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/sqlite"
	"github.com/countersign-otel/countersign/verifier/feed"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/settle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is the API over a SQLite store of its own, with a key of every role.
type fixture struct {
	store    ledger.Ledger
	service  *Service
	hub      *Hub
	feed     *feed.Feed
	verifier *settle.Verifier
	uses     *Uses
	server   *httptest.Server
	clock    atomic.Int64
	// secrets by tenant and role.
	secrets map[string]map[string]string
	lastKey ledger.Key
}

const (
	tenantA = "acme"
	tenantB = "globex"
)

// evidenceSources are those that the evidence keys are bound to.
var evidenceSources = []string{"stripe", "shopify", "crm", "messaging"}

func instant(t *testing.T, text string) engine.Instant {
	t.Helper()
	i, err := engine.ParseInstant(text)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// newFixture serves the API at 10:50 of the refund story. Nothing settles by itself.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	ctx := context.Background()
	store, err := sqlite.OpenMemory(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := store.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	f := &fixture{store: store, secrets: map[string]map[string]string{}}
	f.clock.Store(int64(instant(t, "2026-09-28T10:50:00Z")))
	now := func() engine.Instant { return engine.Instant(f.clock.Load()) }
	publishFile(t, store, "../../contracts/refund_workflow.yaml")
	for _, tenant := range []string{tenantA, tenantB} {
		f.secrets[tenant] = map[string]string{}
		for _, role := range keys.Roles() {
			request := keys.Request{Role: role, Tenant: tenant}
			if role == ledger.RoleEvidence {
				request.Sources = evidenceSources
			}
			_, secret, err := keys.Create(ctx, store, request, now())
			if err != nil {
				t.Fatal(err)
			}
			f.secrets[tenant][role] = string(secret)
		}
	}
	contracts := ledger.NewContractCache(0)
	f.hub = NewHub(store, 0, nil)
	f.feed = feed.New(store, 0, nil)
	f.verifier = settle.New(settle.Config{
		Ledger: store, Contracts: contracts, Owner: t.Name(), Now: now, OnStored: f.hub.Stored,
		OnParked: func(string, []ledger.Parked) { f.feed.Nudge() },
	})
	f.service = NewService(Config{Ledger: store, Verifier: f.verifier, Contracts: contracts, Now: now, Hub: f.hub, Feed: f.feed})
	f.uses = NewUses(store, now, nil)
	f.server = httptest.NewServer(Handler(f.service, Options{Version: "test", Note: f.uses.Note, Heartbeat: 20 * time.Millisecond, SlowClient: time.Second}))
	t.Cleanup(func() {
		f.server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return f
}

func publishFile(t *testing.T, store ledger.Ledger, path string) {
	t.Helper()
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	publishDocument(t, store, path, document)
}

func publishDocument(t *testing.T, store ledger.Ledger, name string, document []byte) {
	t.Helper()
	c, diagnostics := contract.Parse(name, document)
	if c == nil {
		t.Fatal(diagnostics)
	}
	err := store.Update(context.Background(), func(tx ledger.Tx) error {
		return tx.PublishContracts(context.Background(), []*contract.Contract{c}, 0)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// settling runs the settle loop and the hub until the test ends.
func (f *fixture) settling(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{f.verifier.Run, f.hub.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// answer is a response, read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

// do sends a request with the key of a role of tenant acme; an empty role sends no key.
func (f *fixture) do(t *testing.T, role, method, path, body string) answer {
	t.Helper()
	return f.as(t, f.secrets[tenantA][role], method, path, body)
}

func (f *fixture) as(t *testing.T, secret, method, path, body string) answer {
	t.Helper()
	request, err := http.NewRequest(method, f.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if secret != "" {
		request.Header.Set("X-API-Key", secret)
	}
	request.Header.Set("X-Request-Id", "test")
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	return send(t, request)
}

func send(t *testing.T, request *http.Request) answer {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, strings.TrimSuffix(string(body), "\n")}
}

// must sends a request and fails the test unless it is answered with a status.
func (f *fixture) must(t *testing.T, status int, role, method, path, body string) answer {
	t.Helper()
	got := f.do(t, role, method, path, body)
	if got.status != status {
		t.Fatalf("%s %s as %s: %d %s, want %d", method, path, role, got.status, got.body, status)
	}
	return got
}

// compactJSON makes two JSON texts comparable without touching their order.
func compactJSON(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out.String()
}

// indentedJSON makes a difference readable.
func indentedJSON(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(compactJSON(t, text)), "", "  "); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// within fails the test when a condition does not hold in time.
func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
		<-ticker.C
	}
}

// The refund story.
const (
	refundAction = `{"action_id": "act_1", "contract_id": "refund_workflow", "workflow_id": "wf_1", "agent_id": "support-agent",
		"action_type": "refund_order", "subject_id": "order_10231", "subject_kind": "order", "requested_at": "2026-09-28T10:42:00Z",
		"params": {"amount": 180.0, "currency": "USD"}, "channel": "whatsapp"}`
	eligible = `{"source": "shopify", "subject_id": "order_10231", "subject_kind": "order", "fact_type": "order_status",
		"occurred_at": "2026-09-28T10:41:30Z", "attributes": {"status": "eligible", "total": 180.0}, "raw_ref": "sh_1"}`
	refunded = `{"source": "stripe", "subject_id": "order_10231", "subject_kind": "order", "fact_type": "refund_created",
		"occurred_at": "2026-09-28T10:42:07Z", "attributes": {"amount": 180.0, "refund_id": "re_1"}, "raw_ref": "re_1"}`
	cancelled = `{"source": "shopify", "subject_id": "order_10231", "fact_type": "order_cancelled", "occurred_at": "2026-09-28T10:42:20Z", "raw_ref": "sh_2"}`
	noted     = `{"source": "crm", "subject_id": "order_10231", "fact_type": "note_added", "occurred_at": "2026-09-28T10:42:30Z", "raw_ref": "crm_1"}`
	notified  = `{"source": "messaging", "subject_id": "order_10231", "fact_type": "customer_notified", "occurred_at": "2026-09-28T10:42:40Z", "raw_ref": "msg_1"}`
)

func facts(list ...string) string { return `{"facts": [` + strings.Join(list, ",") + `]}` }
