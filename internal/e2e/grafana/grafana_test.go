// Package grafana checks examples/grafana against the types of Grafana's own
// SDK, strictly: a field that Grafana does not know, or that is missing, fails.
package grafana

import (
	"encoding/json"
	"os"
	"path/filepath"
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
