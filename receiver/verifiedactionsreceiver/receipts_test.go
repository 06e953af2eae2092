package verifiedactionsreceiver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
)

// referencesIn lists the receipts of which spans came, in order.
func referencesIn(sink *consumertest.TracesSink) []string {
	var list []string
	for _, td := range sink.AllTraces() {
		for _, resource := range td.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					list = append(list, text(span, verifiedactions.ReferenceKey)+" "+text(span, "aevs.chain_status"))
				}
			}
		}
	}
	return list
}

func text(span ptrace.Span, key string) string {
	value, ok := span.Attributes().Get(key)
	if !ok {
		return "-"
	}
	return value.AsString()
}

type requestVector struct {
	Path    string            `json:"path"`
	Body    string            `json:"body_utf8"`
	Headers map[string]string `json:"headers"`
}

// TestVectors_Requests sends what the SDK itself sent, byte by byte.
func TestVectors_Requests(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/aevs-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Single  requestVector `json:"request_single"`
		Batch   requestVector `json:"request_batch"`
		Version struct {
			APIKey    string            `json:"api_key"`
			PublicKey string            `json:"public_key_spki_pem"`
			Headers   map[string]string `json:"request_headers"`
			Receipt   struct {
				Wire string `json:"wire_bytes_utf8"`
			} `json:"receipt"`
		} `json:"v2_ecdsa"`
	}
	if err := json.Unmarshal(content, &v); err != nil {
		t.Fatal(err)
	}
	const first, second, third = "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002", "aaaaaaaa-0000-4000-8000-000000000006"
	v2 := requestVector{receiptPath, v.Version.Receipt.Wire, v.Version.Headers}
	tests := []struct {
		name    string
		key     KeyConfig
		request requestVector
		status  int
		want    []string
	}{
		{"single", KeyConfig{APIKey: testKey}, v.Single, http.StatusCreated, []string{first + " anchor"}},
		{"batch", KeyConfig{APIKey: testKey}, v.Batch, http.StatusOK, []string{first + " anchor", second + " linked"}},
		{"version 2", KeyConfig{APIKey: testKeyV2}, v2, http.StatusCreated, []string{third + " anchor"}},
		{"version 2, public key", KeyConfig{ID: "demo", PublicKey: v.Version.PublicKey}, v2, http.StatusCreated, []string{third + " unverified"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config, sink := testConfig(), new(consumertest.TracesSink)
			config.AEVS.Keys = []KeyConfig{test.key}
			_, base := start(t, config, sink)
			header := http.Header{}
			for name, value := range test.request.Headers {
				header.Set(name, value)
			}
			got := newSender(t, base).post(test.request.Path, []byte(test.request.Body), header)
			if got.status != test.status {
				t.Errorf("answered %d %s", got.status, got.body)
			}
			if diff := cmp.Diff(test.want, referencesIn(sink)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRequests_Refused(t *testing.T) {
	t.Parallel()
	const unknown = "unknown key, or wrong signature: check api_key in the SDK and aevs.keys in the collector"
	tests := []struct {
		name   string
		send   func(*sender, []byte) reply
		status int
		want   string
	}{
		{"unknown key", func(s *sender, wire []byte) reply { s.keyID = "other"; return s.single(wire) }, 401, unknown},
		{"no headers", func(s *sender, wire []byte) reply { return s.post(receiptPath, wire, nil) }, 401, unknown},
		{"wrong signature", func(s *sender, wire []byte) reply { s.request = s.payload; return s.single(wire) }, 401, unknown},
		{"wrong signature of a batch", func(s *sender, wire []byte) reply { s.request = s.payload; return s.batch(wire) }, 401, unknown},
		{"signature that is no hex", func(s *sender, wire []byte) reply {
			return s.post(receiptPath, wire, http.Header{keyIDHeader: {"demo"}, signatureHeader: {"zz"}})
		}, 401, unknown},
		{"too old", func(s *sender, wire []byte) reply {
			s.now = func() time.Time { return testNow.Add(-5*time.Minute - time.Second) }
			return s.single(wire)
		}, 401, "X-AEVS-Timestamp is 5m1s old by the collector's clock; aevs.replay_window is 5m0s"},
		{"from the future", func(s *sender, wire []byte) reply {
			s.now = func() time.Time { return testNow.Add(time.Minute + time.Second) }
			return s.single(wire)
		}, 401, "X-AEVS-Timestamp is 1m1s ahead of the collector's clock; aevs.clock_skew is 1m0s"},
		{"too large", func(s *sender, _ []byte) reply { return s.single(make([]byte, 1<<20+1)) }, 413,
			"the body is larger than max_request_body_size"},
		{"too many", func(s *sender, wire []byte) reply { return s.batch(wire, wire, wire, wire) }, 413,
			"the batch has 4 receipts; aevs.max_batch_receipts is 3"},
		{"no batch", func(s *sender, _ []byte) reply { return s.send(batchPath, []byte(`{"receipts":null}`)) }, 400,
			"the batch has no list receipts"},
		{"agent not allowed", func(s *sender, _ []byte) reply {
			receipt := receiptFields(testSession, 1, s.anchor(testSession))
			receipt["agent_id"] = "somebody"
			wire, _ := s.seal(receipt)
			return s.single(wire)
		}, 403, "agent somebody may not use key demo: add it to the key's agents in the collector"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config, sink := testConfig(), new(consumertest.TracesSink)
			config.ServerConfig.MaxRequestBodySize = 1 << 20
			config.AEVS.MaxBatchReceipts = 3
			config.AEVS.Keys[0].Agents = []AgentConfig{{ID: testAgent}}
			_, base := start(t, config, sink)
			s := newSender(t, base)
			got := test.send(s, s.chain(testSession, 1)[0])
			var body problem
			if err := json.Unmarshal([]byte(got.body), &body); err != nil {
				t.Fatalf("%s: %v", got.body, err)
			}
			if got.status != test.status || body.Error != test.want {
				t.Errorf("answered %d %q", got.status, body.Error)
			}
			if sink.SpanCount() != 0 {
				t.Error("a span was made")
			}
		})
	}
}

func TestRequests_WithinWindow(t *testing.T) {
	t.Parallel()
	_, base := start(t, testConfig(), new(consumertest.TracesSink))
	for _, offset := range []time.Duration{-5 * time.Minute, time.Minute} {
		s := newSender(t, base)
		s.now = func() time.Time { return testNow.Add(offset) }
		if got := s.batch(s.chain(testSession, 1)...); got.status != http.StatusOK {
			t.Errorf("%s: answered %d %s", offset, got.status, got.body)
		}
	}
}

func TestBatch_NotServed(t *testing.T) {
	t.Parallel()
	config := testConfig()
	config.AEVS.MaxBatchReceipts = 0
	_, base := start(t, config, new(consumertest.TracesSink))
	s := newSender(t, base)
	if got := s.batch(s.chain(testSession, 1)...); got.status != http.StatusNotFound {
		t.Errorf("answered %d, want 404, which makes SDKs send receipts one by one", got.status)
	}
}

func statuses(r batchReply) []string {
	list := make([]string, len(r.Results))
	for i, result := range r.Results {
		list[i] = strings.TrimSpace(result.Status + " " + result.Error)
	}
	return list
}

// tampered is a receipt whose amount somebody changed on the way.
func tampered(wire []byte) []byte {
	return []byte(strings.Replace(string(wire), "12.500000", "99.000000", 1))
}

func TestReceipts_OnePoisonHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	sink := new(consumertest.TracesSink)
	_, base := start(t, testConfig(), sink)
	s := newSender(t, base)
	wires := s.chain("a", 3)
	changed := receiptFields("a", 1, s.anchor("a"))
	changed["tool_name"] = "something_else"
	other, _ := s.seal(changed)

	const wrong = "wrong signature: /payload_hmac does not match the receipt under key demo"
	const nothing = "invalid receipt: invalid JSON at byte 0: an object was expected"
	const second = "another receipt came with the reference id a-1 before; the first one stands"
	batch := [][]byte{wires[0], tampered(wires[1]), []byte("nothing"), wires[0], other, wires[2]}
	first := s.batch(batch...).batch(t)
	want := []string{"created", "rejected " + wrong, "rejected " + nothing, "duplicate", "rejected " + second, "created"}
	if diff := cmp.Diff(want, statuses(first)); diff != "" {
		t.Error(diff)
	}
	if first.FailedAtIndex != nil {
		t.Errorf("failed_at_index is %d, which holds up all behind it", *first.FailedAtIndex)
	}
	// What was refused for good, and comes again, is let go of.
	want = []string{"duplicate", "duplicate " + wrong, "duplicate " + nothing, "duplicate", "duplicate " + second, "duplicate"}
	if diff := cmp.Diff(want, statuses(s.batch(batch...).batch(t))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a-1 anchor", "a-3 gap"}, referencesIn(sink)); diff != "" {
		t.Error(diff)
	}
}

func TestReceipts_SingleStatus(t *testing.T) {
	t.Parallel()
	_, base := start(t, testConfig(), new(consumertest.TracesSink))
	s := newSender(t, base)
	wire := s.chain("a", 1)[0]
	for _, test := range []struct {
		name string
		wire []byte
		want int
	}{
		{"new", wire, http.StatusCreated},
		{"again", wire, http.StatusOK},
		{"tampered", tampered(wire), http.StatusAccepted},
		{"nonsense", []byte(`{"seq":1}`), http.StatusAccepted},
	} {
		if got := s.single(test.wire); got.status != test.want {
			t.Errorf("%s: answered %d %s", test.name, got.status, got.body)
		}
	}
}

// TestReceipts_AcknowledgedAfterPipeline: nothing is remembered of what the
// pipeline did not take, so that it is taken when it comes again.
func TestReceipts_AcknowledgedAfterPipeline(t *testing.T) {
	t.Parallel()
	sink := new(consumertest.TracesSink)
	var full atomic.Bool
	full.Store(true)
	next := consume(t, func(ctx context.Context, td ptrace.Traces) error {
		if full.Load() {
			return errors.New("sending queue is full of secrets")
		}
		return sink.ConsumeTraces(ctx, td)
	})
	_, base := start(t, testConfig(), next)
	s := newSender(t, base)
	wires := s.chain("a", 2)
	for _, got := range []reply{s.batch(wires...), s.single(wires[0])} {
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "5" {
			t.Errorf("answered %d, Retry-After %q", got.status, got.header.Get("Retry-After"))
		}
		if want := `{"error":"the collector's pipeline did not take it; come again later"}` + "\n"; got.body != want {
			t.Errorf("answered %s", got.body)
		}
	}
	full.Store(false)
	if diff := cmp.Diff([]string{"created", "created"}, statuses(s.batch(wires...).batch(t))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a-1 anchor", "a-2 linked"}, referencesIn(sink)); diff != "" {
		t.Error(diff)
	}
}

// TestReceipts_PipelineRefusesOne: the others of its batch go through.
func TestReceipts_PipelineRefusesOne(t *testing.T) {
	t.Parallel()
	sink := new(consumertest.TracesSink)
	next := consume(t, func(ctx context.Context, td ptrace.Traces) error {
		for _, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			if text(span, verifiedactions.ReferenceKey) == "a-2" {
				return consumererror.NewPermanent(errors.New("never"))
			}
		}
		return sink.ConsumeTraces(ctx, td)
	})
	_, base := start(t, testConfig(), next)
	s := newSender(t, base)
	wires := s.chain("a", 3)
	const never = "rejected the collector's pipeline refused it for good"
	if diff := cmp.Diff([]string{"created", never, "created"}, statuses(s.batch(wires...).batch(t))); diff != "" {
		t.Error(diff)
	}
	// It is not let go of: what refused it is on this side, and may be put right.
	if diff := cmp.Diff([]string{"duplicate", never, "duplicate"}, statuses(s.batch(wires...).batch(t))); diff != "" {
		t.Error(diff)
	}
	if got := s.single(wires[1]); got.status != http.StatusInternalServerError {
		t.Errorf("answered %d", got.status)
	}
}

func consume(t *testing.T, take func(context.Context, ptrace.Traces) error) consumer.Traces {
	t.Helper()
	next, err := consumer.NewTraces(take)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestD37_TenantOfTheKey(t *testing.T) {
	t.Parallel()
	config := testConfig()
	config.AEVS.Keys[0].Tenant = "acme"
	config.VerifiedActions.Tokens[0].Tenant = "umbrella"
	var got []any
	next := consume(t, func(ctx context.Context, _ ptrace.Traces) error {
		auth := client.FromContext(ctx).Auth
		got = append(got, auth.GetAttribute("tenant"), auth.GetAttribute("key_id"))
		return nil
	})
	_, base := start(t, config, next)
	s := newSender(t, base)
	s.batch(s.chain("a", 1)...)
	s.single(s.chain("b", 1)[0])
	s.post(actionsPath, []byte(bareActions), bearer(testToken))
	if diff := cmp.Diff([]any{"acme", "demo", "acme", "demo", "umbrella", nil}, got); diff != "" {
		t.Error(diff)
	}
}

func TestServer_BusyWithOthers(t *testing.T) {
	t.Parallel()
	config := testConfig()
	config.MaxConcurrentRequests = 1
	inside, leave := make(chan struct{}), make(chan struct{})
	next := consume(t, func(context.Context, ptrace.Traces) error {
		close(inside)
		<-leave
		return nil
	})
	_, base := start(t, config, next)
	s := newSender(t, base)
	wires := s.chain("a", 2)
	first := make(chan reply)
	go func() { first <- s.single(wires[0]) }()
	<-inside
	if got := s.single(wires[1]); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "5" {
		t.Errorf("answered %d", got.status)
	}
	close(leave)
	if got := <-first; got.status != http.StatusCreated {
		t.Errorf("answered %d", got.status)
	}
}
