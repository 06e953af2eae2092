package evidenceprocessor

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/internal/record/delivery"
	"github.com/countersign-otel/countersign/processor/evidenceprocessor/internal/metadatatest"
)

var compareObjects = cmp.Comparer(func(a, b engine.Object) bool { return a.Text() == b.Text() })

func TestRecordBecomesAFact(t *testing.T) {
	t.Parallel()
	ld := delivered(t, note)
	got := process(t, withRules(noteRule()), ld)
	want := engine.Fact{
		Source: "crm", Type: "note_added", SubjectID: "order_10231", SubjectKind: "order", OccurredAt: 1790592129,
		Attributes: object(t, `{"by":"jo"}`),
	}
	want, err := want.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(record.Batch{Facts: []record.Fact{{Connection: "crm-poller", Trust: engine.Shared, Fact: want}}}, got, compareObjects); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := problem(ld); text != "" {
		t.Errorf("problem: %s", text)
	}
	if body := firstLog(ld).Body().Str(); body != note {
		t.Errorf("the body became %s", body)
	}
}

func TestEveryFieldOfARule(t *testing.T) {
	t.Parallel()
	ld := oneLog(func(entry plog.LogRecord) {
		entry.SetTimestamp(1790592127_900000000)
		entry.SetEventName("Refund.Created")
		entry.Body().SetStr(`{"id":7,"amount":18050,"currency":"usd","big":12345678901234567890.10,"tickets":["t1","t2","order_10231"],"lines":[{"v":"0.1"},{"v":0.2}]}`)
		entry.Attributes().PutStr("order", "order_10231")
		entry.Attributes().PutDouble("rate", 0.1)
		deliver(t, entry, fromCRM)
	})
	got := process(t, withRules(RuleConfig{
		Name: "all", Source: "CRM", Condition: `log.event_name == "Refund.Created" and Body("amount") > 100`,
		FactType: `Concat([ToLowerCase("REFUND"), "created"], "_")`, SubjectID: `log.attributes["order"]`, SubjectKind: `"Order"`,
		RawRef: `Concat([Source(), DeliveryID(), Body("id")], ":")`,
		Links:  []string{`Body("tickets")`, `Body("nothing")`, `"case_1"`},
		Attributes: AttributesConfig{Values: map[string]string{
			"Amount": `Minor(Body("amount"), Body("currency"))`, "big": `Body("big")`, "rate": `log.attributes["rate"]`,
			"sum": `Sum("lines.*.v")`, "lines": `Count("lines.*")`, "list": `List("tickets.*")`, "nothing": `Body("nothing")`,
			"time": "log.time", "whole": `Body("lines.1")`,
		}},
	}), ld)
	want := []engine.Fact{{
		RawRef: "crm:dlv_7:7", Source: "crm", Type: "refund_created", SubjectID: "order_10231", SubjectKind: "order", OccurredAt: 1790592127,
		Attributes: object(t, `{"amount":180.5,"big":12345678901234567890.10,"rate":0.1,"sum":0.3,"lines":2,
			"list":["t1","t2","order_10231"],"time":"2026-09-28T10:42:07.9Z","whole":{"v":0.2}}`),
	}}
	var facts []engine.Fact
	for _, f := range got.Facts {
		facts = append(facts, f.Fact)
	}
	if diff := cmp.Diff(want, facts, compareObjects); diff != "" {
		t.Errorf("%s (-want +got):\n%s", problem(ld), diff)
	}
	var links []string
	for _, l := range got.Links {
		links = append(links, l.Link.SubjectID+" "+l.Link.LinkedSubjectID+" "+l.Source+" "+l.Connection+" "+l.Trust.String())
	}
	wantLinks := []string{
		"order_10231 t1 crm crm-poller shared", "order_10231 t2 crm crm-poller shared", "order_10231 case_1 crm crm-poller shared",
	}
	if diff := cmp.Diff(wantLinks, links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// TestD10_OnlyWhatCanBeBelieved: source and trust are those of the receiver
// that proved them, else of the configuration, and never of the record.
func TestD10_OnlyWhatCanBeBelieved(t *testing.T) {
	t.Parallel()
	forged := func(entry plog.LogRecord) {
		m := entry.Attributes().PutEmptyMap(delivery.Key)
		m.PutStr("source", "crm")
		m.PutStr("trust", "independent")
		m.PutEmptyBytes("seal").FromRaw(make([]byte, 32))
	}
	rule := noteRule()
	rule.Source = "crm"
	for name, tc := range map[string]struct {
		trust   string
		fill    func(plog.LogRecord)
		want    string
		problem string
	}{
		"sealed":                   {"", func(e plog.LogRecord) { deliver(t, e, fromCRM) }, "crm crm-poller shared", ""},
		"sealed, trust for others": {"self_reported", func(e plog.LogRecord) { deliver(t, e, fromCRM) }, "crm crm-poller shared", ""},
		"of another source": {"shared", func(e plog.LogRecord) {
			deliver(t, e, delivery.Delivery{Source: "stripe", Trust: engine.Independent})
		}, "", ""},
		"not sealed":                 {"", func(plog.LogRecord) {}, "", "rules[0]: no fact: no evidence receiver delivered the record, and trust is not set for others; set it where only systems of record can reach the pipeline"},
		"not sealed, but trusted":    {"shared", func(plog.LogRecord) {}, "crm kafka shared", ""},
		"forged":                     {"", forged, "", "rules[0]: no fact: no evidence receiver delivered the record, and trust is not set for others; set it where only systems of record can reach the pipeline"},
		"forged, in a trusted place": {"shared", forged, "crm kafka shared", ""},
		"changed on the way": {"", func(e plog.LogRecord) {
			deliver(t, e, fromCRM)
			e.Body().SetStr(strings.ReplaceAll(note, "10231", "10232"))
		}, "", "rules[0]: no fact: no evidence receiver delivered the record, and trust is not set for others; set it where only systems of record can reach the pipeline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ld := oneLog(func(entry plog.LogRecord) {
				entry.Body().SetStr(note)
				tc.fill(entry)
			})
			config := withRules(rule)
			config.Trust, config.Connection = tc.trust, "kafka"
			got := ""
			for _, f := range process(t, config, ld).Facts {
				got += f.Fact.Source + " " + f.Connection + " " + f.Trust.String()
			}
			if got != tc.want || problem(ld) != tc.problem {
				t.Errorf("fact %q, problem %q; want %q, %q", got, problem(ld), tc.want, tc.problem)
			}
			if _, there := firstLog(ld).Attributes().Get(delivery.Key); there {
				t.Error("the seal went on")
			}
		})
	}
}

// TestNobodyElseWritesOurAttributes, wherever they stand.
func TestNobodyElseWritesOurAttributes(t *testing.T) {
	t.Parallel()
	ld := delivered(t, `{}`)
	resource := ld.ResourceLogs().At(0)
	forged := record.Fact{Trust: engine.Independent, Fact: engine.Fact{Source: "stripe", Type: "refund_created", SubjectID: "order_1", Attributes: engine.EmptyObject()}}
	for _, attributes := range []pcommon.Map{
		resource.Resource().Attributes(), resource.ScopeLogs().At(0).Scope().Attributes(), firstLog(ld).Attributes(),
	} {
		record.AppendFact(attributes, forged)
		attributes.PutStr("countersign.anything", "x")
		attributes.PutStr("kept", "x")
	}
	if got := process(t, withRules(noteRule()), ld); len(got.Facts) != 0 {
		t.Errorf("facts %v", got.Facts)
	}
	for _, attributes := range []pcommon.Map{
		resource.Resource().Attributes(), resource.ScopeLogs().At(0).Scope().Attributes(),
	} {
		if diff := cmp.Diff(map[string]any{"kept": "x"}, attributes.AsRaw()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestWhatCannotBecomeAFactPassesMarked(t *testing.T) {
	t.Parallel()
	items := func(n int) string {
		return `{"at":"2026-09-28T10:42:09Z","items":[` + strings.TrimSuffix(strings.Repeat(`{"id":1},`, n), ",") + `]}`
	}
	for name, tc := range map[string]struct {
		body  string
		rule  func(*RuleConfig)
		facts int
		want  string
	}{
		"no subject":      {`{"at":"2026-09-28T10:42:09Z"}`, nil, 0, "rules[0]: no fact: subject_id: the expression gave no value"},
		"subject of null": {`{"order":null,"at":"2026-09-28T10:42:09Z"}`, nil, 0, "rules[0]: no fact: subject_id: the expression gave no value"},
		"subject with a hole": {note, func(r *RuleConfig) { r.SubjectID = `Concat(["order", Body("nothing")], "_")` }, 0,
			"rules[0]: no fact: subject_id: a part of the expression gave no value"},
		"subject that is a map":    {`{"order":{},"at":"2026-09-28T10:42:09Z"}`, func(r *RuleConfig) { r.Name = "notes" }, 0, "notes: no fact: subject_id: it is a map; text or a number is needed"},
		"subject that is too long": {`{"order":"` + strings.Repeat("x", 513) + `"}`, nil, 0, "rules[0]: no fact: subject_id: invalid id: it has 513 bytes; at most 512 are allowed"},
		"no time":                  {`{"order":"o"}`, nil, 0, "rules[0]: no fact: occurred_at: the expression gave no value"},
		"no time on the record":    {note, func(r *RuleConfig) { r.OccurredAt = "" }, 0, "rules[0]: no fact: occurred_at: the log record has no time; say in the rule when it happened"},
		"time without its unit":    {`{"order":"o","at":1790592129}`, nil, 0, "rules[0]: no fact: occurred_at: it is a number, which could be seconds, milliseconds or nanoseconds; say which, like Unix(...) for seconds"},
		"milliseconds as seconds": {`{"order":"o","at":1790592120000}`, func(r *RuleConfig) { r.OccurredAt = `Unix(Body("at"))` }, 0,
			"rules[0]: no fact: occurred_at: invalid time: 58711-08-10T20:00:00Z is outside the years 1970 to 9999; were milliseconds taken for seconds?"},
		"time without a zone":       {`{"order":"o","at":"2026-09-28 10:42:09"}`, nil, 0, `rules[0]: no fact: occurred_at: invalid time: "2026-09-28 10:42:09" is not an RFC 3339 time like 2026-09-28T10:42:00Z`},
		"amount of what currency":   {note, func(r *RuleConfig) { r.Attributes.Values = map[string]string{"amount": `Minor(100, Body("nothing"))`} }, 0, "rules[0]: no fact: attributes.amount: there is an amount, but no currency to read it in"},
		"fact type that is no name": {note, func(r *RuleConfig) { r.FactType = `Body("at")` }, 0, `rules[0]: no fact: invalid fact: fact_type: invalid identifier "2026-09-28T10:42:09.9Z": write a letter, then letters, digits or _ . : -, at most 64 in all`},
		"fact type of nothing":      {note, func(r *RuleConfig) { r.FactType = `Body("nothing")` }, 0, "rules[0]: no fact: fact_type: the expression gave no value"},
		"reference of nothing":      {note, func(r *RuleConfig) { r.RawRef = `Body("nothing")` }, 0, "rules[0]: no fact: raw_ref: the expression gave no value"},
		"attributes of text":        {note, func(r *RuleConfig) { r.Attributes = AttributesConfig{Whole: `Body("by")`} }, 0, "rules[0]: no fact: attributes: it is a string; a map is needed"},
		"attributes too deep": {`{"order":"o","at":"2026-09-28T10:42:09Z","by":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}`, nil, 0,
			"rules[0]: no fact: attributes: invalid JSON object: /by/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0 is nested deeper than 16 levels"},
		"link of a map":        {note, func(r *RuleConfig) { r.Links = []string{`Body()`} }, 0, "rules[0]: no fact: links[0]: it is a map; text or a number is needed"},
		"link that is no id":   {note, func(r *RuleConfig) { r.Links = []string{`"a\nb"`} }, 0, "rules[0]: no fact: links[0]: invalid id: linked_subject_id has the control character U+000A"},
		"condition that fails": {note, func(r *RuleConfig) { r.Condition = `Len(Body("nothing")) > 1` }, 0, "rules[0]: no fact: condition: target arg must be of type string, []any, pcommon.Slice or map..."},
		"torn body":            {`{"order":"o",`, nil, 0, ""},
		"two items of one reference": {items(2), func(r *RuleConfig) {
			r.ForEach, r.SubjectID, r.RawRef = `Body("items")`, `Item("id")`, `Concat(["crm", Item("id")], ":")`
		}, 1,
			"rules[0]: no fact: item 1: raw_ref: it is that of item 0; make it of something that tells items apart"},
		"too many items": {items(maxItems + 2), func(r *RuleConfig) { r.ForEach, r.SubjectID = `Body("items")`, `Item("id")` }, maxItems,
			"rules[0]: no fact: for_each: there are 1002 items; only the first 1000 became facts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := noteRule()
			if tc.rule != nil {
				tc.rule(&rule)
			}
			ld := delivered(t, tc.body)
			got := process(t, withRules(rule), ld)
			text := problem(ld)
			switch name {
			case "condition that fails": // OTTL's words
				if !strings.HasPrefix(text, "rules[0]: no fact: condition: ") {
					t.Errorf("problem %q", text)
				}
			case "torn body":
				if text != "the body does not read: it is no JSON at byte 0: unexpected EOF" {
					t.Errorf("problem %q", text)
				}
			default:
				if text != tc.want {
					t.Errorf("problem %q, want %q", text, tc.want)
				}
			}
			if len(got.Facts) != tc.facts || len(got.Links) != 0 {
				t.Errorf("%d facts, %d links; want %d facts", len(got.Facts), len(got.Links), tc.facts)
			}
			if ld.LogRecordCount() != 1 || firstLog(ld).Body().Str() != tc.body {
				t.Error("the record did not pass as it was")
			}
		})
	}
}

// TestGoodFactsPassBesideBadOnes, of other rules, items and records.
func TestGoodFactsPassBesideBadOnes(t *testing.T) {
	t.Parallel()
	good, bad, each := noteRule(), noteRule(), noteRule()
	bad.SubjectID = `Body("nothing")`
	each.ForEach, each.SubjectID, each.FactType = `Body("items")`, `Item("id")`, "item_seen"
	ld := delivered(t, `{"order":"o","at":"2026-09-28T10:42:09Z","items":[{"id":"a"},{},{"id":"c"}]}`)
	torn := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().AppendEmpty()
	torn.Body().SetStr("{")
	deliver(t, torn, fromCRM)
	var got []string
	for _, f := range process(t, withRules(bad, good, each), ld).Facts {
		got = append(got, f.Fact.Type+" "+f.Fact.SubjectID)
	}
	if diff := cmp.Diff([]string{"note_added o", "item_seen a", "item_seen c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const want = "rules[0]: no fact: subject_id: the expression gave no value; rules[2]: no fact: item 1: subject_id: the expression gave no value"
	if text := problem(ld); text != want {
		t.Errorf("problem %q, want %q", text, want)
	}
}

// TestBodyOfAnyKind: JSON as text or as bytes, a map, a line of text.
func TestBodyOfAnyKind(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]func(pcommon.Value){
		"text":  func(v pcommon.Value) { v.SetStr(" \n" + note) },
		"bytes": func(v pcommon.Value) { v.SetEmptyBytes().FromRaw([]byte(note)) },
		"map": func(v pcommon.Value) {
			m := v.SetEmptyMap()
			m.PutStr("order", "order_10231")
			m.PutStr("at", "2026-09-28T10:42:09Z")
			m.PutStr("by", "jo")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ld := oneLog(func(entry plog.LogRecord) {
				fill(entry.Body())
				deliver(t, entry, fromCRM)
			})
			got := process(t, withRules(noteRule()), ld)
			if len(got.Facts) != 1 || got.Facts[0].Fact.Attributes.Text() != `{"by":"jo"}` {
				t.Errorf("facts %v, problem %s", got.Facts, problem(ld))
			}
		})
	}
	ld := delivered(t, "2026-09-28T10:42:09Z order_10231 cancelled by jo")
	got := process(t, withRules(RuleConfig{
		Condition: `IsMatch(log.body, "cancelled") and Body("order") == nil`, FactType: "order_cancelled",
		SubjectID: `Split(Body(), " ")[1]`, OccurredAt: `Split(log.body, " ")[0]`,
	}), ld)
	if len(got.Facts) != 1 || got.Facts[0].Fact.SubjectID != "order_10231" {
		t.Errorf("facts %v, problem %s", got.Facts, problem(ld))
	}
}

func TestRuleWithoutAFactOnlyLinks(t *testing.T) {
	t.Parallel()
	ld := delivered(t, `{"ticket":"t1","orders":["o1","o2"]}`)
	got := process(t, withRules(RuleConfig{SubjectID: `Body("ticket")`, Links: []string{`Body("orders")`}}), ld)
	if len(got.Facts) != 0 || len(got.Links) != 2 || problem(ld) != "" {
		t.Errorf("facts %v, links %v, problem %s", got.Facts, got.Links, problem(ld))
	}
}

func TestMappingWithWhatIsDifferent(t *testing.T) {
	t.Parallel()
	config := NewDefaultConfig()
	config.Mappings = []MappingConfig{{
		Name: "stripe", Source: "Stripe_Test", Condition: `Body("livemode") == false`,
		SubjectID:  `Concat(["order", Body("data.object.metadata.number")], "-")`,
		Attributes: map[string]string{"agent_id": `Body("data.object.metadata.agent_id")`, "amount": `"overridden"`},
	}}
	s := readSample(t, "testdata/mappings/stripe/refund_created_test_mode.json")
	body := strings.Replace(string(s.Body), `"order_id": "order_10231"`, `"number": 7, "agent_id": "support"`, 1)
	for body, want := range map[string]string{
		body:           "stripe_test order-7 overridden support",
		string(s.Body): "stripe_test order_10231 overridden ",
	} {
		s.Body = []byte(body)
		ld := s.logs(t, "stripe_test")
		got := ""
		for _, f := range process(t, config, ld).Facts {
			amount, _ := f.Fact.Attributes.Lookup("amount").Scalar()
			agent, _ := f.Fact.Attributes.Lookup("agent_id").Scalar()
			got += f.Fact.Source + " " + f.Fact.SubjectID + " " + amount + " " + agent
		}
		if got != want {
			t.Errorf("got %q, want %q (%s)", got, want, problem(ld))
		}
	}
}

// TestD37_TenantIsNeverOfTheRecord: it is the receiver's, the processor's, or the authenticated client's.
func TestD37_TenantIsNeverOfTheRecord(t *testing.T) {
	t.Parallel()
	const noFact = "rules[0]: no fact: "
	for name, tc := range map[string]struct {
		config   func(*Config)
		delivery string
		client   any
		want     string
		problem  string
	}{
		"nobody's":                {nil, "", nil, "", ""},
		"the processor's":         {func(c *Config) { c.Tenant = "acme" }, "", nil, "acme", ""},
		"the receiver's":          {nil, "acme", nil, "acme", ""},
		"the same of both":        {func(c *Config) { c.Tenant = "acme" }, "acme", nil, "acme", ""},
		"they disagree":           {func(c *Config) { c.Tenant = "acme" }, "globex", nil, "none", noFact + `tenant: the receiver's is "globex", and this processor's "acme"`},
		"the client's":            {auth, "", "globex", "globex", ""},
		"a client that is not in": {auth, "", "initech", "none", noFact + `tenant: "initech" is not one of the tenants of this processor`},
		"a client without one":    {auth, "", 7, "none", noFact + "tenant: the client's authentication has no text named organization"},
		"no client":               {auth, "", nil, "none", noFact + "tenant: the client is not authenticated, so there is no organization"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ld := oneLog(func(entry plog.LogRecord) {
				entry.Body().SetStr(note)
				entry.Attributes().PutStr("tenant", "forged")
				d := fromCRM
				d.Tenant = tc.delivery
				deliver(t, entry, d)
			})
			config := withRules(noteRule())
			if tc.config != nil {
				tc.config(config)
			}
			ctx := t.Context()
			if tc.client != nil {
				ctx = client.NewContext(ctx, client.Info{Auth: organization{tc.client}})
			}
			if _, err := newTestJudge(t, config).logs(ctx, ld); err != nil {
				t.Fatal(err)
			}
			got := "none"
			for _, f := range record.FromLogs(ld).Facts {
				got = f.Tenant
			}
			if got != tc.want || problem(ld) != tc.problem {
				t.Errorf("tenant %q, problem %q; want %q, %q", got, problem(ld), tc.want, tc.problem)
			}
		})
	}
}

func auth(c *Config) { c.TenantFromAuth, c.Tenants = "organization", []string{"acme", "globex"} }

type organization struct{ name any }

func (o organization) GetAttribute(string) any     { return o.name }
func (o organization) GetAttributeNames() []string { return []string{"organization"} }

// TestOrderAndRepetitionChangeNothing: a record gives the same facts wherever it stands, and however often.
func TestOrderAndRepetitionChangeNothing(t *testing.T) {
	t.Parallel()
	j := newTestJudge(t, mappingConfig("stripe", "shopify"))
	var all []plog.LogRecord
	for _, mapping := range []string{"stripe", "shopify"} {
		for _, file := range samples(t, mapping) {
			s := readSample(t, file)
			all = append(all, firstLog(s.logs(t, mapping)))
		}
	}
	facts := func(records []plog.LogRecord) map[string]int {
		ld := plog.NewLogs()
		list := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
		for _, entry := range records {
			entry.CopyTo(list.AppendEmpty())
		}
		if _, err := j.logs(t.Context(), ld); err != nil {
			t.Fatal(err)
		}
		found := map[string]int{}
		for _, f := range record.FromLogs(ld).Facts {
			found[fmt.Sprintf("%s %x", f.Fact.RawRef, f.Fact.ContentHash())]++
		}
		return found
	}
	want := facts(all)
	shuffled := append([]plog.LogRecord{}, all...)
	r := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(want, facts(shuffled)); diff != "" {
			t.Fatalf("shuffled (-want +got):\n%s", diff)
		}
	}
	for ref, n := range facts(append(shuffled, all...)) {
		if n != 2*want[ref] {
			t.Errorf("%s: %d times, want %d", ref, n, 2*want[ref])
		}
	}
}

func TestOwnTelemetry(t *testing.T) {
	t.Parallel()
	telemetry := componenttest.NewTelemetry()
	good, bad := noteRule(), noteRule()
	good.Name, bad.Name = "good", "bad"
	good.Links = []string{`"case_1"`}
	bad.Condition, bad.SubjectID = `Body("bad") != nil`, `Body("nothing")`
	j, err := newJudge(telemetry.NewTelemetrySettings(), withRules(good, bad))
	if err != nil {
		t.Fatal(err)
	}
	ld := plog.NewLogs()
	list := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, body := range []string{note, note, `{"order":"o","at":"2026-09-28T10:42:09Z","bad":1}`, "{"} {
		entry := list.AppendEmpty()
		entry.Body().SetStr(body)
		deliver(t, entry, fromCRM)
	}
	list.AppendEmpty().Body().SetStr(note) // not delivered
	forged := list.AppendEmpty()
	forged.Body().SetStr(note)
	forged.Attributes().PutEmptyMap(delivery.Key)
	forged.Attributes().PutStr("countersign.facts", "x")
	if _, err := j.logs(t.Context(), ld); err != nil {
		t.Fatal(err)
	}
	point := func(n int64, pairs ...string) metricdata.DataPoint[int64] {
		var set []attribute.KeyValue
		for i := 0; i < len(pairs); i += 2 {
			set = append(set, attribute.String(pairs[i], pairs[i+1]))
		}
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(set...)}
	}
	ignore := []metricdatatest.Option{metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars()}
	metadatatest.AssertEqualProcessorEvidenceFacts(t, telemetry, []metricdata.DataPoint[int64]{
		point(3, "rule", "good", "outcome", "made"), point(1, "rule", "bad", "outcome", "failed"), point(2, "rule", "good", "outcome", "no_trust"),
	}, ignore...)
	metadatatest.AssertEqualProcessorEvidenceLinks(t, telemetry, []metricdata.DataPoint[int64]{point(3, "rule", "good")}, ignore...)
	metadatatest.AssertEqualProcessorEvidenceRecords(t, telemetry, []metricdata.DataPoint[int64]{
		point(2, "outcome", "facts"), point(3, "outcome", "failed"), point(1, "outcome", "unreadable"),
	}, ignore...)
	metadatatest.AssertEqualProcessorEvidenceStrippedAttributes(t, telemetry, []metricdata.DataPoint[int64]{point(2)}, ignore...)
	metadatatest.AssertEqualProcessorEvidenceUnsealedDeliveries(t, telemetry, []metricdata.DataPoint[int64]{point(1)}, ignore...)
	if err := j.shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	processortest.VerifyShutdown(t, NewFactory(), mappingConfig("stripe"))
}
