package emit

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"compress/gzip"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/sqlite"
	"github.com/countersign-otel/countersign/verifier/settle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a store with verdicts whose events wait in the outbox.
type fixture struct {
	store     ledger.Ledger
	contracts *ledger.ContractCache
	verifier  *settle.Verifier
	clock     atomic.Int64
	// spanID of the actions; empty takes actionSpan, - none.
	spanID string
	// registry and logger of the emitters; may be nil.
	registry *prometheus.Registry
	logger   *slog.Logger
}

const (
	tenant      = "acme"
	actionTrace = "0af7651916cd43dd8448eb211c80319c"
	actionSpan  = "b7ad6b7169203331"
)

func instant(t *testing.T, text string) engine.Instant {
	t.Helper()
	i, err := engine.ParseInstant(text)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func object(t *testing.T, text string) engine.Object {
	t.Helper()
	o, err := engine.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

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
	f := &fixture{store: store, contracts: ledger.NewContractCache(0)}
	f.clock.Store(int64(instant(t, "2026-09-28T10:57:00Z")))
	f.verifier = settle.New(settle.Config{Ledger: store, Contracts: f.contracts, Owner: "test", Now: f.now})
	document, err := os.ReadFile("testdata/refund_workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, diagnostics := contract.Parse("refund_workflow.yaml", document)
	if c == nil {
		t.Fatal(diagnostics)
	}
	f.update(t, func(tx ledger.Tx) error {
		return tx.PublishContracts(ctx, []*contract.Contract{c}, 0)
	})
	return f
}

func (f *fixture) now() engine.Instant { return engine.Instant(f.clock.Load()) }

func (f *fixture) update(t *testing.T, work func(ledger.Tx) error) {
	t.Helper()
	if err := f.store.Update(context.Background(), work); err != nil {
		t.Fatal(err)
	}
}

// effects are what the contract expects, by type and source.
var effects = [][2]string{{"refund_created", "stripe"}, {"order_cancelled", "shopify"}, {"note_added", "crm"}, {"customer_notified", "messaging"}}

// verify records an action with a trace, ingests the first n of its expected
// effects (after an eligible order, when n is above 0) and verifies it.
func (f *fixture) verify(t *testing.T, id string, n int, compensates string) ledger.Run {
	t.Helper()
	ctx := context.Background()
	action := engine.Action{
		ActionID: id, ContractID: "refund_workflow", AgentID: "support-agent", SubjectID: "order_" + id, RequestedAt: instant(t, "2026-09-28T10:42:00Z"),
		Params: object(t, `{"amount": 180.0}`), TraceID: actionTrace, SpanID: actionSpan, Tool: "refund_order", Compensates: compensates,
	}
	switch f.spanID {
	case "":
	case "-":
		action.SpanID = ""
	default:
		action.SpanID = f.spanID
	}
	batch := ledger.FactBatch{Trust: engine.Shared}
	add := func(source, kind, at, attributes string) {
		batch.Facts = append(batch.Facts, engine.Fact{
			RawRef: id + "_" + kind, Source: source, Type: kind, SubjectID: action.SubjectID, OccurredAt: instant(t, at), Attributes: object(t, attributes),
		})
	}
	if n > 0 {
		add("shopify", "order_status", "2026-09-28T10:41:30Z", `{"status": "eligible"}`)
	}
	for _, effect := range effects[:n] {
		add(effect[1], effect[0], "2026-09-28T10:42:07Z", `{"amount": 180.0}`)
	}
	f.update(t, func(tx ledger.Tx) error {
		results, err := ledger.Record(ctx, tx, tenant, []ledger.RecordRequest{{Action: action}}, f.now())
		if err == nil {
			err = results[0].Err
		}
		if err == nil {
			_, err = ledger.Ingest(ctx, tx, tenant, batch, f.now())
		}
		return err
	})
	runs, err := f.verifier.Verify(ctx, tenant, []string{engine.ClaimID(tenant, id)}, nil, "action")
	if err != nil {
		t.Fatal(err)
	}
	return runs[0]
}

// emitting runs an emitter until the returned function is called.
func (f *fixture) emitting(t *testing.T, c Config) (stop func()) {
	t.Helper()
	e, err := New(context.Background(), c, Options{
		Ledger: f.store, Contracts: f.contracts, Owner: t.Name(), Now: f.now, Version: "1.2.3", PollInterval: 5 * time.Millisecond,
		Registry: f.registry, Logger: f.logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// left is how many events wait in the outbox.
func (f *fixture) left(t *testing.T) int {
	t.Helper()
	n := 0
	err := f.store.Rehearse(context.Background(), func(tx ledger.Tx) error {
		far := f.now().Add(engine.Week)
		events, err := tx.LeaseOutbox(context.Background(), ledger.Lease{Owner: "count", Now: far, Until: far}, 1000)
		n = len(events)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// receiver is an OTLP endpoint that keeps what it gets.
type receiver struct {
	mu     sync.Mutex
	logs   []plog.LogRecord
	spans  []ptrace.Span
	scopes map[string]bool
	// header is the value of x-test of the last request.
	header string
	// refuse, when set, answers for a batch of logs instead.
	refuse  func(plog.Logs) error
	partial bool
	calls   int
}

func (r *receiver) takeLogs(logs plog.Logs, header string) (plogotlp.ExportResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	r.header = header
	answer := plogotlp.NewExportResponse()
	if r.refuse != nil {
		if err := r.refuse(logs); err != nil {
			return answer, err
		}
	}
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			r.scopes[scope.Scope().Name()] = true
			for _, record := range scope.LogRecords().All() {
				r.logs = append(r.logs, record)
			}
		}
	}
	if r.partial {
		answer.PartialSuccess().SetRejectedLogRecords(1)
	}
	return answer, nil
}

func (r *receiver) takeTraces(traces ptrace.Traces, header string) (ptraceotlp.ExportResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.header = header
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			r.scopes[scope.Scope().Name()] = true
			for _, span := range scope.Spans().All() {
				r.spans = append(r.spans, span)
			}
		}
	}
	return ptraceotlp.NewExportResponse(), nil
}

// got returns what came so far.
func (r *receiver) got() ([]plog.LogRecord, []ptrace.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]plog.LogRecord{}, r.logs...), append([]ptrace.Span{}, r.spans...)
}

type grpcLogs struct {
	plogotlp.UnimplementedGRPCServer
	*receiver
}

func (g *grpcLogs) Export(ctx context.Context, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	return g.takeLogs(request.Logs(), headerOf(ctx))
}

type grpcTraces struct {
	ptraceotlp.UnimplementedGRPCServer
	*receiver
}

func (g *grpcTraces) Export(ctx context.Context, request ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	return g.takeTraces(request.Traces(), headerOf(ctx))
}

func headerOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	if values := md.Get("x-test"); len(values) > 0 {
		return values[0]
	}
	return ""
}

// serveGRPC serves a receiver on an address; host:0 takes a free port.
func serveGRPC(t *testing.T, r *receiver, address string, options ...grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	plogotlp.RegisterGRPCServer(server, &grpcLogs{receiver: r})
	ptraceotlp.RegisterGRPCServer(server, &grpcTraces{receiver: r})
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(listener); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return listener.Addr().String()
}

func serveHTTP(t *testing.T, r *receiver, start func(http.Handler) *httptest.Server) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /otlp/v1/logs", func(w http.ResponseWriter, request *http.Request) {
		message := plogotlp.NewExportRequest()
		if err := message.UnmarshalProto(unpacked(t, request)); err != nil {
			t.Error(err)
		}
		answer, err := r.takeLogs(message.Logs(), request.Header.Get("x-test"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body, _ := answer.MarshalProto()
		_, _ = w.Write(body)
	})
	mux.HandleFunc("POST /otlp/v1/traces", func(w http.ResponseWriter, request *http.Request) {
		message := ptraceotlp.NewExportRequest()
		if err := message.UnmarshalProto(unpacked(t, request)); err != nil {
			t.Error(err)
		}
		answer, _ := r.takeTraces(message.Traces(), request.Header.Get("x-test"))
		body, _ := answer.MarshalProto()
		_, _ = w.Write(body)
	})
	server := start(mux)
	t.Cleanup(server.Close)
	return server.URL + "/otlp"
}

func unpacked(t *testing.T, request *http.Request) []byte {
	t.Helper()
	var body io.Reader = request.Body
	if request.Header.Get("Content-Encoding") == "gzip" {
		unpack, err := gzip.NewReader(body)
		if err != nil {
			t.Error(err)
			return nil
		}
		body = unpack
	}
	text, err := io.ReadAll(body)
	if err != nil {
		t.Error(err)
	}
	return text
}

func newReceiver() *receiver { return &receiver{scopes: map[string]bool{}} }

func to(endpoint, protocol string) Config {
	c := DefaultConfig()
	c.Endpoint, c.Protocol = endpoint, protocol
	return c
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
