package dialect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestD35_ABadPartCostsItselfAlone: what ordinary runtimes execute does not
// take an action's other arguments away.
func TestD35_ABadPartCostsItselfAlone(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", MaxDepth) + `"]"` + strings.Repeat("]", MaxDepth)
	order := object{"order_id": "o"}
	beside := func(name string, value any) object { return object{"order_id": "o", name: value} }
	twice := func(at int, path ...string) *Damage {
		return &Damage{Lost: []Loss{{path, fmt.Sprintf("its name stands twice, at byte %d", at)}}}
	}
	tests := []struct {
		name, text string
		want       object
		damage     *Damage
	}{
		{"whole", `{"order_id":"o"}`, order, nil},
		{"U+0000", `{"order_id":"o","note":"a\u0000"}`, beside("note", "a\uFFFD"), &Damage{Notes: []string{"U+0000 was replaced, at byte 25"}}},
		{"U+0000, raw", "{\"order_id\":\"o\",\"note\":\"a\x00\"}", beside("note", "a\uFFFD"), &Damage{Notes: []string{"U+0000 was replaced, at byte 25"}}},
		{"U+0000, Python", `{'order_id': 'o', 'note': '\x00'}`, beside("note", "\uFFFD"), &Damage{Notes: []string{"U+0000 was replaced, at byte 27"}}},
		{"name twice", `{"order_id":"o","note":1,"note":2}`, order, twice(25, "note")},
		{"name three times", `{"order_id":"o","note":1,"note":2,"note":3}`, order, twice(25, "note")},
		{"name twice, Python", `{'order_id': 'o', 'note': None, 'note': 1}`, order, twice(32, "note")},
		{"name twice, below", `{"order_id":"o","x":[{"a":1,"a":2,"b":3}]}`, beside("x", []any{object{"b": json.Number("3")}}), twice(28, "x", "0", "a")},
		{"name twice, of objects", `{"x":{"a":1},"order_id":"o","x":{"b":1}}`, order, twice(28, "x")},
		{"the one that counts twice", `{"order_id":"o","order_id":"p","note":1}`, object{"note": json.Number("1")}, twice(16, "order_id")},
		{"text behind", `{"order_id":"o"} and so on`, order, &Damage{Notes: []string{"text behind the arguments was not read, at byte 17"}}},
		{"half a pair", `{"order_id":"o","note":"\ud800"}`, beside("note", "\uFFFD"), nil},
		{"control character", "{\"order_id\":\"o\",\"note\":\"a\nb\"}", beside("note", "a\nb"), &Damage{}},
		{"broken UTF-8", "{\"order_id\":\"o\",\"note\":\"\xff\"}", beside("note", "\uFFFD"), &Damage{Notes: []string{"broken UTF-8 was replaced"}}},
		{"deep", `{"note":` + deep + `,"order_id":"o"}`, nil, &Damage{Lost: []Loss{{append([]string{"note"}, strings.Split(strings.Repeat("0", MaxDepth-1), "")...), "nested deeper than 64, at byte 71"}}}},
		{"cut", `{"order_id":"o","note":"`, object{"_raw": `{"order_id":"o","note":"`}, &Damage{Unreadable: "expected a closing quote at byte 24"}},
		{"no object", `["o"]`, object{"_raw": `["o"]`}, &Damage{Unreadable: "they are no JSON object"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := understandArguments(reportedText(test.text), nil)
			if diff := cmp.Diff(any(test.want), got.Value); test.want != nil && diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.damage, got.Damage); diff != "" {
				t.Error(diff)
			}
			if test.want == nil && got.Value.(object)["order_id"] != "o" {
				t.Errorf("read %v", got.Value)
			}
		})
	}
}

// TestDamageInsideEnvelopes: an envelope opens whatever stands in it.
func TestDamageInsideEnvelopes(t *testing.T) {
	t.Parallel()
	for text, open := range map[string]envelopes{
		`{"args":["{\"order_id\":\"o\",\"note\":1,\"note\":2}"]}`:              {javascriptCallEnvelope},
		`{"args":[],"kwargs":{"order_id":"o","note":1,"note":2}}`:              {pythonCallEnvelope},
		`{"input":"{'order_id': 'o', 'note': 1, 'note': 2}"}`:                  {inputEnvelope},
		`{"tool_name":"x","arguments":{"order_id":"o","note":1,"note":2}} end`: {mcpCallEnvelope},
		`"{\"order_id\":\"o\",\"note\":1,\"note\":2}"`:                         nil,
	} {
		got := understandArguments(reportedText(text), open)
		if diff := cmp.Diff(any(object{"order_id": "o"}), got.Value); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		if got.Damage == nil || !got.Damage.More && len(got.Damage.Lost) == 0 {
			t.Errorf("%s: nothing is said to be lost: %+v", text, got.Damage)
		}
	}
}

// TestLossesAreBounded: a list of what was lost does not grow with the text.
func TestLossesAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `"k%d":1,"k%d":2,"z%d":"\u0000",`, i, i, i)
	}
	got := understandArguments(reportedText(`{`+b.String()+`"order_id":"o"}`), nil)
	if got.Damage == nil || len(got.Damage.Lost) != maxLost || !got.Damage.More || len(got.Damage.Notes) != maxNotes {
		t.Errorf("damage %+v", got.Damage)
	}
	if got.Value.(object)["order_id"] != "o" {
		t.Error("the order is lost")
	}
}
