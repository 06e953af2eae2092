package record

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
)

func oneEntry() (plog.Logs, pcommon.Map) {
	ld := plog.NewLogs()
	return ld, ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Attributes()
}

func TestReportsAndFailuresReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	ld, attributes := oneEntry()
	watermarks := []Watermark{
		{Tenant: "acme", Source: "erp", Connection: "erp-poller", Trust: engine.Independent, At: 1790592000, ReceivedNanos: 1790592001_000000007},
		{Source: "crm"},
	}
	failures := []Failure{
		{Tenant: "acme", Kind: "fact", Source: "erp", Connection: "erp-poller", Reason: "rule", Error: "notes: no value", Item: `{"body":{}}`},
		{Kind: "record", Reason: "unreadable"},
	}
	for _, w := range watermarks {
		AppendWatermark(attributes, w)
	}
	for _, f := range failures {
		AppendFailure(attributes, f)
	}
	if diff := cmp.Diff(Batch{Watermarks: watermarks, Failures: failures}, FromLogs(ld)); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}

func TestFailuresAreCut(t *testing.T) {
	t.Parallel()
	ld, attributes := oneEntry()
	AppendFailure(attributes, Failure{Kind: "fact", Reason: "rule", Error: strings.Repeat("ä", MaxFailedItem), Item: strings.Repeat("ä", MaxFailedItem) + "x"})
	got := FromLogs(ld).Failures[0]
	if got.Error != strings.Repeat("ä", maxErrorText/2) || got.Item != strings.Repeat("ä", MaxFailedItem/2) {
		t.Errorf("%d and %d bytes", len(got.Error), len(got.Item))
	}
}

func TestReportsAndFailuresThatAreNoneAreRejected(t *testing.T) {
	t.Parallel()
	const place = "log record of 1970-01-01 00:00:00 +0000 UTC: "
	for name, tc := range map[string]struct {
		key    string
		change func(pcommon.Map)
		want   string
	}{
		"no source":   {WatermarksKey, func(m pcommon.Map) { m.Remove("source") }, `countersign.watermarks[0]: source: invalid identifier "": write a letter, then letters, digits or _ . : -, at most 64 in all`},
		"no time":     {WatermarksKey, func(m pcommon.Map) { m.Remove("watermark") }, "countersign.watermarks[0]: invalid record: watermark is missing"},
		"other time":  {WatermarksKey, func(m pcommon.Map) { m.PutInt("watermark", 7) }, "countersign.watermarks[0]: invalid record: watermark is a Int; a Str was expected"},
		"other trust": {WatermarksKey, func(m pcommon.Map) { m.PutStr("trust", "much") }, `countersign.watermarks[0]: invalid record: trust does not read: invalid trust level "much": write self_reported, shared or independent`},
		"before 1970": {WatermarksKey, func(m pcommon.Map) { m.PutInt("received_nanos", -1) }, "countersign.watermarks[0]: invalid record: received_nanos is negative"},
		"no kind":     {FailuresKey, func(m pcommon.Map) { m.Remove("kind") }, `countersign.failures[0]: invalid record: kind: invalid identifier "": write a letter, then letters, digits or _ . : -, at most 64 in all`},
		"no reason":   {FailuresKey, func(m pcommon.Map) { m.PutInt("reason", 7) }, "countersign.failures[0]: invalid record: reason is a Int; a Str was expected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ld, attributes := oneEntry()
			for range 2 {
				AppendWatermark(attributes, Watermark{Source: "erp", At: 1790592000})
				AppendFailure(attributes, Failure{Kind: "fact", Reason: "rule"})
			}
			value, _ := attributes.Get(tc.key)
			tc.change(value.Slice().At(0).Map())
			got := FromLogs(ld)
			if len(got.Watermarks)+len(got.Failures) != 3 || len(got.Rejected) != 1 || got.Rejected[0].Key != tc.key || got.Rejected[0].Error() != place+tc.want {
				t.Errorf("%d watermarks, %d failures, rejected %v, want %s", len(got.Watermarks), len(got.Failures), got.Rejected, tc.want)
			}
		})
	}
}
