package evidenceprocessor

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/internal/record/delivery"
	"github.com/countersign-otel/countersign/processor/evidenceprocessor/internal/metadatatest"
)

func syncedRule() RuleConfig {
	return RuleConfig{Name: "synced", Source: "crm", Condition: `Body("event") == "sync.finished"`, Watermark: `Body("complete_to")`}
}

const synced = `{"event":"sync.finished","complete_to":"2026-09-28T10:42:09.9Z","source":"stripe","tenant":"victim"}`

// TestD12_RuleReportsAWatermark of the record's source, for nobody else's tenant, and with the time it came.
func TestD12_RuleReportsAWatermark(t *testing.T) {
	t.Parallel()
	telemetry := componenttest.NewTelemetry()
	config := withRules(syncedRule())
	config.Tenant = "acme"
	j, err := newJudge(telemetry.NewTelemetrySettings(), config)
	if err != nil {
		t.Fatal(err)
	}
	j.now = func() time.Time { return time.Unix(1790592130, 7) }
	ld := delivered(t, synced)
	if _, err := j.logs(t.Context(), ld); err != nil {
		t.Fatal(err)
	}
	want := record.Batch{Watermarks: []record.Watermark{{
		Tenant: "acme", Source: "crm", Connection: "crm-poller", Trust: engine.Shared, At: 1790592129, ReceivedNanos: 1790592130_000000007,
	}}}
	if diff := cmp.Diff(want, record.FromLogs(ld)); diff != "" || problem(ld) != "" {
		t.Errorf("%s (-want +got):\n%s", problem(ld), diff)
	}
	metadatatest.AssertEqualProcessorEvidenceWatermarks(t, telemetry, []metricdata.DataPoint[int64]{
		{Value: 1, Attributes: attribute.NewSet(attribute.String("rule", "synced"))},
	}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
}

// TestNobodyElseReports: not by the attribute, not without a seal, not for another's source.
func TestNobodyElseReports(t *testing.T) {
	t.Parallel()
	forged := record.Watermark{Source: "crm", Connection: "crm-poller", Trust: engine.Independent, At: 1790592129}
	for name, ld := range map[string]plog.Logs{
		"by the attribute": oneLog(func(e plog.LogRecord) { record.AppendWatermark(e.Attributes(), forged) }),
		"by the attribute, on a delivery": oneLog(func(e plog.LogRecord) {
			e.Body().SetStr(`{}`)
			record.AppendWatermark(e.Attributes(), forged)
			deliver(t, e, fromCRM)
		}),
		"without a seal": oneLog(func(e plog.LogRecord) { e.Body().SetStr(synced) }),
		"of another source": oneLog(func(e plog.LogRecord) {
			e.Body().SetStr(synced)
			deliver(t, e, delivery.Delivery{Source: "shop", Trust: engine.Independent})
		}),
	} {
		if got := process(t, withRules(syncedRule()), ld).Watermarks; len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWatermarkRuleMakesNothingElse(t *testing.T) {
	t.Parallel()
	rule := syncedRule()
	rule.ForEach, rule.FactType, rule.SubjectID, rule.SubjectKind = `Body("x")`, "x", `Body("x")`, "x"
	rule.OccurredAt, rule.RawRef, rule.Links = `Body("x")`, `Body("x")`, []string{`Body("x")`}
	rule.Attributes = AttributesConfig{Whole: `Body("x")`}
	err := withRules(rule).Validate()
	if err == nil {
		t.Fatal("it is a valid configuration")
	}
	for _, key := range []string{"for_each", "fact_type", "subject_id", "subject_kind", "occurred_at", "raw_ref", "attributes", "links"} {
		want := "rules[0]." + key + ": a rule with watermark reports how far its source has come, and nothing else; make it another rule"
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nmisses %s", err, want)
		}
	}
	if err := withRules(syncedRule()).Validate(); err != nil {
		t.Error(err)
	}
}

// TestWhatCannotBeMadeIsSaidOn: by whom, why, and of what, the same again for the same record.
func TestWhatCannotBeMadeIsSaidOn(t *testing.T) {
	t.Parallel()
	items := noteRule()
	items.Name, items.ForEach, items.SubjectID = "items", `Body("items")`, `Item("id")`
	items.Condition = `Body("items") != nil`
	links := RuleConfig{Name: "links", Source: "crm", Condition: `Body("link") != nil`, SubjectID: `Body("nothing")`, Links: []string{`Body("link")`}}
	rule := noteRule()
	rule.Name, rule.Condition = "note", `Body("items") == nil and Body("event") == nil`
	config := withRules(rule, items, links, syncedRule())
	for name, tc := range map[string]struct {
		fill func(plog.LogRecord)
		want []record.Failure
	}{
		"a note without a subject": {func(e plog.LogRecord) {
			e.SetEventName("note")
			e.Body().SetStr(`{"at": "2026-09-28T10:42:09Z"}`)
			e.Attributes().PutStr("http.request.header.x", "y")
		}, []record.Failure{{Kind: "fact", Reason: "rule", Error: "note: subject_id: the expression gave no value",
			Item: `{"rule":"note","event":"note","body":{"at":"2026-09-28T10:42:09Z"},"attributes":{"http.request.header.x":"y"}}`}}},
		"a time that is none": {func(e plog.LogRecord) { e.Body().SetStr(`{"event":"sync.finished","complete_to":"noon"}`) },
			[]record.Failure{{Kind: "watermark", Reason: "rule",
				Error: `synced: watermark: invalid time: "noon" is not an RFC 3339 time like 2026-09-28T10:42:00Z`,
				Item:  `{"rule":"synced","body":{"event":"sync.finished","complete_to":"noon"}}`}}},
		"one item of two": {func(e plog.LogRecord) {
			e.Body().SetStr(`{"at":"2026-09-28T10:42:09Z","items":[{"id":"a"},{"no":1.50}]}`)
		}, []record.Failure{{Kind: "fact", Reason: "rule", Error: "items: item 1: subject_id: the expression gave no value", Item: `{"rule":"items","item":{"no":1.50}}`}}},
		"a link": {func(e plog.LogRecord) { e.Body().SetStr(`{"link":"a","event":""}`) },
			[]record.Failure{{Kind: "link", Reason: "rule", Error: "links: subject_id: the expression gave no value", Item: `{"rule":"links","body":{"link":"a","event":""}}`}}},
		"no JSON": {func(e plog.LogRecord) { e.Body().SetStr(`{"at":`) },
			[]record.Failure{{Kind: "record", Reason: "unreadable", Error: "condition: the body does not read: it is no JSON at byte 0: unexpected EOF", Item: `{"rule":"note","body":"{\"at\":"}`}}},
		"no text": {func(e plog.LogRecord) { e.Body().SetEmptyBytes().FromRaw([]byte("{\xff")) },
			[]record.Failure{{Kind: "record", Reason: "unreadable", Error: "condition: the body does not read: it is no JSON at byte 0: invalid character 'ÿ' looking for beginning of object key string", Item: "{\"rule\":\"note\",\"body\":\"{\uFFFD\"}"}}},
		"nothing": {func(e plog.LogRecord) { e.Body().SetStr(`{"event":"other"}`) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 {
				ld := oneLog(func(e plog.LogRecord) {
					tc.fill(e)
					deliver(t, e, fromCRM)
				})
				for i := range tc.want {
					tc.want[i].Source, tc.want[i].Connection = "crm", "crm-poller"
				}
				if diff := cmp.Diff(tc.want, process(t, config, ld).Failures); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
	ld := oneLog(func(e plog.LogRecord) { e.Body().SetStr(synced) })
	want := []record.Failure{{Kind: "watermark", Source: "crm", Reason: "no_trust", Error: "synced: " + errNoTrust.Error(),
		Item: `{"rule":"synced","body":` + synced + `}`}}
	if diff := cmp.Diff(want, process(t, config, ld).Failures); diff != "" {
		t.Errorf("of nobody (-want +got):\n%s", diff)
	}
}

// TestFailuresDoNotSwellARecord: a thousand bad items are counted, and twenty shown; of a large body the beginning.
func TestFailuresDoNotSwellARecord(t *testing.T) {
	t.Parallel()
	rule := noteRule()
	rule.ForEach, rule.SubjectID = `Body("items")`, `Item("id")`
	ld := delivered(t, `{"items":[`+strings.TrimSuffix(strings.Repeat(`{"no":1},`, 1000), ",")+`]}`)
	got := process(t, withRules(rule), ld).Failures
	shown := 0
	for _, f := range got {
		if f.Item != "" {
			shown++
		}
	}
	if len(got) != 1000 || shown != maxSamples {
		t.Errorf("%d failures, %d of them shown", len(got), shown)
	}
	ld = delivered(t, `{"text":"`+strings.Repeat("é", 1<<20)+`"}`)
	if got = process(t, withRules(noteRule()), ld).Failures; len(got) != 1 || len(got[0].Item) > record.MaxFailedItem || !strings.Contains(got[0].Item, "éé") {
		t.Errorf("%d failures, an item of %d bytes", len(got), len(got[0].Item))
	}
}
