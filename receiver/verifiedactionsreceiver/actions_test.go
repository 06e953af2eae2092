package verifiedactionsreceiver

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const (
	webAction = `{"type":"web","reference_id":"r-1","url":"https://api.example.com/refunds","method":"POST","status_code":200,"status":"success","duration_ms":120,"from_tomorrow":true}`
	mcpAction = `{"type":"mcp","reference_id":"r-2","server_url":"https://mcp.example.com","tool_name":"send_refund","status":"error"}`
	badAction = `{"type":"mcp","reference_id":"r-3","server_url":"https://mcp.example.com"}`

	bareActions = `{"session_id":"s-1","actions":[` + webAction + `,` + mcpAction + `]}`
)

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// quoted is a JSON text as a JSON string.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func metadataOf(payload string) string {
	return `{"verified_actions_version":"1.2","verified_actions_payload":` + quoted(payload) + `}`
}

func contentOf(payload string) string {
	return `{"type":"metadata","metadata":` + metadataOf(payload) + `}`
}

func messageOf(payload string) string {
	return `{"timestamp":"2026-06-15T10:29:00.5Z","msg_id":"m","content":[{"type":"text","text":"done"},` + contentOf(payload) + `]}`
}

// TestVA_Forms: VerifiedActions come by themselves and in everything that carries them.
func TestVA_Forms(t *testing.T) {
	t.Parallel()
	sent := time.Date(2026, 6, 15, 10, 29, 0, 500_000_000, time.UTC)
	const both = `{"accepted":2,"rejected":[]}`
	tests := []struct {
		name, body string
		status     int
		want       string
		at         time.Time
	}{
		{"bare", bareActions, 200, both, testNow},
		{"bare with a time", strings.Replace(bareActions, "{", `{"timestamp":"2026-06-15T12:29:00.5+02:00",`, 1), 200, both, sent},
		{"metadata", metadataOf(bareActions), 200, both, testNow},
		{"content", contentOf(bareActions), 200, both, testNow},
		{"message", messageOf(bareActions), 200, both, sent},
		{"payload that is no text", `{"content":[{"type":"metadata","metadata":{"verified_actions_version":1,"verified_actions_payload":` + bareActions + `}}]}`, 200, both, testNow},
		{"one of two does not read", `{"session_id":"s-1","actions":[` + webAction + `,` + badAction + `,` + mcpAction + `]}`, 200,
			`{"accepted":2,"rejected":[{"error":"actions[1]: invalid verified action: tool_name is missing"}]}`, testNow},
		{"message without", `{"content":[{"type":"text","text":"hello"}]}`, 200, `{"accepted":0,"rejected":[]}`, time.Time{}},
		{"none reads", `{"actions":[` + badAction + `]}`, 400,
			`{"accepted":0,"rejected":[{"error":"actions[0]: invalid verified action: tool_name is missing"}]}`, time.Time{}},
		{"payload does not read", contentOf(`{"actions":3}`), 400,
			`{"accepted":0,"rejected":[{"error":"invalid verified action: the payload does not read: at byte 12 stands a JSON number; an object with session_id (text) and actions (list) is needed"}]}`, time.Time{}},
		{"no JSON", `actions`, 400, `{"error":"the body does not read: invalid character 'a' looking for beginning of value"}`, time.Time{}},
		{"something else", `{"hello":1}`, 400,
			`{"error":"the body has neither actions nor the content of a chat message: send VerifiedActions as JSON, or a message or metadata that holds them"}`, time.Time{}},
		{"time without offset", `{"timestamp":"2026-06-15T10:29:00","actions":[]}`, 400,
			`{"error":"/timestamp is no time with an offset, from 1970 to 2261, like 2026-06-15T10:30:00Z"}`, time.Time{}},
		{"too large", `{"actions":[],"more":"` + strings.Repeat("x", 1<<20) + `"}`, 413,
			`{"error":"the body has more than 1048320 bytes, which is most for VerifiedActions"}`, time.Time{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			sink := new(consumertest.TracesSink)
			_, base := start(t, testConfig(), sink)
			got := newSender(t, base).post(actionsPath, []byte(test.body), bearer(testToken))
			if got.status != test.status || strings.TrimSpace(got.body) != test.want {
				t.Errorf("answered %d %s", got.status, got.body)
			}
			if test.at.IsZero() {
				if sink.SpanCount() != 0 {
					t.Error("a span was made")
				}
				return
			}
			spans := sink.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans()
			if spans.Len() != 2 || !spans.At(0).StartTimestamp().AsTime().Equal(test.at) {
				t.Errorf("%d spans, the first at %s", spans.Len(), spans.At(0).StartTimestamp().AsTime())
			}
			want := `{"actions":[{"duration_ms":120,"method":"POST","reference_id":"r-1","status":"success","status_code":200,"type":"web","url":"https://api.example.com/refunds"}],"session_id":"s-1"}`
			if payload := text(spans.At(0), "verified_actions_payload"); payload != want {
				t.Errorf("payload %s", payload)
			}
			if status := spans.At(1).Status().Code(); status != ptrace.StatusCodeError {
				t.Errorf("status of a failed call is %s", status)
			}
		})
	}
}

func TestVA_Tokens(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		header http.Header
		want   int
	}{
		{"right", bearer(testToken), 200},
		{"any case of the scheme", http.Header{"Authorization": {"bearer " + testToken}}, 200},
		{"wrong", bearer(testToken + "x"), 401},
		{"none", nil, 401},
		{"empty", bearer(""), 401},
		{"other scheme", http.Header{"Authorization": {"Basic " + testToken}}, 401},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, base := start(t, testConfig(), new(consumertest.TracesSink))
			if got := newSender(t, base).post(actionsPath, []byte(bareActions), test.header); got.status != test.want {
				t.Errorf("answered %d %s", got.status, got.body)
			}
		})
	}
}

// TestRoutes_ServedOnlyToSomebody: a route that nobody is let in by is not there.
func TestRoutes_ServedOnlyToSomebody(t *testing.T) {
	t.Parallel()
	actionsOnly := testConfig()
	actionsOnly.AEVS.Keys = nil
	_, base := start(t, actionsOnly, new(consumertest.TracesSink))
	s := newSender(t, base)
	if got := s.single([]byte("{}")); got.status != http.StatusNotFound {
		t.Errorf("receipts without keys: answered %d", got.status)
	}
	receiptsOnly := testConfig()
	receiptsOnly.VerifiedActions.Tokens = nil
	_, base = start(t, receiptsOnly, new(consumertest.TracesSink))
	if got := newSender(t, base).post(actionsPath, []byte(bareActions), nil); got.status != http.StatusNotFound {
		t.Errorf("actions without tokens: answered %d", got.status)
	}
}

// TestVA_SameDeliverySameIDs: but a receipt of the same call is another span of that trace.
func TestVA_SameDeliverySameIDs(t *testing.T) {
	t.Parallel()
	sink := new(consumertest.TracesSink)
	_, base := start(t, testConfig(), sink)
	s := newSender(t, base)
	s.post(actionsPath, []byte(bareActions), bearer(testToken))
	s.post(actionsPath, []byte(messageOf(bareActions)), bearer(testToken))
	receipt := receiptFields("s-1", 1, s.anchor("s-1"))
	receipt["reference_id"] = "r-1"
	wire, _ := s.seal(receipt)
	s.single(wire)
	var ids []string
	for _, td := range sink.AllTraces() {
		span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		ids = append(ids, span.TraceID().String()+"-"+span.SpanID().String())
	}
	if len(ids) != 3 || ids[0] != ids[1] {
		t.Fatalf("two deliveries of one action: %v", ids)
	}
	if ids[2] == ids[0] || ids[2][:32] != ids[0][:32] {
		t.Errorf("a receipt and an action of one call: %v", ids)
	}
	// They are kept by backends and ledgers: another release must make the same.
	if diff := cmp.Diff("58bd47e8c2456baae9950a0ef10f9c2f-49cd59cb93d2bf5b", ids[0]); diff != "" {
		t.Error(diff)
	}
}
