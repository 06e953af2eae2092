package serve

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/settle"
)

func observation(agent, reported string, outcome engine.RawVerdict, events ...string) settle.Observation {
	run := &ledger.Run{Contract: ledger.ContractRef{ID: "refund_workflow"}, Status: ledger.Settled, Events: events, TriggeredBy: "action", ComputedAt: 107, Lease: &ledger.Due{DueAt: 100}}
	run.Outcome.Raw, run.Policy.Raw = outcome, engine.NotVerified
	return settle.Observation{Run: run, Action: &engine.Action{AgentID: agent, ReportedOutcome: reported}, Took: 20 * time.Millisecond}
}

// TestServiceLevels: what a rate of verified completion and of false success is made of.
func TestServiceLevels(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := newMetrics(registry, "test")
	m.observe("acme", []settle.Observation{
		observation("bot", "success", engine.Verified, "action.verified"),
		observation("bot", "success", engine.NotVerified, "action.verified"),
		observation("bot", "error", engine.NotVerified, "action.verified"),
		observation("bot", "success", engine.NotVerified), // told before
		observation("", "success", engine.Unverifiable, "action.verified", "action.compensated"),
	})
	m.park([]ledger.Parked{{Error: "evaluators disagree: x"}, {Error: "something else"}})
	for name, want := range map[string]string{
		"countersign_settled_actions_total": `
			countersign_settled_actions_total{agent="",contract="refund_workflow",lens="outcome",verdict="unknown"} 1
			countersign_settled_actions_total{agent="",contract="refund_workflow",lens="policy",verdict="fail"} 1
			countersign_settled_actions_total{agent="bot",contract="refund_workflow",lens="outcome",verdict="fail"} 2
			countersign_settled_actions_total{agent="bot",contract="refund_workflow",lens="outcome",verdict="pass"} 1
			countersign_settled_actions_total{agent="bot",contract="refund_workflow",lens="policy",verdict="fail"} 3`,
		"countersign_false_success_total": `
			countersign_false_success_total{agent="bot",contract="refund_workflow"} 1`,
		"countersign_parked_total":        "\ncountersign_parked_total 2",
		"countersign_disagreements_total": "\ncountersign_disagreements_total 1",
	} {
		text := scrape(t, registry, "text/plain")
		var got []string
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, name) {
				got = append(got, line)
			}
		}
		want = strings.ReplaceAll(strings.TrimSpace(want), "\t", "")
		if strings.Join(got, "\n") != want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, strings.Join(got, "\n"), want)
		}
	}
}

// TestExemplarsNameTheTrace: from a slow verdict to the trace of its action.
func TestExemplarsNameTheTrace(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := newMetrics(registry, "test")
	traced := observation("bot", "", engine.Verified)
	traced.Action.TraceID, traced.Action.SpanID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	hostile := observation("bot", "", engine.Verified)
	hostile.Action.TraceID = strings.Repeat("\xff", 32)
	m.observe("acme", []settle.Observation{traced, hostile})
	text := scrape(t, registry, "application/openmetrics-text; version=1.0.0")
	want := `countersign_settle_duration_seconds_bucket\{le="0.02"\} 2 # \{.*trace_id="0af7651916cd43dd8448eb211c80319c".*\} 0.02`
	if !regexp.MustCompile(want).MatchString(text) || !strings.Contains(text, `span_id="b7ad6b7169203331"`) {
		t.Errorf("no %s in\n%s", want, text)
	}
	if !strings.Contains(text, `countersign_settle_delay_seconds_sum 14`) {
		t.Error(text)
	}
}

func scrape(t *testing.T, registry *prometheus.Registry, accept string) string {
	t.Helper()
	request := httptest.NewRequest("GET", "/metrics", nil)
	request.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(answer, request)
	return answer.Body.String()
}

// TestAgentLabelsAreBounded: whoever invents agents fills no memory.
func TestAgentLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := newMetrics(prometheus.NewRegistry(), "test")
	for i := range 3 * mostAgents {
		m.observe("acme", []settle.Observation{observation(fmt.Sprintf("agent-%d", i), "success", engine.NotVerified, "action.verified")})
	}
	if n := testutil.CollectAndCount(m.falseSuccess); n != mostAgents+1 {
		t.Errorf("%d labels, want %d", n, mostAgents+1)
	}
}
