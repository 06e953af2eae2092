package verifiedactionsreceiver

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	signal "go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/metadata"
)

// running is the receiver that a contract check has started.
type running struct{ server atomic.Pointer[server] }

// factory makes receivers whose spans have what the check tells them apart by:
// their reference id.
func (r *running) factory() receiver.Factory {
	return receiver.NewFactory(metadata.Type, createDefaultConfig, receiver.WithTraces(
		func(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
			marked, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
				for _, resource := range td.ResourceSpans().All() {
					for _, scope := range resource.ScopeSpans().All() {
						for _, span := range scope.Spans().All() {
							span.Attributes().PutStr(receivertest.UniqueIDAttrName, referenceOf(span))
						}
					}
				}
				return next.ConsumeTraces(ctx, td)
			})
			if err != nil {
				return nil, err
			}
			s, err := newServer(set, cfg.(*Config), marked)
			if err != nil {
				return nil, err
			}
			s.now = func() time.Time { return testNow }
			r.server.Store(s)
			return s, nil
		}, metadata.TracesStability))
}

func referenceOf(span ptrace.Span) string {
	if reference := text(span, verifiedactions.ReferenceKey); reference != "-" {
		return reference
	}
	payload, err := verifiedactions.Parse(text(span, verifiedactions.DefaultPayloadKey))
	if err != nil || len(payload.Actions) != 1 {
		return "-"
	}
	return payload.Actions[0].ReferenceID
}

// agent sends until it is told that all was taken, or never will be.
type agent struct {
	*running
	t    *testing.T
	n    atomic.Int64
	send func(*sender, int) (sent []receivertest.UniqueIDAttrVal, again bool)
}

func (*agent) Start() {}
func (*agent) Stop()  {}

func (a *agent) Generate() []receivertest.UniqueIDAttrVal {
	n := int(a.n.Add(1))
	s := newSender(a.t, "http://"+a.server.Load().listener.Addr().String())
	for {
		sent, again := a.send(s, n)
		if !again {
			return sent
		}
	}
}

// TestConsumeContract: all that is acknowledged was taken, what was refused for
// a time comes again, and what was refused for good does not.
func TestConsumeContract(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		send func(*sender, int) ([]receivertest.UniqueIDAttrVal, bool)
	}{
		{"receipts", func(s *sender, n int) ([]receivertest.UniqueIDAttrVal, bool) {
			session := fmt.Sprint("s", n)
			got := s.single(s.chain(session, 1)[0])
			return []receivertest.UniqueIDAttrVal{receivertest.UniqueIDAttrVal(session + "-1")}, got.status == http.StatusServiceUnavailable
		}},
		{"actions", func(s *sender, n int) ([]receivertest.UniqueIDAttrVal, bool) {
			first, second := fmt.Sprint("r", n, "a"), fmt.Sprint("r", n, "b")
			const action = `{"type":"mcp","reference_id":%q,"server_url":"u","tool_name":"t"}`
			body := fmt.Sprintf(`{"session_id":"s","actions":[`+action+`,`+action+`]}`, first, second)
			got := s.post(actionsPath, []byte(body), bearer(testToken))
			return []receivertest.UniqueIDAttrVal{receivertest.UniqueIDAttrVal(first), receivertest.UniqueIDAttrVal(second)}, got.status == http.StatusServiceUnavailable
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := new(running)
			receivertest.CheckConsumeContract(receivertest.CheckConsumeContractParams{
				T: t, Factory: r.factory(), Signal: signal.SignalTraces, Config: testConfig(),
				Generator: &agent{running: r, t: t, send: test.send}, GenerateCount: 100,
			})
		})
	}
}
