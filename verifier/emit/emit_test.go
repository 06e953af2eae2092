package emit

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

var update = flag.Bool("update", false, "write testdata anew")

// golden compares telemetry with a file, every byte of it.
func golden(t *testing.T, name string, logs []plog.LogRecord, spans []ptrace.Span) {
	t.Helper()
	outLogs, outTraces := plog.NewLogs(), ptrace.NewTraces()
	records := outLogs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, record := range logs {
		record.CopyTo(records.AppendEmpty())
	}
	list := outTraces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for _, span := range spans {
		span.CopyTo(list.AppendEmpty())
	}
	logText, err := (&plog.JSONMarshaler{}).MarshalLogs(outLogs)
	if err != nil {
		t.Fatal(err)
	}
	spanText, err := (&ptrace.JSONMarshaler{}).MarshalTraces(outTraces)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(map[string]json.RawMessage{"logs": logText, "spans": spanText}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)+"\n"); diff != "" {
		t.Error(diff)
	}
}

// collect emits everything to a fresh endpoint and returns what arrived.
func (f *fixture) collect(t *testing.T, protocol, mode string) ([]plog.LogRecord, []ptrace.Span) {
	t.Helper()
	r := newReceiver()
	var endpoint string
	if protocol == GRPC {
		endpoint = "http://" + serveGRPC(t, r, "localhost:0")
	} else {
		endpoint = serveHTTP(t, r, httptest.NewServer)
	}
	c := to(endpoint, protocol)
	c.SpanMode, c.PublicURL = mode, "https://countersign.example/base"
	stop := f.emitting(t, c)
	within(t, time.Minute, "the outbox is empty", func() bool { return f.left(t) == 0 })
	stop()
	if !r.scopes[Scope] || len(r.scopes) != 1 {
		t.Errorf("scopes: %v", r.scopes)
	}
	return r.got()
}

// TestVerdictsAsTelemetry pins events and spans, attribute by attribute.
func TestVerdictsAsTelemetry(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, protocol, mode string
		effects              int
	}{
		{"pass_linked", GRPC, Linked, 4},
		{"fail_linked", HTTP, Linked, 3},
		{"unknown_off", HTTP, Off, 0},
		{"fail_child", GRPC, Child, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.verify(t, "act_1", row.effects, "")
			logs, spans := f.collect(t, row.protocol, row.mode)
			golden(t, row.name, logs, spans)
		})
	}
}

// TestEvaluationFollowsTheConvention states the rules that testdata only shows.
func TestEvaluationFollowsTheConvention(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		effects  int
		label    string
		score    any
		severity plog.SeverityNumber
	}{{4, "pass", 1.0, plog.SeverityNumberInfo}, {3, "fail", 0.0, plog.SeverityNumberError}, {0, "unknown", nil, plog.SeverityNumberWarn}} {
		f := newFixture(t)
		run := f.verify(t, "act_1", row.effects, "")
		logs, spans := f.collect(t, GRPC, Linked)
		if len(logs) != 3 || len(spans) != 1 {
			t.Fatalf("%d events and %d spans", len(logs), len(spans))
		}
		for i, name := range []string{"action.outcome", "action.policy"} {
			record := logs[i]
			got := record.Attributes().AsRaw()
			if record.EventName() != "gen_ai.evaluation.result" || got["gen_ai.evaluation.name"] != name || got["gen_ai.evaluation.score.label"] != row.label ||
				got["gen_ai.evaluation.score.value"] != row.score || got["gen_ai.evaluation.explanation"] != run.Headline {
				t.Errorf("%s: %s %v", name, record.EventName(), got)
			}
			if record.TraceID().String() != actionTrace || record.SpanID().String() != actionSpan || record.Body().Str() != run.Headline || record.SeverityNumber() != row.severity {
				t.Errorf("%s: trace %s span %s body %q severity %s", name, record.TraceID(), record.SpanID(), record.Body().AsString(), record.SeverityNumber())
			}
			if record.ObservedTimestamp() == 0 || record.Timestamp() != record.ObservedTimestamp() {
				t.Errorf("%s: times %s %s", name, record.Timestamp(), record.ObservedTimestamp())
			}
			for key, value := range got {
				switch value.(type) {
				case string, int64, float64, bool:
				case []any:
				default:
					t.Errorf("%s: %s is %T; scalars and lists of texts only", name, key, value)
				}
			}
		}
		if logs[2].EventName() != "action.verified" {
			t.Errorf("third event: %s", logs[2].EventName())
		}
		failed := spans[0].Status().Code() == ptrace.StatusCodeError
		if failed != (row.label == "fail") {
			t.Errorf("%s: span status %s", row.label, spans[0].Status().Code())
		}
	}
}

// TestSameVerdictSameIDs: sending twice shows once, and child and linked spans differ by nothing else.
func TestSameVerdictSameIDs(t *testing.T) {
	t.Parallel()
	ids := func(mode string) []string {
		f := newFixture(t)
		f.verify(t, "act_1", 3, "")
		logs, spans := f.collect(t, GRPC, mode)
		var list []string
		for _, record := range logs {
			id, _ := record.Attributes().Get("countersign.event.id")
			list = append(list, id.Str())
		}
		for _, span := range spans {
			list = append(list, span.TraceID().String()+"/"+span.SpanID().String())
		}
		return list
	}
	first, second := ids(Linked), ids(Linked)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
	child := ids(Child)
	if !slices.Equal(child[:3], first[:3]) || !strings.HasPrefix(child[3], actionTrace+"/") || strings.HasPrefix(first[3], actionTrace) {
		t.Errorf("linked %v, child %v", first, child)
	}
	seen := map[string]bool{}
	for _, id := range child {
		if seen[id] {
			t.Errorf("%s stands twice", id)
		}
		seen[id] = true
	}
}

func TestPendingIsToldOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.clock.Store(int64(instant(t, "2026-09-28T10:43:00Z")))
	f.verify(t, "act_1", 1, "")
	f.verify(t, "act_1", 2, "")
	logs, spans := f.collect(t, GRPC, Linked)
	if len(logs) != 1 || len(spans) != 0 || logs[0].EventName() != Pending {
		t.Errorf("%d events, %d spans", len(logs), len(spans))
	}
}

// TestCompensationStandsOnTheCorrectedAction: that is where people look.
func TestCompensationStandsOnTheCorrectedAction(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.verify(t, "act_1", 3, "")
	f.verify(t, "act_2", 4, "act_1")
	logs, _ := f.collect(t, GRPC, Off)
	last := logs[len(logs)-1]
	got := last.Attributes().AsRaw()
	if last.EventName() != Compensated || got["countersign.compensates"] != "act_1" || got["countersign.compensated_by"] != "act_2" ||
		last.Body().Str() != "act_1 COMPENSATED by act_2" || last.TraceID().String() != actionTrace {
		t.Errorf("%s %v", last.EventName(), got)
	}
}

// TestEndpointAwayLosesNothing: what cannot be sent stays, and is sent when the endpoint is back.
func TestEndpointAwayLosesNothing(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	for i := range 5 {
		f.verify(t, fmt.Sprintf("act_%d", i), 4, "")
	}
	c := to("http://"+address, GRPC)
	c.MaxBackOff = 20 * time.Millisecond
	stop := f.emitting(t, c)
	within(t, time.Minute, "an attempt failed", func() bool { return f.attempts(t) > 0 })
	if n := f.left(t); n != 5 {
		t.Errorf("%d of 5 events are left", n)
	}
	r := newReceiver()
	serveGRPC(t, r, address)
	within(t, time.Minute, "everything arrived", func() bool {
		f.clock.Add(1) // a retry is due at a time of the store's clock
		return f.left(t) == 0
	})
	stop()
	logs, spans := r.got()
	seen := map[string]bool{}
	for _, span := range spans {
		seen[span.SpanID().String()] = true
	}
	if len(seen) != 5 || len(logs) < 15 {
		t.Errorf("%d verdicts, %d events", len(seen), len(logs))
	}
}

// TestRefusedEventHoldsNoOther: it stays, with the error, and the others go.
func TestRefusedEventHoldsNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, id := range []string{"good_1", "bad", "good_2"} {
		f.verify(t, id, 4, "")
	}
	r := newReceiver()
	r.refuse = func(logs plog.Logs) error {
		for _, record := range logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
			if id, _ := record.Attributes().Get("countersign.action.id"); id.Str() == "bad" {
				return status.Error(codes.InvalidArgument, "I do not like it")
			}
		}
		return nil
	}
	stop := f.emitting(t, to("http://"+serveGRPC(t, r, "localhost:0"), GRPC))
	within(t, time.Minute, "two are sent", func() bool { return f.left(t) == 1 })
	stop()
	logs, _ := r.got()
	if len(logs) != 6 {
		t.Errorf("%d events arrived", len(logs))
	}
}

// TestPartialSuccessIsNotRepeated: the protocol forbids it.
func TestPartialSuccessIsNotRepeated(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.verify(t, "act_1", 4, "")
	r := newReceiver()
	r.partial = true
	stop := f.emitting(t, to("http://"+serveGRPC(t, r, "localhost:0"), GRPC))
	within(t, time.Minute, "it is sent", func() bool { return f.left(t) == 0 })
	stop()
	if r.calls != 1 {
		t.Errorf("sent %d times", r.calls)
	}
}

// TestNothingIsKeptWithoutAnEndpoint: the outbox does not grow for ever.
func TestNothingIsKeptWithoutAnEndpoint(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.verify(t, "act_1", 4, "")
	f.emitting(t, DefaultConfig())
	within(t, time.Minute, "the outbox is empty", func() bool { return f.left(t) == 0 })
}

// TestTLSAndHeaders: over both protocols, with an authority of one's own.
func TestTLSAndHeaders(t *testing.T) {
	t.Parallel()
	web := newReceiver()
	var server *httptest.Server
	endpoint := serveHTTP(t, web, func(h http.Handler) *httptest.Server {
		server = httptest.NewTLSServer(h)
		return server
	})
	authority := configopaque.String(pemOf(server.Certificate()))
	rpc := newReceiver()
	grpcAddress := serveGRPC(t, rpc, "localhost:0", grpc.Creds(credentials.NewServerTLSFromCert(&server.TLS.Certificates[0])))
	_, port, _ := net.SplitHostPort(grpcAddress)
	for _, row := range []struct {
		name     string
		config   Config
		receiver *receiver
	}{
		{"http", to(endpoint, HTTP), web},
		{"grpc", to("127.0.0.1:"+port, GRPC), rpc},
	} {
		f := newFixture(t)
		f.verify(t, "act_1", 4, "")
		c := row.config
		c.TLS = configtls.ClientConfig{Config: configtls.Config{CAPem: authority}}
		c.Headers = map[string]configopaque.String{"X-Test": "secret"}
		stop := f.emitting(t, c)
		within(t, time.Minute, row.name+" is sent", func() bool { return f.left(t) == 0 })
		stop()
		if row.receiver.header != "secret" {
			t.Errorf("%s: header %q", row.name, row.receiver.header)
		}
	}
}

func TestSettingsThatAreWrong(t *testing.T) {
	t.Parallel()
	c := Config{Endpoint: "ftp://x", Protocol: "carrier pigeon", Compression: "zip", SpanMode: "sideways", PublicURL: "here"}
	want := `invalid emit settings: emit.protocol is "carrier pigeon"; write grpc or http/protobuf
invalid emit settings: emit.compression is "zip"; write gzip or none
invalid emit settings: emit.span_mode is "sideways"; write linked, child or off
invalid emit settings: emit.batch_size is 0; write 1 to 10000
invalid emit settings: emit.timeout is 0s; write a length above 0, like 10s
invalid emit settings: emit.max_back_off is 0s; write a length above 0, like 30s
invalid emit settings: emit.endpoint is "ftp://x"; write host:port, http://host:port or https://host:port
invalid emit settings: emit.public_url is "here"; write an address like https://countersign.example`
	if diff := cmp.Diff(want, c.Validate().Error()); diff != "" {
		t.Error(diff)
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

// TestSupersedingVerdictNamesWhatItReplaces: a later verdict is an event and a
// span of its own, which name the verdicts, the run and the span before.
func TestSupersedingVerdictNamesWhatItReplaces(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{Linked, Child} {
		f := newFixture(t)
		first := f.verify(t, "act_1", 3, "")
		second := f.verify(t, "act_1", 4, "")
		logs, spans := f.collect(t, GRPC, mode)
		if len(logs) != 6 {
			t.Fatalf("%d events", len(logs))
		}
		for _, record := range logs[:3] {
			for key := range record.Attributes().AsRaw() {
				if strings.Contains(key, "previous") {
					t.Errorf("the first verdict replaces something: %s", key)
				}
			}
		}
		want := map[string]any{
			"countersign.previous.seq": first.Seq, "countersign.previous.run.id": first.ID, "countersign.previous.status": "settled", "countersign.changed": true,
			"countersign.run.seq": second.Seq, "countersign.previous.verdict": "FAIL", "countersign.previous.hash": fmt.Sprintf("%x", first.Outcome.Hash),
		}
		wantAttributes(t, "outcome", logs[3].Attributes(), want)
		want["countersign.previous.hash"] = fmt.Sprintf("%x", first.Policy.Hash)
		wantAttributes(t, "policy", logs[4].Attributes(), want)
		pair := map[string]any{
			"countersign.outcome.verdict": "PASS", "countersign.outcome.previous_verdict": "FAIL", "countersign.outcome.previous_hash": fmt.Sprintf("%x", first.Outcome.Hash),
			"countersign.policy.verdict": "PASS", "countersign.policy.previous_verdict": "FAIL", "countersign.policy.previous_hash": fmt.Sprintf("%x", first.Policy.Hash),
		}
		wantAttributes(t, "action.verified", logs[5].Attributes(), pair)
		var verdicts []ptrace.Span
		for _, span := range spans {
			if strings.HasPrefix(span.Name(), "verify_action") {
				verdicts = append(verdicts, span)
			}
		}
		if len(verdicts) != 2 || verdicts[0].SpanID() == verdicts[1].SpanID() {
			t.Fatalf("%s: %d verdict spans", mode, len(verdicts))
		}
		wantAttributes(t, "span", verdicts[1].Attributes(), pair)
		links := verdicts[1].Links()
		last := links.At(links.Len() - 1)
		if last.TraceID() != verdicts[0].TraceID() || last.SpanID() != verdicts[0].SpanID() || last.Attributes().AsRaw()["countersign.link"] != "previous" {
			t.Errorf("%s: the later span links to %s/%s, not to %s/%s", mode, last.TraceID(), last.SpanID(), verdicts[0].TraceID(), verdicts[0].SpanID())
		}
	}
}

func wantAttributes(t *testing.T, what string, got pcommon.Map, want map[string]any) {
	t.Helper()
	raw := got.AsRaw()
	for key, value := range want {
		if raw[key] != value {
			t.Errorf("%s: %s is %v, want %v", what, key, raw[key], value)
		}
	}
}

// TestSamplingExampleKnowsVerdicts: the sampler keeps verdicts by their scope.
func TestSamplingExampleKnowsVerdicts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../examples/sampling.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := `instrumentation_scope.name == "` + Scope + `"`; !strings.Contains(string(text), want) {
		t.Errorf("examples/sampling.yaml does not ask for %s", want)
	}
}
