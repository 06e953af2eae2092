package verifiedactionsreceiver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/history"
	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/metadata"
)

// bare is a receiver that listens nowhere.
func bare(t testing.TB, sink *consumertest.TracesSink) *server {
	t.Helper()
	s, err := newServer(receivertest.NewNopSettings(metadata.Type), testConfig(), sink)
	if err != nil {
		t.Fatal(err)
	}
	s.history = history.New(history.NewMemory(), 10, false)
	return s
}

// FuzzActions: every action that is accepted is a span that a processor reads.
func FuzzActions(f *testing.F) {
	for _, seed := range []string{bareActions, goldenActions, metadataOf(bareActions), contentOf(bareActions), messageOf(bareActions)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		sink := new(consumertest.TracesSink)
		s := bare(t, sink)
		request := httptest.NewRequest(http.MethodPost, actionsPath, strings.NewReader(body))
		request.Header = bearer(testToken)
		a := s.actions(request.Context(), request)
		reply, ok := a.body.(actionsReply)
		if !ok {
			reply.Accepted = 0
		}
		if sink.SpanCount() != reply.Accepted {
			t.Fatalf("%d were accepted, and %d spans made", reply.Accepted, sink.SpanCount())
		}
		for _, td := range sink.AllTraces() {
			for _, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
				payload, err := verifiedactions.Parse(text(span, verifiedactions.DefaultPayloadKey))
				if err != nil || len(payload.Actions) != 1 || len(payload.Invalid) != 0 {
					t.Fatalf("%q became a payload that does not read: %v %v", body, err, payload.Invalid)
				}
				if span.TraceID().IsEmpty() || span.SpanID().IsEmpty() || span.StartTimestamp() == 0 {
					t.Fatalf("%q became a span without id or time", body)
				}
			}
		}
	})
}

// FuzzBatch: one result for each receipt, and a span for each that is created.
func FuzzBatch(f *testing.F) {
	s := newSender(f, "")
	wires := s.chain("a", 2)
	f.Add(`{"receipts":["{}",{"seq":1},3,null]}`)
	f.Add(`{"receipts":[]}`)
	f.Add(`{"receipts":[` + quoted(string(wires[0])) + `,` + string(wires[1]) + `]}`)
	f.Fuzz(func(t *testing.T, body string) {
		wires, err := splitBatch([]byte(body))
		if err != nil || len(wires) == 0 {
			return
		}
		sink := new(consumertest.TracesSink)
		receiver := bare(t, sink)
		items := make([]item, len(wires))
		for i := range wires {
			items[i].wire = wires[i]
		}
		key := receiver.keys["demo"]
		receiver.open(key, items)
		if err := receiver.deliver(t.Context(), key, items); err != nil {
			t.Fatal(err)
		}
		created := 0
		for i := range items {
			if items[i].outcome == "" {
				t.Fatalf("receipt %d of %q has no outcome", i, body)
			}
			if items[i].result().Status == "created" {
				created++
			}
		}
		if sink.SpanCount() != created {
			t.Fatalf("%d were created, and %d spans made", created, sink.SpanCount())
		}
	})
}
