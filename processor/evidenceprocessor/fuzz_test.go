package evidenceprocessor

import (
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/internal/record/delivery"
)

// FuzzBody: whatever a sender's secret signed, nothing panics, nothing is
// dropped, and what is written reads again.
func FuzzBody(f *testing.F) {
	j := newTestJudge(f, mappingConfig(mappingNames...))
	for _, mapping := range mappingNames {
		for i, file := range samples(f, mapping) {
			if i%8 == 0 {
				s := readSample(f, file)
				f.Add(s.Event, string(s.Body), uint8(i))
			}
		}
	}
	for i, body := range []string{"", "{", "[]", `{"id":{},"type":[]}`, `{"object":"event","livemode":true,"type":"refund.created","data":{"object":{"status":"succeeded","amount":1e99,"currency":"jpy"}}}`, "\xff"} {
		f.Add("orders/cancelled", body, uint8(i))
	}
	f.Fuzz(func(t *testing.T, event, body string, pick uint8) {
		source := mappingNames[int(pick)%len(mappingNames)]
		ld := oneLog(func(entry plog.LogRecord) {
			entry.SetEventName(event)
			entry.Body().SetStr(body)
			if source == "sql_audit" {
				entry.Attributes().PutStr("event_id", "1")
				entry.Attributes().PutStr("event_type", event)
				entry.Attributes().PutStr("subject_id", event)
				entry.Attributes().PutStr("occurred_at", "2026-09-28T10:42:09Z")
				entry.Attributes().PutStr("attributes", body)
			}
			deliver(t, entry, delivery.Delivery{Source: source, Trust: engine.Independent})
		})
		if _, err := j.logs(t.Context(), ld); err != nil {
			t.Fatal(err)
		}
		if ld.LogRecordCount() != 1 || firstLog(ld).Body().Str() != body {
			t.Error("the record did not pass as it was")
		}
		got := record.FromLogs(ld)
		if len(got.Rejected) > 0 {
			t.Errorf("what was written does not read: %v", got.Rejected)
		}
		for _, fact := range got.Facts {
			if fact.Fact.Source != source || fact.Trust != engine.Independent {
				t.Errorf("fact of %s with trust %s", fact.Fact.Source, fact.Trust)
			}
		}
		if strings.Contains(problem(ld), "<nil>") {
			t.Errorf("problem %s", problem(ld))
		}
	})
}
