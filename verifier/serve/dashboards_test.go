package serve

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign-otel/countersign/engine"
)

// TestDashboardsQueryWhatIsExported: every metric that examples/grafana asks
// for is one that the sidecar exports, with every label that is named there.
func TestDashboardsQueryWhatIsExported(t *testing.T) {
	t.Parallel()
	exported := exportedMetrics(t)
	files, err := filepath.Glob("../../examples/grafana/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	asked := map[string]bool{}
	for _, file := range files {
		if !slices.Contains([]string{".json", ".yaml"}, filepath.Ext(file)) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(countersign_[a-z_]+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(string(text), -1) {
			name := found[1]
			if name == "countersign_url" {
				continue // an attribute of events, as Loki writes it
			}
			labels, ok := exported[metricOf(name)]
			if !ok {
				t.Errorf("%s asks for %s, which the sidecar does not export", file, name)
				continue
			}
			asked[metricOf(name)] = true
			for _, label := range regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`).FindAllStringSubmatch(found[2], -1) {
				if !slices.Contains(labels, label[1]) {
					t.Errorf("%s selects by %s of %s, which has %v", file, label[1], name, labels)
				}
			}
		}
	}
	if len(asked) < 4 {
		t.Errorf("only %v is asked for", asked)
	}
}

// metricOf is the metric that a series belongs to.
func metricOf(series string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if name, ok := strings.CutSuffix(series, suffix); ok {
			return name
		}
	}
	return series
}

// exportedMetrics are the labels of all metrics that a wired sidecar has, by name.
func exportedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	c := settings(t)
	store, err := openStore(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := &sidecar{Config: c, Options: Options{Version: "test", Logger: slog.New(slog.DiscardHandler), Now: func() engine.Instant { return 0 }}, store: store}
	if err := s.wire(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.page.Close)
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		s.registry.Describe(described)
	}()
	exported := map[string][]string{}
	form := regexp.MustCompile(`fqName: "([^"]*)".*variableLabels: \{([^}]*)\}`)
	for d := range described {
		if found := form.FindStringSubmatch(d.String()); found != nil {
			exported[found[1]] = strings.Split(found[2], ",")
		}
	}
	return exported
}
