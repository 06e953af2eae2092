package record

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
)

var compareObjects = cmp.Comparer(func(a, b engine.Object) bool {
	return a.Captured() == b.Captured() && a.Text() == b.Text()
})

// opaque draws ids; optional ones may be empty, which means not sent.
func opaque(t *rapid.T, name string) string {
	return rapid.StringMatching(`[A-Za-z0-9_:/ äß€😀-]{1,40}`).Draw(t, name)
}

func optional(t *rapid.T, name string) string {
	if rapid.Bool().Draw(t, name+" is sent") {
		return opaque(t, name)
	}
	return ""
}

func object(t *rapid.T, name string) engine.Object {
	text := rapid.SampledFrom([]string{
		"null", "{}", `{"amount":180.50}`, `{"a":{"b":[1,1e3,"x",true,null]},"big":12345678901234567890.123}`, `{"text":"\u0001ü\"\\"}`,
	}).Draw(t, name)
	o, err := engine.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func instant(t *rapid.T, name string) engine.Instant {
	return engine.Instant(rapid.Int64Range(0, int64(engine.MaxInstant)).Draw(t, name))
}

func drawAction(t *rapid.T) Action {
	return Action{
		Tenant: optional(t, "tenant"),
		Action: engine.Action{
			ActionID: opaque(t, "action_id"), ContractID: "refund_workflow",
			ContractVersion: rapid.IntRange(0, 99).Draw(t, "contract_version"),
			WorkflowID:      optional(t, "workflow_id"), AgentID: optional(t, "agent_id"),
			ActionType: optional(t, "action_type"), SubjectID: opaque(t, "subject_id"), SubjectKind: optional(t, "subject_kind"),
			RequestedAt: instant(t, "requested_at"), Params: object(t, "params"), Channel: optional(t, "channel"),
			Compensates: optional(t, "compensates"), TraceID: optional(t, "trace_id"), SpanID: optional(t, "span_id"),
			SessionID: optional(t, "session_id"), ReferenceID: optional(t, "reference_id"), Tool: optional(t, "tool"),
			ReportedOutcome: optional(t, "reported_outcome"),
		},
		StartedNanos: rapid.Int64Min(0).Draw(t, "started_nanos"),
	}
}

// TestWhatIsWrittenReadsTheSame for any actions, facts and contexts on one span.
func TestWhatIsWrittenReadsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		td := ptrace.NewTraces()
		span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(pcommon.SpanID{2})
		span.SetStartTimestamp(3)
		span.SetEndTimestamp(4)
		var want Batch
		for range rapid.IntRange(0, 3).Draw(t, "actions") {
			a := drawAction(t)
			if a.Action.Compensates == a.Action.ActionID {
				a.Action.Compensates = ""
			}
			AppendAction(span.Attributes(), a)
			want.Actions = append(want.Actions, a)
			written, _ := span.Attributes().Get(ActionsKey)
			if n := written.Slice().At(len(want.Actions) - 1).Map().Len(); n != a.fields() {
				t.Fatalf("%d fields are written, and there was room for %d", n, a.fields())
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "facts") {
			f := Fact{
				Tenant: optional(t, "tenant"), Connection: optional(t, "connection"),
				Trust: engine.Trust(rapid.IntRange(0, 3).Draw(t, "trust")),
			}
			var err error
			f.Fact, err = engine.Fact{
				RawRef: optional(t, "raw_ref"), Source: "stripe", Type: "refund_created", SubjectID: opaque(t, "subject_id"),
				OccurredAt: instant(t, "occurred_at"), Attributes: object(t, "attributes"),
			}.Normalize()
			if err != nil {
				t.Fatal(err)
			}
			AppendFact(span.Attributes(), f)
			want.Facts = append(want.Facts, f)
			written, _ := span.Attributes().Get(FactsKey)
			if n := written.Slice().At(len(want.Facts) - 1).Map().Len(); n != f.fields() {
				t.Fatalf("%d fields are written, and there was room for %d", n, f.fields())
			}
		}
		if rapid.Bool().Draw(t, "has context") {
			c := Context{
				Tenant: optional(t, "tenant"), Agent: opaque(t, "agent"), Session: optional(t, "session"),
				TraceID: "01000000000000000000000000000000", SpanID: "0200000000000000", StartNanos: 3, EndNanos: 4,
			}
			PutContext(span.Attributes(), c.Tenant, c.Agent, c.Session)
			want.Contexts = append(want.Contexts, c)
		}
		td.MarkReadOnly()
		if diff := cmp.Diff(want, FromTraces(td), compareObjects); diff != "" {
			t.Fatalf("(-written +read):\n%s", diff)
		}
	})
}

func TestWhatIsNotOursIsRejectedItemByItem(t *testing.T) {
	t.Parallel()
	good := Action{Action: engine.Action{ActionID: "a", ContractID: "c", SubjectID: "s"}}
	field := func(name string, set func(pcommon.Value)) func(pcommon.Map) {
		return func(m pcommon.Map) {
			AppendAction(m, good)
			list, _ := m.Get(ActionsKey)
			item := list.Slice().At(0).Map()
			set(item.PutEmpty(name))
		}
	}
	fact := func(name, text string) func(pcommon.Map) {
		return func(m pcommon.Map) {
			AppendFact(m, Fact{Fact: engine.Fact{Source: "stripe", Type: "refund_created", SubjectID: "s"}})
			list, _ := m.Get(FactsKey)
			if text == "" {
				list.Slice().At(0).Map().Remove(name)
				return
			}
			list.Slice().At(0).Map().PutStr(name, text)
		}
	}
	for name, tc := range map[string]struct {
		fill func(pcommon.Map)
		want string
	}{
		"no list":          {func(m pcommon.Map) { m.PutStr(ActionsKey, "[]") }, "countersign.actions: invalid record: is a Str; a Slice was expected"},
		"no map":           {func(m pcommon.Map) { m.PutEmptySlice(ActionsKey).AppendEmpty().SetInt(1) }, "countersign.actions[0]: invalid record: is a Int; a Map was expected"},
		"wrong type":       {field("subject_id", func(v pcommon.Value) { v.SetInt(7) }), "countersign.actions[0]: invalid record: subject_id is a Int; a Str was expected"},
		"text for int":     {field("contract_version", func(v pcommon.Value) { v.SetStr("1") }), "countersign.actions[0]: invalid record: contract_version is a Str; a Int was expected"},
		"version zero":     {field("contract_version", func(v pcommon.Value) { v.SetInt(0) }), "countersign.actions[0]: invalid record: contract_version is 0; a version is 1 or more"},
		"negative nanos":   {field("started_nanos", func(v pcommon.Value) { v.SetInt(-1) }), "countersign.actions[0]: invalid record: started_nanos is negative"},
		"no time":          {field("requested_at", func(v pcommon.Value) { v.SetStr("now") }), `countersign.actions[0]: invalid record: requested_at is no time: invalid time: "now" is not an RFC 3339 time like 2026-09-28T10:42:00Z`},
		"params too large": {field("params", func(v pcommon.Value) { v.SetStr(`"` + strings.Repeat("x", 70000)) }), "countersign.actions[0]: invalid record: params does not read: invalid JSON object: the document has 70001 bytes; at most 65536 are allowed"},
		"empty subject":    {field("subject_id", func(v pcommon.Value) { v.SetStr("") }), "countersign.actions[0]: invalid action: invalid id: subject_id is empty; 1 to 512 bytes are needed"},
		"fact's time":      {fact("occurred_at", ""), "countersign.facts[0]: invalid record: occurred_at is missing"},
		"fact's trust":     {fact("trust", "total"), `countersign.facts[0]: invalid record: trust does not read: invalid trust level "total": write self_reported, shared or independent`},
		"fact's source":    {fact("source", "9"), `countersign.facts[0]: invalid fact: source: invalid identifier "9": write a letter, then letters, digits or _ . : -, at most 64 in all`},
		"context no map":   {func(m pcommon.Map) { m.PutStr(ContextKey, "x") }, "countersign.context: invalid record: is a Str; a Map was expected"},
		"context empty":    {func(m pcommon.Map) { m.PutEmptyMap(ContextKey) }, "countersign.context: neither agent nor session is set"},
		"context agent":    {func(m pcommon.Map) { PutContext(m, "", "a\nb", "") }, "countersign.context: invalid id: agent has the control character U+000A"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			td := ptrace.NewTraces()
			spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
			for i := range 3 {
				span := spans.AppendEmpty()
				span.SetTraceID(pcommon.TraceID{1})
				span.SetSpanID(pcommon.SpanID{byte(i + 1)})
				AppendAction(span.Attributes(), good)
			}
			spans.At(1).Attributes().Clear()
			tc.fill(spans.At(1).Attributes())
			got := FromTraces(td)
			if len(got.Actions) != 2 {
				t.Errorf("%d good actions are left, not 2", len(got.Actions))
			}
			if len(got.Rejected) != 1 {
				t.Fatalf("rejected %v", got.Rejected)
			}
			if diff := cmp.Diff("span 0200000000000000: "+tc.want, got.Rejected[0].Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(tc.want, got.Rejected[0].Key) {
				t.Errorf("key %s", got.Rejected[0].Key)
			}
		})
	}
}

func TestContextNeedsASpanWithAnInterval(t *testing.T) {
	t.Parallel()
	for want, change := range map[error]func(ptrace.Span){
		errContextIDs:   func(s ptrace.Span) { s.SetTraceID(pcommon.TraceID{}) },
		errContextTimes: func(s ptrace.Span) { s.SetEndTimestamp(1) },
	} {
		td := ptrace.NewTraces()
		span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(pcommon.SpanID{1})
		span.SetStartTimestamp(10)
		span.SetEndTimestamp(20)
		PutContext(span.Attributes(), "", "agent", "")
		change(span)
		if got := FromTraces(td).Rejected; len(got) != 1 || !errors.Is(got[0].Err, want) {
			t.Errorf("rejected %v, want %v", got, want)
		}
	}
}

func TestOldReadersTakeNewRecords(t *testing.T) {
	t.Parallel()
	ld := plog.NewLogs()
	attributes := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Attributes()
	AppendAction(attributes, Action{Action: engine.Action{ActionID: "a", ContractID: "c", SubjectID: "s"}})
	list, _ := attributes.Get(ActionsKey)
	list.Slice().At(0).Map().PutStr("invented_later", "x")
	attributes.PutStr(Prefix+"invented_later", "x")
	if got := FromLogs(ld); len(got.Actions) != 1 || len(got.Rejected) != 0 {
		t.Errorf("read %+v", got)
	}
}

func TestStrip(t *testing.T) {
	t.Parallel()
	m := pcommon.NewMap()
	for _, key := range []string{"countersign.actions", "countersign.", "countersign", "Countersign.actions", "countersigned.by", "x.countersign.y"} {
		m.PutStr(key, "")
	}
	if n := Strip(m); n != 2 {
		t.Errorf("%d removed", n)
	}
	var left []string
	for key := range m.All() {
		left = append(left, key)
	}
	if diff := cmp.Diff([]string{"countersign", "Countersign.actions", "countersigned.by", "x.countersign.y"}, left); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestErrorsAddUp(t *testing.T) {
	t.Parallel()
	m := pcommon.NewMap()
	PutError(m, "first")
	PutError(m, "second")
	if got, _ := m.Get(ErrorKey); got.Str() != "first; second" {
		t.Errorf("got %q", got.Str())
	}
}

func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	m := pcommon.NewMap()
	PutError(m, strings.Repeat("x", maxErrorText-1)+"ü and more")
	if got, _ := m.Get(ErrorKey); got.Str() != strings.Repeat("x", maxErrorText-1)+"..." {
		t.Errorf("%d bytes are written: %.20q...%q", len(got.Str()), got.Str(), got.Str()[len(got.Str())-10:])
	}
}

// FuzzFromTraces: whatever stands in the attributes, reading never panics and
// what it gives is normalized.
func FuzzFromTraces(f *testing.F) {
	for _, seed := range []string{
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","attributes":[{"key":"countersign.actions","value":{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"action_id","value":{"stringValue":"a"}},{"key":"requested_at","value":{"stringValue":"2026-09-28T10:42:00Z"}},{"key":"params","value":{"stringValue":"{\"a\":1}"}}]}}]}}}]}]}]}]}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"countersign.context","value":{"kvlistValue":{"values":[{"key":"agent","value":{"intValue":"1"}}]}}}]}]}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		td, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(data)
		if err != nil {
			return
		}
		for _, a := range FromTraces(td).Actions {
			if _, err := a.Action.Normalize(); err != nil {
				t.Errorf("%+v: %v", a, err)
			}
		}
	})
}

// TestSamplingExampleKnowsActions: the sampler keeps spans by the attribute that says what is recorded of them.
func TestSamplingExampleKnowsActions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../examples/sampling.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := `attributes["` + ActionsKey + `"] != nil`; !strings.Contains(string(text), want) {
		t.Errorf("examples/sampling.yaml does not ask for %s", want)
	}
}
