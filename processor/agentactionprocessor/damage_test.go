package agentactionprocessor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
)

func withArguments(text string) ptrace.Traces {
	td := refundTraces()
	firstSpan(td).Attributes().PutStr("gen_ai.tool.call.arguments", text)
	return td
}

// namedParams is a rule whose params are read one by one.
func namedParams() RuleConfig {
	rule := refundRule()
	rule.Params = ParamsConfig{Values: map[string]string{"amount": `ToolArgument("amount")`}}
	return rule
}

// badMembers are members that a runtime may execute and a strict reader refuses.
var badMembers = []string{
	`"note":"\u0000"`, `"note":"\ud800"`, `"note":1,"note":2`, `"note":{"a":1,"a":1}`, `"note":["\u0000",{"x":1,"x":2}]`,
	"\"note\":\"a\nb\"", "\"note\":\"\xff\"", "\"note\":\"\x00\"", `"no\u0000te":1`, `"note":` + strings.Repeat("[", 90) + strings.Repeat("]", 90),
}

// TestOneArgumentHidesNoOther: whatever unrelated part is bad, the action is
// what it is without that part.
func TestOneArgumentHidesNoOther(t *testing.T) {
	t.Parallel()
	config := NewDefaultConfig()
	config.Rules = []RuleConfig{namedParams()}
	p := newTestAnnotator(t, config)
	text := rapid.StringMatching(`[a-z0-9_ ]{1,12}`)
	rapid.Check(t, func(t *rapid.T) {
		members := []string{`"order_id":` + quotedText(t, "ord_"+text.Draw(t, "order")), `"amount":` + rapid.StringMatching(`[1-9][0-9]{0,5}(\.[0-9]{1,2})?`).Draw(t, "amount")}
		for i := range rapid.IntRange(0, 3).Draw(t, "others") {
			members = append(members, quotedText(t, "k"+string(rune('a'+i)))+":"+quotedText(t, text.Draw(t, "value")))
		}
		recorded := func(members []string, behind string) []record.Action {
			td := withArguments("{" + strings.Join(members, ",") + "}" + behind)
			if _, err := p.traces(t.Context(), td); err != nil {
				t.Fatal(err)
			}
			return record.FromTraces(td).Actions
		}
		clean := recorded(members, "")
		if len(clean) != 1 {
			t.Fatal("nothing is recorded")
		}
		at := rapid.IntRange(0, len(members)).Draw(t, "at")
		bad := append(append(append([]string{}, members[:at]...), rapid.SampledFrom(badMembers).Draw(t, "bad")), members[at:]...)
		behind := rapid.SampledFrom([]string{"", " done.", "}", `{"order_id":"other"}`}).Draw(t, "behind")
		if diff := cmp.Diff(clean, recorded(bad, behind), cmp.Comparer(func(a, b engine.Object) bool { return a.Text() == b.Text() })); diff != "" {
			t.Fatal(diff)
		}
	})
}

func quotedText(t *rapid.T, text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted)
}

// TestWhatIsLostIsNotGuessed: of a name that stands twice no value is taken,
// and the operator is told.
func TestWhatIsLostIsNotGuessed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rule            RuleConfig
		text            string
		params, problem string
	}{
		"a named parameter": {namedParams(), `{"order_id":"o","amount":9999,"amount":1}`, "null",
			"rules[0]: recorded without: params.amount: its name stands twice, at byte 30"},
		"one of all": {refundRule(), `{"order_id":"o","amount":9999,"amount":1}`, `{"order_id":"o"}`,
			`rules[0]: recorded without: params."amount": its name stands twice, at byte 30`},
		"another": {namedParams(), `{"order_id":"o","amount":5,"note":1,"note":2}`, `{"amount":5}`, ""},
		"text behind": {namedParams(), `{"order_id":"o","amount":5}{}`, `{"amount":5}`,
			"rules[0]: recorded without: arguments: text behind the arguments was not read, at byte 27"},
		"what was never sent is not lost": {namedParams(), `{"order_id":"o","note":"\u0000"}`, `{}`,
			"rules[0]: recorded without: arguments: U+0000 was replaced, at byte 24"},
		"a condition on what was never sent": {withCondition(`ToolArgument("amount") == nil`), `{"order_id":"o","note":"\u0000"}`, `{"note":"�","order_id":"o"}`,
			"rules[0]: recorded without: arguments: U+0000 was replaced, at byte 24"},
		"the subject": {refundRule(), `{"order_id":"o","order_id":"p"}`, "",
			`rules[0]: not recorded: subject_id: ToolArgument("order_id") gave no value: its name stands twice, at byte 16`},
		"the subject, cut": {refundRule(), `{"order_id":"o`, "",
			`rules[0]: not recorded: subject_id: ToolArgument("order_id") gave no value: the arguments do not read: expected a closing quote at byte 14`},
		"the subject, too large": {refundRule(), `{"order_id":"o","x":"` + strings.Repeat("x", 64<<10) + `"}`, "",
			`rules[0]: not recorded: subject_id: ToolArgument("order_id") gave no value: the arguments are larger than 64 KiB (65559 bytes) and are not read`},
		"the subject, half a pair": {refundRule(), `{"order_id":"cust\ud800"}`, "",
			`rules[0]: not recorded: subject_id: ToolArgument("order_id") gave no value: holds U+FFFD, which stands for characters that do not read: different ids would become one`},
		"what the condition reads": {withCondition(`ToolArgument("amount") == 5`), `{"order_id":"o","amount":5,"amount":5}`, "",
			`rules[0]: not recorded: condition: ToolArgument("amount") == 5 gave no value: its name stands twice, at byte 27`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			td := withArguments(test.text)
			got := process(t, td, test.rule)
			if diff := cmp.Diff(test.problem, problem(td)); diff != "" {
				t.Error(diff)
			}
			if recordedOne := len(got.Actions) == 1; recordedOne == strings.Contains(test.problem, "not recorded") {
				t.Fatalf("%d actions", len(got.Actions))
			}
			if len(got.Actions) == 1 && got.Actions[0].Action.Params.Text() != test.params {
				t.Errorf("params %s", got.Actions[0].Action.Params.Text())
			}
			config := NewDefaultConfig()
			config.Rules = []RuleConfig{test.rule}
			tried, err := TryTraces(config, withArguments(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if why := tried[0].Rules[0].Why; test.problem != "" && !strings.HasSuffix(test.problem, why) {
				t.Errorf("rules try says %q", why)
			}
		})
	}
}

func withCondition(text string) RuleConfig {
	rule := refundRule()
	rule.Condition = text
	return rule
}

// TestUnrecordedCallsAreLoggedOnceAMinute: the rule, the tool and why, and
// nothing of what the agent sent.
func TestUnrecordedCallsAreLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.WarnLevel)
	settings := componenttest.NewNopTelemetrySettings()
	settings.Logger = zap.New(core)
	config := NewDefaultConfig()
	config.Rules = []RuleConfig{refundRule()}
	p, err := newAnnotator(settings, config)
	if err != nil {
		t.Fatal(err)
	}
	clock := time.Unix(1_790_000_000, 0)
	p.now = func() time.Time { return clock }
	for _, after := range []time.Duration{0, time.Second, 58 * time.Second, time.Second} {
		clock = clock.Add(after)
		if _, err := p.traces(t.Context(), withArguments(`{"order_id":"secret","order_id":"secret"}`)); err != nil {
			t.Fatal(err)
		}
	}
	var got []map[string]any
	for _, entry := range logs.All() {
		got = append(got, entry.ContextMap())
	}
	line := func(calls int64) map[string]any {
		return map[string]any{
			"rule": "rules[0]", "contract_id": "refund_workflow", "tool": "refund_order", "trace_id": testTrace, "span_id": testSpan,
			"reason": `subject_id: ToolArgument("order_id") gave no value: its name stands twice, at byte 21`, "calls": calls,
		}
	}
	if diff := cmp.Diff([]map[string]any{line(1), line(3)}, got); diff != "" {
		t.Error(diff)
	}
}
