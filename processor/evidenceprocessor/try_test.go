package evidenceprocessor

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
)

func tried(t *testing.T, config *Config, input string, as TryAs) string {
	t.Helper()
	results, err := Try(config, []byte(input), as)
	if err != nil {
		t.Fatal(err)
	}
	return text(t, results)
}

func TestTryShowsWhatWouldBeMade(t *testing.T) {
	t.Parallel()
	rule := noteRule()
	rule.Name, rule.Links = "notes", []string{`Body("by")`}
	silent := noteRule()
	silent.Condition = `Body("nothing") != nil`
	other := noteRule()
	other.Source = "erp"
	broken := noteRule()
	broken.SubjectID = `Body("nothing")`
	got := tried(t, withRules(rule, silent, other, broken), note, TryAs{Source: "CRM", Event: "note", Trust: engine.Shared})
	want := `[{"event":"note","source":"crm","connection":"crm","trust":"shared","delivery_id":null,"rules":[
		{"rule":"notes","fact":{"source":"crm","subject_id":"order_10231","subject_kind":"order","fact_type":"note_added",
			"occurred_at":"2026-09-28T10:42:09Z","attributes":{"by":"jo"},
			"raw_ref":"agent_api:fact:REF"},
		 "links":[{"subject_id":"order_10231","linked_subject_id":"jo"}],"why":"made"},
		{"rule":"rules[3]","fact":null,"links":[],"why":"subject_id: the expression gave no value"},
		{"rule":"rules[1]","fact":null,"links":[],"why":"the condition does not hold: Body(\"nothing\") != nil"},
		{"rule":"rules[2]","fact":null,"links":[],"why":"it is for records of erp"}]}]`
	if diff := cmp.Diff(normal(t, want), normal(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTryShowsReports(t *testing.T) {
	t.Parallel()
	got := tried(t, withRules(syncedRule()), synced, TryAs{Source: "crm", Trust: engine.Shared})
	want := `[{"event":null,"source":"crm","connection":"crm","trust":"shared","delivery_id":null,"rules":[
		{"rule":"synced","fact":null,"links":[],"watermark":"2026-09-28T10:42:09Z","why":"reported"}]}]`
	if diff := cmp.Diff(normal(t, want), normal(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// normal sorts keys and hides derived references.
func normal(t *testing.T, document string) string {
	t.Helper()
	var value any
	decode(t, []byte(document), &value)
	hide(value)
	return text(t, value)
}

func hide(value any) {
	switch v := value.(type) {
	case map[string]any:
		if ref, ok := v["raw_ref"].(string); ok && len(ref) > 15 && ref[:15] == "agent_api:fact:" {
			v["raw_ref"] = "agent_api:fact:REF"
		}
		for _, item := range v {
			hide(item)
		}
	case []any:
		for _, item := range v {
			hide(item)
		}
	}
}

// TestTryTakesWhatSendersSend: a body as it is, without knowing who sent it.
func TestTryTakesWhatSendersSend(t *testing.T) {
	t.Parallel()
	s := readSample(t, "testdata/mappings/stripe/refund_created.json")
	for name, as := range map[string]TryAs{"of stripe": {Source: "stripe"}, "of anybody": {}} {
		results, err := Try(mappingConfig("shopify", "stripe"), s.Body, as)
		if err != nil {
			t.Fatal(err)
		}
		if len(results) != 1 || len(results[0].Rules) != 2 || results[0].Rules[1].Rule != "shopify" || results[0].Rules[0].Rule != "stripe/refund_created" || results[0].Rules[0].Fact == nil {
			t.Errorf("%s: %s", name, text(t, results))
		}
	}
	if results, err := Try(mappingConfig("stripe"), s.Body, TryAs{Source: "shopify"}); err != nil || len(results[0].Rules) != 1 || results[0].Rules[0].Why != "it is for records of stripe" {
		t.Errorf("of another: %s, %v", text(t, results), err)
	}
	shop := readSample(t, "testdata/mappings/shopify/orders_cancelled.json")
	results, err := Try(mappingConfig("shopify"), shop.Body, TryAs{Event: shop.Event})
	if err != nil || len(results[0].Rules) != 2 {
		t.Errorf("by event: %s, %v", text(t, results), err)
	}
}

// TestTrySaysWhyNothingWasMade, by each of our own rules and by each mapping of which no rule is for the record.
func TestTrySaysWhyNothingWasMade(t *testing.T) {
	t.Parallel()
	config := mappingConfig("stripe", "shopify")
	other, items := noteRule(), noteRule()
	other.Source, other.Condition = "erp", ""
	items.Condition, items.ForEach = `Body("object") == "event"`, `List("lines.*")`
	config.Rules = []RuleConfig{other, items}
	why := func(body string, as TryAs) map[string]string {
		results, err := Try(config, []byte(body), as)
		if err != nil || len(results) != 1 {
			t.Fatalf("%v, %v", results, err)
		}
		all := map[string]string{}
		for _, r := range results[0].Rules {
			all[r.Rule] = r.Why
		}
		return all
	}
	got := why(`{"object":"event","livemode":false,"id":"evt_1"}`, TryAs{Source: "stripe"})
	want := map[string]string{
		"stripe":   `the condition does not hold: Body("object") == "event" and Body("livemode") == true`,
		"shopify":  "it is for records of shopify",
		"rules[0]": "it is for records of erp",
		"rules[1]": "for_each gives no item",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stripe's test mode (-want +got):\n%s", diff)
	}
	got = why(`{"id":1}`, TryAs{Source: "shopify"})
	want = map[string]string{
		"stripe":   "it is for records of stripe",
		"shopify":  "the condition of none of its rules holds: order_cancelled, order_fulfilled, order_status, refund_created, refund_pending, refund_failed; the record names no event",
		"rules[0]": "it is for records of erp",
		"rules[1]": `the condition does not hold: Body("object") == "event"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shopify without a topic (-want +got):\n%s", diff)
	}
	if got := why(`{"id":1}`, TryAs{Source: "shopify", Event: "shop/update"})["shopify"]; strings.Contains(got, "names no event") {
		t.Errorf("with a topic: %s", got)
	}
}

// TestTryTakesAnArrayAsTheEndpointDoes: several events, or one.
func TestTryTakesAnArrayAsTheEndpointDoes(t *testing.T) {
	t.Parallel()
	body := []byte("[" + note + "," + note + "]")
	for array, want := range map[bool]int{true: 2, false: 1} {
		results, err := Try(withRules(noteRule()), body, TryAs{Source: "crm", Connection: "crm-eu", Array: array})
		if err != nil || len(results) != want || *results[0].Connection != "crm-eu" || (results[0].Rules[0].Fact != nil) != array {
			t.Errorf("array %t: %s, %v", array, text(t, results), err)
		}
	}
}

func TestSourcesOfAConfiguration(t *testing.T) {
	t.Parallel()
	config := mappingConfig("stripe", "shopify")
	erp := noteRule()
	erp.Source = "ERP"
	config.Rules = []RuleConfig{erp}
	if names, any := config.Sources(); !slices.Equal(names, []string{"erp", "shopify", "stripe"}) || any {
		t.Errorf("%v, any %t", names, any)
	}
	config.Rules = append(config.Rules, noteRule())
	if _, any := config.Sources(); !any {
		t.Error("a rule without a source is for no particular one")
	}
}

func TestTryTakesTelemetry(t *testing.T) {
	t.Parallel()
	otlp, err := new(plog.JSONMarshaler).MarshalLogs(delivered(t, note))
	if err != nil {
		t.Fatal(err)
	}
	config := withRules(noteRule())
	results, err := Try(config, append(append(otlp, '\n'), otlp...), TryAs{})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 2 || results[1].Rules[0].Fact == nil || *results[1].DeliveryID != "dlv_7" || *results[1].Trust != "shared" {
		t.Errorf("%s", text(t, results))
	}
	ld := delivered(t, note)
	if results, err = TryLogs(config, ld, TryAs{}); err != nil || len(results) != 1 || results[0].Rules[0].Fact == nil {
		t.Errorf("%s, %v", text(t, results), err)
	}
	if diff := cmp.Diff(1, firstLog(ld).Attributes().Len()); diff != "" {
		t.Errorf("the records were changed:\n%s", diff)
	}
}

func TestTryErrors(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"a":`:                           ":1:6: is not JSON: unexpected EOF; it ends too early: close every quote, list and object",
		"{}\n{\n  \"resourceLogs\": 7\n}": ":3:19: is no OTLP/JSON logs: ReadArray: expect [ or , or ] or n, but found 7; OTLP/JSON has ids in hex digits and lists in [ ]",
	} {
		_, err := Try(NewDefaultConfig(), []byte(input), TryAs{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", input, err, want)
		}
	}
	broken := withRules(RuleConfig{})
	if _, err := Try(broken, []byte("{}"), TryAs{}); err == nil {
		t.Error("a broken configuration is tried")
	}
	if _, err := TryLogs(broken, plog.NewLogs(), TryAs{}); err == nil {
		t.Error("a broken configuration is tried")
	}
	if results, err := Try(NewDefaultConfig(), nil, TryAs{}); err != nil || len(results) != 0 {
		t.Errorf("nothing at all: %v, %v", results, err)
	}
}
