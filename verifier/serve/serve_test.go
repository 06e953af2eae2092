package serve

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/sqlite"
	"github.com/countersign-otel/countersign/verifier/api"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/webhook"
)

func TestMain(m *testing.M) {
	if store := os.Getenv(sidecarEnv); store != "" {
		runSidecar(store)
		return
	}
	goleak.VerifyTestMain(m)
}

// settings are those of a sidecar on a fresh file and a free port.
func settings(t *testing.T) Config {
	t.Helper()
	c := Default()
	c.Store = "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	c.Listen = "localhost:0"
	c.Contracts = []string{"../../contracts"}
	return c
}

// running is a sidecar in this process.
type running struct {
	url    string
	stop   func() error
	client *http.Client
}

func serving(t *testing.T, c Config) *running {
	t.Helper()
	return servingWith(t, c, Options{})
}

func servingWith(t *testing.T, c Config, o Options) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	o.Version, o.Ready = "test", func(url string) { ready <- url }
	go func() { ended <- Run(ctx, c, o) }()
	r := &running{client: &http.Client{}}
	r.stop = sync.OnceValue(func() error {
		cancel()
		r.client.CloseIdleConnections()
		return <-ended
	})
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	select {
	case r.url = <-ready:
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	return r
}

func (r *running) do(t *testing.T, secret, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-API-Key", secret)
	response, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// metrics are those of the sidecar once they hold a line.
func (r *running) metrics(t *testing.T, line string) string {
	t.Helper()
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(25 * time.Millisecond) // an address may ask fifty times a second
	defer ticker.Stop()
	for {
		_, metrics := r.do(t, "", "GET", "/metrics", "")
		if strings.Contains(metrics, line) {
			return metrics
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s in /metrics:\n%s", line, metrics)
		}
		<-ticker.C
	}
}

// key makes a key through a connection of its own, as the command line does beside a sidecar.
func key(t *testing.T, c Config, role string, sources ...string) string {
	t.Helper()
	ctx := context.Background()
	store, err := sqlite.Open(ctx, strings.TrimPrefix(c.Store, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	_, secret, err := keys.Create(ctx, store, keys.Request{Role: role, Sources: sources}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return string(secret)
}

// endpoint counts the spans and events that an OTLP endpoint got.
type endpoint struct {
	plogotlp.UnimplementedGRPCServer
	mu            sync.Mutex
	spans, events int
}

func (e *endpoint) Export(_ context.Context, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events += request.Logs().LogRecordCount()
	return plogotlp.NewExportResponse(), nil
}

type spanEndpoint struct {
	ptraceotlp.UnimplementedGRPCServer
	*endpoint
}

func (e *spanEndpoint) Export(_ context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spans += request.Traces().SpanCount()
	return ptraceotlp.NewExportResponse(), nil
}

func receiving(t *testing.T) (*endpoint, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	e, server := &endpoint{}, grpc.NewServer()
	plogotlp.RegisterGRPCServer(server, e)
	ptraceotlp.RegisterGRPCServer(server, &spanEndpoint{endpoint: e})
	var listening sync.WaitGroup
	listening.Go(func() {
		if err := server.Serve(listener); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		server.Stop()
		listening.Wait()
	})
	return e, "http://" + listener.Addr().String()
}

const action = `{"action_id": "act_1", "contract_id": "refund_workflow", "subject_id": "order_1", "params": {"amount": 180}, "verify": "auto"}`

// factsNow are all effects of the contract, a moment after the action.
func factsNow(at time.Time) string {
	fact := func(source, kind string, at time.Time, attributes string) string {
		return `{"source": "` + source + `", "subject_id": "order_1", "fact_type": "` + kind + `", "occurred_at": "` + at.UTC().Format(time.RFC3339) + `", "attributes": ` + attributes + `}`
	}
	return `{"facts": [` + strings.Join([]string{
		fact("shopify", "order_status", at.Add(-time.Minute), `{"status": "eligible"}`),
		fact("stripe", "refund_created", at.Add(time.Minute), `{"amount": 180}`),
		fact("shopify", "order_cancelled", at.Add(time.Minute), `{}`),
		fact("crm", "note_added", at.Add(time.Minute), `{}`),
		fact("messaging", "customer_notified", at.Add(time.Minute), `{}`),
	}, ",") + `]}`
}

// TestFromActionToVerdictAndBack: record, wait, push, be told over OTLP.
func TestFromActionToVerdictAndBack(t *testing.T) {
	t.Parallel()
	c := settings(t)
	got, address := receiving(t)
	c.Emit.Endpoint = address
	c.AddressFile = filepath.Join(t.TempDir(), "address")
	recorder, evidence := key(t, c, ledger.RoleRecorder), key(t, c, ledger.RoleEvidence, "stripe", "shopify", "crm", "messaging")
	s := serving(t, c)
	if text, err := os.ReadFile(c.AddressFile); err != nil || string(text) != s.url+"\n" {
		t.Errorf("address file: %q %v, want %q", text, err, s.url)
	}
	if status, body := s.do(t, recorder, "POST", "/v1/actions", action); status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	var waiting sync.WaitGroup
	var answer string
	waiting.Go(func() { _, answer = s.do(t, recorder, "GET", "/v1/actions/act_1/wait?timeout=60", "") })
	if status, body := s.do(t, evidence, "POST", "/v1/facts", factsNow(time.Now())); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	waiting.Wait()
	var waited api.Waited
	if err := json.Unmarshal([]byte(answer), &waited); err != nil || waited.TimedOut || waited.Policy.Verdict != "PASS" {
		t.Fatalf("%v: %s", err, answer)
	}
	// Whoever looks at the store may see the verdict before who stored it has
	// counted it; and facts that come meanwhile have it checked once more.
	metrics := s.metrics(t, `countersign_settled_actions_total{agent="",contract="refund_workflow",lens="outcome",verdict="pass"} 1`)
	for _, line := range []string{
		`countersign_verdicts_total{contract="refund_workflow",lens="policy",status="settled",verdict="pass"} `,
		"countersign_settle_duration_seconds_count ", "countersign_parked_actions 0", "countersign_outbox_depth ", "countersign_due ",
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %s in /metrics:\n%s", line, metrics)
		}
	}
	// What was stored last is still sent before the end.
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if got.spans != 1 || got.events < 3 {
		t.Errorf("%d spans and %d events arrived", got.spans, got.events)
	}
}

// TestEndLetsWaitersGo: a waiter gets what is known, at once, and no success.
func TestEndLetsWaitersGo(t *testing.T) {
	t.Parallel()
	c := settings(t)
	recorder := key(t, c, ledger.RoleRecorder)
	s := serving(t, c)
	if status, body := s.do(t, recorder, "POST", "/v1/actions", action); status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	var waiting sync.WaitGroup
	var answer string
	waiting.Go(func() { _, answer = s.do(t, recorder, "GET", "/v1/actions/act_1/wait?timeout=60", "") })
	s.metrics(t, "countersign_waiters 1")
	started := time.Now()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("the end took %s", took)
	}
	var waited api.Waited
	if err := json.Unmarshal([]byte(answer), &waited); err != nil || !waited.TimedOut {
		t.Errorf("%v: %s", err, answer)
	}
}

// TestRefusals: each names the thing and the remedy.
func TestRefusals(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	folder := t.TempDir()
	broken := filepath.Join(folder, "broken.yaml")
	if err := os.WriteFile(broken, []byte("id: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for _, row := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"port in use", func(c *Config) { c.Listen = taken.Addr().String() },
			"listen: " + taken.Addr().String() + " is in use by another program; end it, or choose another address with --listen (port 0 takes a free one)"},
		{"metrics port in use", func(c *Config) { c.Metrics.Listen = taken.Addr().String() },
			"metrics.listen: " + taken.Addr().String() + " is in use by another program; end it, or choose another address with --metrics-listen (port 0 takes a free one)"},
		{"metrics address", func(c *Config) { c.Metrics.Listen = "9464" }, `metrics.listen is "9464"; write host:port, like localhost:9464, or api`},
		{"open door", func(c *Config) { c.Listen = "0.0.0.0:0" },
			"invalid settings: listen is 0.0.0.0:0, which others can reach, and the store has no key that is good; make one first with countersign keys create, or listen on localhost"},
		{"all addresses", func(c *Config) { c.Listen = ":0" },
			"invalid settings: listen is :0, which others can reach, and the store has no key that is good; make one first with countersign keys create, or listen on localhost"},
		{"not migrated", func(c *Config) { c.Migrate = false }, "run countersign migrate, or set migrate: true"},
		{"no such contract", func(c *Config) { c.Contracts = []string{filepath.Join(empty, "nobody.yaml")} },
			"contracts: stat " + filepath.Join(empty, "nobody.yaml") + ": no such file or directory"},
		{"empty folder", func(c *Config) { c.Contracts = []string{empty} }, "contracts: there is no contract (*.yaml) in " + empty},
		{"broken contract", func(c *Config) { c.Contracts = []string{folder} }, broken + ":1:1: "},
		{"folder of the store is missing", func(c *Config) { c.Store = "sqlite:" + filepath.Join(empty, "sub", "x.db") },
			"the store sqlite:" + filepath.Join(empty, "sub", "x.db") + " cannot be opened: "},
		{"no such store", func(c *Config) { c.Store = "oracle:x" }, "the store oracle:x cannot be opened: invalid store URL: "},
		{"no folder for the address", func(c *Config) { c.AddressFile = filepath.Join(empty, "sub", "address") }, "address_file: "},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := settings(t)
			row.change(&c)
			err := Run(context.Background(), c, Options{Ready: func(string) { t.Error("it serves") }})
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v\nwant %s", err, row.want)
			}
		})
	}
}

func TestOpenDoorWithAKey(t *testing.T) {
	t.Parallel()
	c := settings(t)
	key(t, c, ledger.RoleViewer)
	c.Listen = "0.0.0.0:0"
	if err := serving(t, c).stop(); err != nil {
		t.Error(err)
	}
}

func TestSecondVersionUnderTheSameNumber(t *testing.T) {
	t.Parallel()
	c := settings(t)
	if err := serving(t, c).stop(); err != nil {
		t.Fatal(err)
	}
	if err := serving(t, c).stop(); err != nil {
		t.Errorf("the same contracts again: %v", err)
	}
	document, err := os.ReadFile("../../contracts/refund_workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	changed := strings.Replace(string(document), "max: 250", "max: 251", 1)
	if err := os.WriteFile(filepath.Join(folder, "c.yaml"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Contracts = []string{folder}
	if err := Run(context.Background(), c, Options{}); !errors.Is(err, ledger.ErrImmutable) {
		t.Errorf("got %v", err)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "verifier.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(string) (string, bool) { return "", false }
	write(`
store: postgres://user@localhost/countersign
listen: localhost:0
contracts: [contracts, more]
settlement:
  max_lag: 24h
  recheck_interval: 5m
emit:
  endpoint: http://localhost:4317
  headers: {x-token: secret}
  span_mode: child
  tls: {insecure: true}
webhooks:
  max_attempts: 3
  endpoints:
    - {name: crm, url: "https://hooks.example", secret: "${env:TEST_WEBHOOK_SECRET:-whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}", events: [action.verified]}
`)
	variables := map[string]string{"COUNTERSIGN_LISTEN": "localhost:1", "COUNTERSIGN_SETTLEMENT_MAX_LAG": "12h", "COUNTERSIGN_STORE": ""}
	lookup := func(name string) (string, bool) {
		text, ok := variables[name]
		return text, ok
	}
	c, err := Load(context.Background(), path, lookup, map[string]string{"listen": "localhost:2", "contracts": "a, b", "migrate": "false"})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Store, want.Listen, want.Contracts, want.Migrate = "postgres://user@localhost/countersign", "localhost:2", []string{"a", "b"}, false
	want.Settlement.MaxLag, want.Settlement.RecheckInterval = 12*time.Hour, 5*time.Minute
	want.Emit.Endpoint, want.Emit.SpanMode = "http://localhost:4317", "child"
	type plain struct {
		Store, Listen string
		Contracts     []string
		Migrate       bool
		Settlement    Settlement
		Endpoint      string
		SpanMode      string
	}
	of := func(c Config) plain {
		return plain{c.Store, c.Listen, c.Contracts, c.Migrate, c.Settlement, c.Emit.Endpoint, c.Emit.SpanMode}
	}
	if diff := cmp.Diff(of(want), of(c)); diff != "" {
		t.Error(diff)
	}
	wantHooks := webhook.DefaultConfig()
	wantHooks.MaxAttempts = 3
	wantHooks.Endpoints = []webhook.Endpoint{{Name: "crm", URL: "https://hooks.example", Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", Events: []string{"action.verified"}}}
	if diff := cmp.Diff(wantHooks, c.Webhooks); diff != "" {
		t.Error(diff)
	}
	if string(c.Emit.Headers["x-token"]) != "secret" || !c.Emit.TLS.Insecure {
		t.Errorf("emit: %v", c.Emit)
	}

	for text, want := range map[string]string{
		"lisen: x\nemit:\n  endpont: y\n": "emit.endpont is no setting (did you mean emit.endpoint?); lisen is no setting (did you mean listen?)",
		"settlement:\n  zzz: 1\n":         "settlement.zzz is no setting",
		"settlement:\n  max_lag: 2 h\n":   "settlement.max_lag: time: unknown unit; write a length of time like 15m, 48h or 10s",
	} {
		write(text)
		_, err := Load(context.Background(), path, nothing, nil)
		if want = "invalid settings: " + path + ": " + want; err == nil || err.Error() != want {
			t.Errorf("%q:\n%v, want\n%s", text, err, want)
		}
	}
	variables = map[string]string{"COUNTERSIGN_SETTLEMENT_WORKERS": "many", "COUNTERSIGN_MIGRATE": "perhaps", "COUNTERSIGN_EMIT_HEADERS": "secret"}
	_, err = Load(context.Background(), "", lookup, map[string]string{"settlement.max_lag": "2 days", "listen": "8383", "settlement.recheck_interval": "1500ms", "limits.key_rate": "-1", "limits.connections": "0"})
	wantText := `invalid settings: COUNTERSIGN_MIGRATE: "perhaps" is neither true nor false
invalid settings: --settlement-max-lag: "2 days" is no length of time; write one like 15m, 48h or 10s
invalid settings: COUNTERSIGN_SETTLEMENT_WORKERS: "many" is no whole number
invalid settings: COUNTERSIGN_EMIT_HEADERS: a header is not written name=value
invalid settings: listen is "8383"; write host:port, like localhost:8383
invalid settings: settlement.recheck_interval is 1.5s; write whole seconds, at least 1s
invalid settings: limits: key_rate is -1; write 0 to 1000000, 0 for no limit
invalid settings: limits.connections is 0; write 1 to 1000000`
	if diff := cmp.Diff(wantText, err.Error()); diff != "" {
		t.Error(diff)
	}
}

// TestUsesOfKeysAreStoredBeforeItEnds: also those of its last seconds.
func TestUsesOfKeysAreStoredBeforeItEnds(t *testing.T) {
	t.Parallel()
	c := settings(t)
	secret := key(t, c, ledger.RoleViewer)
	s := serving(t, c)
	s.do(t, secret, "GET", "/v1/actions", "")
	s.do(t, secret, "POST", "/v1/facts", "{}")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.Open(t.Context(), strings.TrimPrefix(c.Store, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	got := map[string]int{}
	err = store.View(t.Context(), func(tx ledger.Tx) error {
		page, err := tx.KeyEvents(t.Context(), engine.DefaultTenant, ledger.KeyEventFilter{})
		for _, e := range page.Events {
			got[e.Kind+" "+e.Route+" "+e.Remote] = e.Times
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"created  ": 1, "used /v1/actions 127.0.0.1": 1, "refused /v1/facts 127.0.0.1": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
