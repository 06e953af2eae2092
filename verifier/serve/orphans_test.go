package serve

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/sqlite"
	"github.com/countersign-otel/countersign/verifier/telemetry"
)

// otlpMetrics keeps the last metrics that came over OTLP/HTTP.
type otlpMetrics struct {
	mu   sync.Mutex
	last pmetric.Metrics
}

func (m *otlpMetrics) ServeHTTP(w http.ResponseWriter, got *http.Request) {
	body, err := io.ReadAll(got.Body)
	request := pmetricotlp.NewExportRequest()
	if err != nil || request.UnmarshalProto(body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = request.Metrics()
}

// gauge is what a gauge said last, by the values of a label.
func (m *otlpMetrics) gauge(name, label string) map[string]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	values := map[string]float64{}
	for _, resource := range m.last.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				if metric.Name() != name {
					continue
				}
				for _, point := range metric.Gauge().DataPoints().All() {
					value, _ := point.Attributes().Get(label)
					values[value.Str()] = point.DoubleValue()
				}
			}
		}
	}
	return values
}

// TestOrphanEffectsAreMeasured: in /metrics and over OTLP, of all tenants, and
// not those that are explained, too new or too old.
func TestOrphanEffectsAreMeasured(t *testing.T) {
	t.Parallel()
	const now = engine.Instant(1_790_592_000)
	c := settings(t)
	received := &otlpMetrics{last: pmetric.NewMetrics()}
	server := httptest.NewServer(received)
	t.Cleanup(server.Close)
	c.Telemetry.Endpoint, c.Telemetry.Protocol, c.Telemetry.Interval = server.URL, telemetry.HTTP, time.Hour
	fact := func(ref, source, kind, subject string, at engine.Instant) engine.Fact {
		return engine.Fact{RawRef: ref, Source: source, Type: kind, SubjectID: subject, SubjectKind: "order", OccurredAt: at}
	}
	fill(t, c, now, map[string][]engine.Fact{
		engine.DefaultTenant: {
			fact("explained", "stripe", "refund_created", "order_1", now-600),
			fact("orphan", "stripe", "refund_created", "order_2", now-600),
			fact("orphan too", "crm", "note_added", "order_2", now-3600),
			fact("too old", "crm", "note_added", "order_2", now-3601),
			fact("too new", "stripe", "refund_created", "order_2", now-300),
			fact("nobody expects", "stripe", "charge_created", "order_2", now-600),
		},
		"acme": {fact("theirs", "stripe", "refund_created", "order_1", now-600)},
	})
	s := servingWith(t, c, Options{Now: func() engine.Instant { return now }})
	want := []string{`countersign_orphan_effects{source="crm"} 1`, `countersign_orphan_effects{source="stripe"} 2`}
	var got []string
	if !s.shows(t, func(metrics string) bool {
		got = seriesOf(metrics, "countersign_orphan_effects{")
		return slices.Equal(got, want)
	}) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]float64{"crm": 1, "stripe": 2}, received.gauge("countersign_orphan_effects", "source")); diff != "" {
		t.Errorf("over OTLP: %s", diff)
	}
}

// fill puts facts of tenants into a store, and an action of the default tenant about order_1.
func fill(t *testing.T, c Config, now engine.Instant, facts map[string][]engine.Fact) {
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
	if _, err := publish(ctx, store, c.Contracts, now); err != nil {
		t.Fatal(err)
	}
	recorded := ledger.NewAction{Action: engine.Action{
		ActionID: "act_1", ContractID: "refund_workflow", ContractVersion: 1, SubjectID: "order_1", SubjectKind: "order", ActionType: "refund_order", RequestedAt: now - 700,
	}}
	err = store.Update(ctx, func(tx ledger.Tx) error {
		if _, err := tx.RecordActions(ctx, engine.DefaultTenant, []ledger.NewAction{recorded}, now); err != nil {
			return err
		}
		for tenant, list := range facts {
			if _, err := tx.IngestFacts(ctx, tenant, ledger.FactBatch{Facts: list, Trust: engine.Independent}, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCountingOrphansRests: at least a minute, and longer in a store where it takes long.
func TestCountingOrphansRests(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{time.Millisecond: time.Minute, 3 * time.Second: 150 * time.Second} {
		if got := orphansPause(took); got != want {
			t.Errorf("after %s: %s, want %s", took, got, want)
		}
	}
}

// shows asks for /metrics, as seldom as the limit of requests without a key allows, until it holds.
func (r *running) shows(t *testing.T, holds func(metrics string) bool) bool {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; <-again.C {
		status, metrics := r.do(t, "", "GET", "/metrics", "")
		if status == http.StatusOK && holds(metrics) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// seriesOf are the lines of a text of metrics that begin so.
func seriesOf(metrics, prefix string) (series []string) {
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, prefix) {
			series = append(series, strings.TrimSpace(line))
		}
	}
	return series
}
