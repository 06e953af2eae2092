package evidenceprocessor

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/countersign-otel/countersign/internal/settings"
	"github.com/countersign-otel/countersign/processor/evidenceprocessor/internal/metadata"
)

func loadConfig(t *testing.T, name string) (*Config, error) {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sub, err := conf.Sub(component.NewIDWithName(metadata.Type, name).String())
	if err != nil {
		t.Fatal(err)
	}
	config := NewDefaultConfig()
	if err := sub.Unmarshal(config); err != nil {
		return nil, err
	}
	return config, confmap.Validate(config)
}

func TestConfigReadsEverySetting(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]*Config{
		"":     {},
		"auth": {Tenancy: settings.Tenancy{TenantFromAuth: "organization", Tenants: []string{"acme", "globex"}}},
		"all": {
			Trust: "shared", Connection: "crm-poller", SealKey: "0123456789abcdef0123456789abcdef", Tenancy: settings.Tenancy{Tenant: "acme"},
			Mappings: []MappingConfig{
				{Name: "stripe"},
				{
					Name: "shopify", Source: "shop_eu", Condition: `Body("id") != nil`, SubjectID: `Body("name")`,
					Attributes: map[string]string{"Shop": `resource.attributes["shop"]`},
				},
				{Name: "sql_audit", Source: "erp"},
			},
			Rules: []RuleConfig{
				{
					Name: "notes", Source: "CRM", Condition: `log.attributes["table"] == "notes"`, ForEach: `Body("notes")`,
					FactType: "note_added", SubjectID: `Item("order_id")`, SubjectKind: "order", OccurredAt: `Item("at")`,
					Attributes: AttributesConfig{Whole: `JSON(Item("extra"))`},
					RawRef:     `Concat(["crm", Item("id")], ":")`, Links: []string{`Item("ticket_id")`},
				},
				{
					Source: "crm", FactType: `log.attributes["type"]`, SubjectKind: `log.attributes["kind"]`, SubjectID: `Body("a")`,
					Attributes: AttributesConfig{Values: map[string]string{"amount": `Minor(Body("amount"), Body("currency"))`}},
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := loadConfig(t, name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigErrorsNameTheirPlace(t *testing.T) {
	t.Parallel()
	const decoding = "decoding failed due to the following error(s):\n\n"
	for name, want := range map[string]string{
		"wrong": `
tenant: it is set and so is tenant_from_auth; remove one of them
trust: invalid trust level "absolute": write self_reported, shared or independent
connection: invalid id: connection has the control character U+000A
seal_key: it has less than 32 characters, so that it could be guessed; write something like what ` + "`openssl rand -hex 32`" + ` prints
mappings[0].name: "paypal": write one of stripe, shopify, zendesk, github, sql_audit
mappings[1].source: it is empty; the mapping sql_audit is for any source, so name it
mappings[2].source: otel is what agents say of themselves, which is no evidence
mappings[3].condition: condition failed to parse near ` + "`Bdy(\"id\")`" + `: undefined function "Bdy"
mappings[3].subject_id: Body(: expression has invalid syntax
mappings[3].attributes.empty: the expression is empty
mappings[3].attributes: invalid identifier "no good": write a letter, then letters, digits or _ . : -, at most 64 in all
mappings[5].source: zendesk is that of mappings[4]; every source needs its own
rules[0].source: it is empty; name the system of record, because trust lets records in that no evidence receiver delivered
rules[0].subject_id: it is empty; name the record that the fact is about, like Body("order_id")
rules[0].fact_type: it is empty, and there are no links; say what happened
rules[1].source: invalid identifier "9lives": write a letter, then letters, digits or _ . : -, at most 64 in all
rules[1].condition: condition has invalid syntax
rules[1].for_each: Itm(): undefined function "Itm"
rules[1].fact_type: Refund Created: expression has invalid syntax
rules[1].subject_kind: log.kind: segment "kind" from path "log.kind" is not a valid path
rules[1].subject_id: Body("a[b].c"): couldn't create function: "a[b].c": a filter compares names with values; write items[name=value,other!=value]
rules[1].occurred_at: body: missing context name for path "body"
rules[1].raw_ref: Minor(Body("a"), "USD", "adyen"): couldn't create function: convention "adyen": write iso or stripe
rules[1].attributes: JSON(: expression has invalid syntax
rules[1].links[0]: the expression is empty
rules[1].links[1]: Body(: expression has invalid syntax
rules[2].attributes: "Amount" and "amount" are the same name; case does not count
rules[2].attributes.x: the expression is empty
rules[2].name: "one" is the name of rules[1]; names tell rules apart
rules[3].occurred_at: without fact_type there is only a link, which has none; remove it
rules[3].raw_ref: without fact_type there is only a link, which has none; remove it
rules[3].attributes: without fact_type there is only a link, which has none; remove it`,
		"text_rule":   decoding + `'rules[0].attributes' amount: an expression is text; put 100 in quotes`,
		"unknown_key": decoding + `'mappings[0]' has no key secret; known are name, source, condition, subject_id, attributes`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := loadConfig(t, name)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), short(err.Error())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// short leaves OTTL its own words: their beginning is enough to know which error it is.
func short(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = ottlPosition.ReplaceAllString(line, "")
		for _, of := range []string{"has invalid syntax", `undefined function "Bdy"`, `undefined function "Itm"`, "is not a valid path", `path "body"`} {
			if i := strings.Index(line, of); i >= 0 {
				line = line[:i+len(of)]
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

var ottlPosition = regexp.MustCompile(`(unable to parse OTTL condition "[^\n]*": )?\b\d+:\d+: `)

func TestFindConfig(t *testing.T) {
	t.Parallel()
	conf := confmap.NewFromStringMap(map[string]any{"processors": map[string]any{
		"evidence/a": map[string]any{"mappings": []any{"stripe"}}, "evidence/b": map[string]any{"mappings": []any{"paypal"}}, "batch": nil,
	}})
	got, err := FindConfig(conf, "a")
	if err != nil || len(got.Mappings) != 1 || got.Mappings[0].Name != "stripe" {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, want := range map[string]string{
		"":  "processors: there are evidence/a and evidence/b; say which",
		"b": `processors::evidence/b: mappings[0].name: "paypal": write one of stripe, shopify, zendesk, github, sql_audit`,
		"c": "processors: there is no evidence/c",
	} {
		if _, err := FindConfig(conf, name); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	if _, err := FindConfig(confmap.New(), ""); err == nil || err.Error() != "processors: there is no evidence" {
		t.Errorf("got %v", err)
	}
}

// TestReadme loads what the README shows, and looks for every setting, function and mapping in it.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) == 0 {
		t.Fatal("the README shows no configuration")
	}
	for _, block := range blocks {
		if loadDocument(t, []byte(block[1])) == 0 {
			t.Errorf("no evidence processor in\n%s", block[1])
		}
	}
	names := append([]string{"Body", "Item", "List", "Count", "Sum", "Minor", "JSON", "DeliveryID", "Source"}, mappingNames...)
	for _, of := range []any{Config{}, MappingConfig{}, RuleConfig{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(of)) {
			if !field.Anonymous { // what it holds follows
				names = append(names, field.Tag.Get("mapstructure"))
			}
		}
	}
	for _, name := range names {
		if !strings.Contains(string(readme), "`"+name+"`") && !strings.Contains(string(readme), "`"+name+"(") {
			t.Errorf("the README does not explain %s", name)
		}
	}
	mapped, err := mappings()
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range mapped {
		for _, r := range m.Rules {
			if nameAsItIs.MatchString(r.FactType) && !strings.Contains(string(readme), "`"+r.FactType+"`") {
				t.Errorf("the README does not name %s of %s", r.FactType, name)
			}
		}
	}
}

// TestExamples loads our part of the examples.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/evidence/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Error("there are no examples")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if loadDocument(t, text) == 0 {
			t.Errorf("%s has no evidence processor", file)
		}
	}
}

// loadDocument loads every evidence processor of a collector configuration, and says how many there were.
func loadDocument(t *testing.T, text []byte) int {
	t.Helper()
	// Secrets stand in the environment.
	filled := regexp.MustCompile(`\$\{env:[A-Z_]+\}`).ReplaceAll(text, []byte("0123456789abcdef0123456789abcdef"))
	retrieved, err := confmap.NewRetrievedFromYAML(filled)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	conf, err := retrieved.AsConf()
	if err != nil {
		t.Fatal(err)
	}
	processors, err := conf.Sub("processors")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for key := range processors.ToStringMap() {
		kind, name, _ := strings.Cut(key, "/")
		if kind != metadata.Type.String() {
			continue
		}
		found++
		if _, err := FindConfig(conf, name); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
	return found
}
