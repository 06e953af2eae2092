// Package grafana checks examples/grafana against the types of Grafana's own
// SDK, strictly: a field that Grafana does not know, or that is missing, fails.
package grafana

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/alerting"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/prometheus/prometheus/promql/parser"
	"gopkg.in/yaml.v3"
)

func TestMain(m *testing.M) {
	plugins.RegisterDefaultPlugins() // the types of panels and queries
	os.Exit(m.Run())
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "grafana", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// wrong says whether the SDK found something: it also returns lists of errors that are empty.
func wrong(err error) bool { return err != nil && err.Error() != "" }

func TestDashboard(t *testing.T) {
	t.Parallel()
	text := read(t, "dashboard.json")
	if err := new(dashboard.Dashboard).UnmarshalJSONStrict(text); wrong(err) {
		t.Fatal(err)
	}
	var d dashboard.Dashboard // reading strictly leaves parts out
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.Uid == nil || *d.Uid != "countersign" || len(d.Panels) == 0 {
		t.Errorf("uid %v, %d panels", d.Uid, len(d.Panels))
	}
	for _, p := range d.Panels {
		if p.Panel == nil || p.Panel.Title == nil || p.Panel.Description == nil || len(p.Panel.Targets) == 0 {
			t.Errorf("a panel without title, description or query: %+v", p.Panel)
		}
	}
}

func TestAlertRules(t *testing.T) {
	t.Parallel()
	var file struct {
		APIVersion int `yaml:"apiVersion"`
		Groups     []struct {
			OrgID    int              `yaml:"orgId"`
			Name     string           `yaml:"name"`
			Folder   string           `yaml:"folder"`
			Interval string           `yaml:"interval"`
			Rules    []map[string]any `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(read(t, "alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			rules++
			// The file says these for the whole group.
			rule["orgID"], rule["folderUID"], rule["ruleGroup"] = group.OrgID, group.Folder, group.Name
			text, err := json.Marshal(rule)
			if err != nil {
				t.Fatal(err)
			}
			var r alerting.Rule
			if err := r.UnmarshalJSONStrict(text); wrong(err) {
				t.Errorf("%v: %v", rule["uid"], err)
			}
			if len(r.Data) != 1 || r.Data[0].RefId == nil || *r.Data[0].RefId != r.Condition {
				t.Errorf("%s: the condition %s is no query", r.Title, r.Condition)
			}
		}
	}
	if rules == 0 || file.APIVersion != 1 {
		t.Errorf("%d rules, version %d", rules, file.APIVersion)
	}
}

// TestQueries: Prometheus understands each query, once Grafana has put its variables in.
func TestQueries(t *testing.T) {
	t.Parallel()
	variables := strings.NewReplacer("$__range", "1h", "$__rate_interval", "5m", "$contract", ".*", "$agent", ".*")
	var asked []string
	for _, name := range []string{"dashboard.json", "alerts.yaml"} {
		var file any
		if err := yaml.Unmarshal(read(t, name), &file); err != nil { // JSON is YAML, too
			t.Fatal(err)
		}
		asked = append(asked, expressions(file)...)
	}
	if len(asked) < 15 {
		t.Errorf("only %d queries", len(asked))
	}
	for _, query := range asked {
		if _, err := parser.ParseExpr(variables.Replace(query)); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// TestCollectorMetrics: a metric of the collector that an alert asks for is one
// that a component has, with the labels and values that it is asked for by.
func TestCollectorMetrics(t *testing.T) {
	t.Parallel()
	var alerts any
	if err := yaml.Unmarshal(read(t, "alerts.yaml"), &alerts); err != nil {
		t.Fatal(err)
	}
	asked := 0
	selector := regexp.MustCompile(`__name__=~"otelcol_(\w+)\(_total\)\?",(\w+)="(\w+)"`)
	for _, query := range expressions(alerts) {
		found := selector.FindAllStringSubmatch(query, -1)
		if len(found) != strings.Count(query, "otelcol_") {
			t.Errorf("a metric of the collector in another form: %s", query)
		}
		for _, f := range found {
			asked++
			if values := componentMetrics(t)[f[1]][f[2]]; !slices.Contains(values, f[3]) {
				t.Errorf("%s has no %s %q but %q", f[1], f[2], f[3], values)
			}
		}
	}
	if asked == 0 {
		t.Error("no alert about the collector")
	}
}

// componentMetrics are the metrics of the agent_action processor, with their attributes and the values of those.
func componentMetrics(t *testing.T) map[string]map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "processor", "agentactionprocessor", "metadata.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Attributes map[string]struct {
			Name string   `yaml:"name_override"`
			Enum []string `yaml:"enum"`
		} `yaml:"attributes"`
		Telemetry struct {
			Metrics map[string]struct {
				Attributes []string `yaml:"attributes"`
			} `yaml:"metrics"`
		} `yaml:"telemetry"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	metrics := map[string]map[string][]string{}
	for name, metric := range file.Telemetry.Metrics {
		metrics[name] = map[string][]string{}
		for _, key := range metric.Attributes {
			attribute := file.Attributes[key]
			metrics[name][cmp.Or(attribute.Name, key)] = attribute.Enum
		}
	}
	return metrics
}

// expressions are the values of expr anywhere in a document.
func expressions(document any) []string {
	var found []string
	switch d := document.(type) {
	case map[string]any:
		for key, value := range d {
			if text, ok := value.(string); ok && key == "expr" {
				found = append(found, text)
			}
			found = append(found, expressions(value)...)
		}
	case []any:
		for _, value := range d {
			found = append(found, expressions(value)...)
		}
	}
	return found
}

// dataSource is a data source as Grafana provisions one, with the settings of
// Prometheus, Tempo and Loki that lead from one to another.
type dataSource struct {
	Name     string `yaml:"name"`
	UID      string `yaml:"uid"`
	Type     string `yaml:"type"`
	Access   string `yaml:"access"`
	URL      string `yaml:"url"`
	JSONData struct {
		ExemplarTraceIDDestinations []struct {
			Name          string `yaml:"name"`
			DatasourceUID string `yaml:"datasourceUid"`
		} `yaml:"exemplarTraceIdDestinations"`
		TracesToLogsV2 *struct {
			DatasourceUID      string `yaml:"datasourceUid"`
			SpanStartTimeShift string `yaml:"spanStartTimeShift"`
			SpanEndTimeShift   string `yaml:"spanEndTimeShift"`
			CustomQuery        bool   `yaml:"customQuery"`
			Query              string `yaml:"query"`
		} `yaml:"tracesToLogsV2"`
		DerivedFields []struct {
			Name            string `yaml:"name"`
			MatcherType     string `yaml:"matcherType"`
			MatcherRegex    string `yaml:"matcherRegex"`
			DatasourceUID   string `yaml:"datasourceUid"`
			URL             string `yaml:"url"`
			URLDisplayLabel string `yaml:"urlDisplayLabel"`
		} `yaml:"derivedFields"`
	} `yaml:"jsonData"`
}

// TestDataSources: the ways between traces and verdicts lead to data sources
// that are there, by fields that Grafana knows and labels that the sidecar's events have.
func TestDataSources(t *testing.T) {
	t.Parallel()
	var file struct {
		APIVersion  int          `yaml:"apiVersion"`
		Datasources []dataSource `yaml:"datasources"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(read(t, "datasources.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil || file.APIVersion != 1 {
		t.Fatalf("version %d, %v", file.APIVersion, err)
	}
	types, ways := map[string]string{}, map[string]string{}
	labels := []string{"trace_id", "span_id"} // of every log record in Loki
	for _, source := range file.Datasources {
		types[source.UID] = source.Type
		if source.Access != "proxy" || source.URL == "" || source.Name == "" {
			t.Errorf("incomplete: %+v", source)
		}
		for _, to := range source.JSONData.ExemplarTraceIDDestinations {
			ways["from exemplars by "+to.Name] = to.DatasourceUID
		}
		if to := source.JSONData.TracesToLogsV2; to != nil {
			ways["from spans"] = to.DatasourceUID
			if !to.CustomQuery || !strings.Contains(to.Query, `trace_id="$${__span.traceId}"`) || !strings.Contains(to.Query, `span_id="$${__span.spanId}"`) {
				t.Errorf("from spans: %+v", to)
			}
		}
		for _, field := range source.JSONData.DerivedFields {
			if field.DatasourceUID != "" {
				ways["from events by "+field.MatcherRegex] = field.DatasourceUID
			}
			if field.MatcherType != "label" || field.URL != "$${__value.raw}" {
				t.Errorf("%+v", field)
			}
			labels = append(labels, field.MatcherRegex)
		}
	}
	want := map[string]string{"from exemplars by trace_id": "tempo", "from spans": "loki", "from events by trace_id": "tempo"}
	if !maps.Equal(want, ways) || types["tempo"] != "tempo" || types["loki"] != "loki" || types["prometheus"] != "prometheus" {
		t.Errorf("ways %v between %v, want %v", ways, types, want)
	}
	emitted, err := os.ReadFile(filepath.Join("..", "..", "..", "verifier", "emit", "telemetry.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range labels {
		// Loki writes the dots of attributes as underscores.
		if attribute := strings.Replace(label, "countersign_", "countersign.", 1); strings.HasPrefix(label, "countersign_") && !strings.Contains(string(emitted), `"`+attribute+`"`) {
			t.Errorf("no event has the attribute %s", attribute)
		}
	}
}
