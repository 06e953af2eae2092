package serve

import (
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/settle"
	"github.com/countersign-otel/countersign/verifier/view"
)

// metrics of settlement. Labels are bounded: contracts are published by the
// operator, and of agents the first mostAgents are told apart.
type metrics struct {
	verdicts      *prometheus.CounterVec
	completed     *prometheus.CounterVec
	falseSuccess  *prometheus.CounterVec
	settle        prometheus.Histogram
	delay         prometheus.Histogram
	parked        prometheus.Counter
	disagreements prometheus.Counter
	agents        *agentNames
}

// mostAgents is how many agents have a label of their own: names come from telemetry, which anybody may fill.
const mostAgents = 100

// settleBuckets tell latencies apart around the goals: a median of 50 and a p99 of 250 milliseconds.
var settleBuckets = []float64{.005, .01, .02, .03, .05, .075, .1, .15, .25, .5, 1, 2.5, 5, 10}

// delayBuckets begin at a second, because due times are whole seconds.
var delayBuckets = []float64{1, 2, 5, 10, 30, 60, 300, 900, 3600}

func newMetrics(registry *prometheus.Registry, version string) metrics {
	m := metrics{
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_verdicts_total", Help: "Verdicts that this process stored.",
		}, []string{"contract", "lens", "verdict", "status"}),
		completed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_settled_actions_total",
			Help: "Actions whose verdict settled, or changed afterwards, by contract, agent (the first 100; then other), lens and verdict: pass over all is the rate of verified completion.",
		}, []string{"contract", "agent", "lens", "verdict"}),
		falseSuccess: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_false_success_total",
			Help: "Settled actions whose agent reported success while the outcome is FAIL, by contract and agent.",
		}, []string{"contract", "agent"}),
		settle: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "countersign_settle_duration_seconds", Help: "Time from asking for due work to the commit of its verdicts, one observation an action; exemplars name the action's trace.",
			Buckets: settleBuckets,
		}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "countersign_settle_delay_seconds", Help: "Time from when work was due to its verdict, in whole seconds as the store keeps times: up to a second of it is rounding.",
			Buckets: delayBuckets,
		}),
		parked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "countersign_parked_total", Help: "Actions that this process parked: they cannot be verified until somebody looks.",
		}),
		disagreements: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "countersign_disagreements_total", Help: "Actions that this process parked because the evaluators did not say the same of them.",
		}),
		agents: &agentNames{known: map[string]bool{}},
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "countersign_build_info", Help: "Always 1."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	registry.MustRegister(m.verdicts, m.completed, m.falseSuccess, m.settle, m.delay, m.parked, m.disagreements, build)
	return m
}

func (m metrics) observe(_ string, observed []settle.Observation) {
	for _, o := range observed {
		r := o.Run
		for _, lens := range lenses(r) {
			m.verdicts.WithLabelValues(r.Contract.ID, lens.name, lens.verdict, r.Status).Inc()
		}
		m.time(o)
		if slices.Contains(r.Events, view.EventVerified) {
			m.complete(r, o.Action)
		}
	}
}

func (m metrics) time(o settle.Observation) {
	observeWithTrace(m.settle, o.Took, o.Action)
	if o.Run.Lease != nil && o.Run.TriggeredBy != "manual" {
		m.delay.Observe(float64(max(0, o.Run.ComputedAt-o.Run.Lease.DueAt)))
	}
}

// observeWithTrace attaches the action's trace, when it has one.
func observeWithTrace(h prometheus.Histogram, took time.Duration, a *engine.Action) {
	exemplars, ok := h.(prometheus.ExemplarObserver)
	if !ok || !isID(a.TraceID, 16) {
		h.Observe(took.Seconds())
		return
	}
	labels := prometheus.Labels{"trace_id": a.TraceID}
	if isID(a.SpanID, 8) {
		labels["span_id"] = a.SpanID
	}
	exemplars.ObserveWithExemplar(took.Seconds(), labels)
}

// isID says whether a text is an id of OpenTelemetry; others would not fit into an exemplar, or break it.
func isID(text string, bytes int) bool {
	decoded, err := hex.DecodeString(text)
	return err == nil && len(decoded) == bytes
}

func (m metrics) complete(r *ledger.Run, a *engine.Action) {
	agent := m.agents.label(a.AgentID)
	for _, lens := range lenses(r) {
		m.completed.WithLabelValues(r.Contract.ID, agent, lens.name, lens.verdict).Inc()
	}
	if a.ReportedOutcome == "success" && r.Outcome.Raw == engine.NotVerified {
		m.falseSuccess.WithLabelValues(r.Contract.ID, agent).Inc()
	}
}

type lensLabels struct{ name, verdict string }

func lenses(r *ledger.Run) [2]lensLabels {
	return [2]lensLabels{
		{string(engine.Outcome), strings.ToLower(r.Outcome.Raw.Label())},
		{string(engine.Policy), strings.ToLower(r.Policy.Raw.Label())},
	}
}

func (m metrics) park(parked []ledger.Parked) {
	for _, p := range parked {
		m.parked.Inc()
		if strings.HasPrefix(p.Error, settle.ErrDisagreement.Error()) {
			m.disagreements.Inc()
		}
	}
}

// agentNames bounds the label agent.
type agentNames struct {
	mu    sync.Mutex
	known map[string]bool
}

// label is the agent's name while there are few, empty for an agent that was not named.
func (n *agentNames) label(agent string) string {
	if agent == "" {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.known[agent] {
		if len(n.known) >= mostAgents {
			return "other"
		}
		n.known[agent] = true
	}
	return agent
}
