package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
)

func TestLinksReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	ld := plog.NewLogs()
	entry := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	want := []Link{
		{Tenant: "acme", Source: "stripe", Connection: "stripe-eu", Trust: engine.Independent, Link: engine.Link{SubjectID: "pi_1", LinkedSubjectID: "order_10231"}},
		{Source: "crm", Link: engine.Link{SubjectID: "ticket_9", LinkedSubjectID: "order_10231"}},
	}
	for _, l := range want {
		AppendLink(entry.Attributes(), l)
	}
	if diff := cmp.Diff(Batch{Links: want}, FromLogs(ld)); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}

func TestLinksThatAreNoneAreRejectedOneByOne(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(pcommon.Map)
		want   string
	}{
		"no source":   {func(m pcommon.Map) { m.Remove("source") }, `log record of 1970-01-01 00:00:00 +0000 UTC: countersign.links[0]: source: invalid identifier "": write a letter, then letters, digits or _ . : -, at most 64 in all`},
		"one subject": {func(m pcommon.Map) { m.Remove("linked_subject_id") }, "log record of 1970-01-01 00:00:00 +0000 UTC: countersign.links[0]: invalid id: linked_subject_id is empty; 1 to 512 bytes are needed"},
		"other type":  {func(m pcommon.Map) { m.PutInt("subject_id", 7) }, "log record of 1970-01-01 00:00:00 +0000 UTC: countersign.links[0]: invalid record: subject_id is a Int; a Str was expected"},
		"other trust": {func(m pcommon.Map) { m.PutStr("trust", "much") }, `log record of 1970-01-01 00:00:00 +0000 UTC: countersign.links[0]: invalid record: trust does not read: invalid trust level "much": write self_reported, shared or independent`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ld := plog.NewLogs()
			attributes := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Attributes()
			good := Link{Source: "crm", Link: engine.Link{SubjectID: "a", LinkedSubjectID: "b"}}
			AppendLink(attributes, good)
			AppendLink(attributes, good)
			value, _ := attributes.Get(LinksKey)
			tc.change(value.Slice().At(0).Map())
			got := FromLogs(ld)
			if len(got.Links) != 1 || len(got.Rejected) != 1 || got.Rejected[0].Key != LinksKey || got.Rejected[0].Error() != tc.want {
				t.Errorf("links %v, rejected %v, want %s", got.Links, got.Rejected, tc.want)
			}
		})
	}
}
