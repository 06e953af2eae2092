package serve

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// metrics of settlement. Labels are bounded: contracts are published by the operator.
type metrics struct {
	verdicts *prometheus.CounterVec
	parked   prometheus.Counter
}

func newMetrics(registry *prometheus.Registry, version string) metrics {
	m := metrics{
		verdicts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_verdicts_total", Help: "Verdicts that this process stored.",
		}, []string{"contract", "lens", "verdict", "status"}),
		parked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "countersign_parked_total", Help: "Actions that this process parked: they cannot be verified until somebody looks.",
		}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "countersign_build_info", Help: "Always 1."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	registry.MustRegister(m.verdicts, m.parked, build)
	return m
}

func (m metrics) stored(runs []ledger.Run) {
	for i := range runs {
		r := &runs[i]
		m.verdicts.WithLabelValues(r.Contract.ID, string(engine.Outcome), strings.ToLower(r.Outcome.Raw.Label()), r.Status).Inc()
		m.verdicts.WithLabelValues(r.Contract.ID, string(engine.Policy), strings.ToLower(r.Policy.Raw.Label()), r.Status).Inc()
	}
}
