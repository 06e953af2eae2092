package evidenceprocessor

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSelectors(t *testing.T) {
	t.Parallel()
	var document any
	decode(t, []byte(`{
		"id": 7, "a.b": "dotted", "a": {"b": "stepped", "c": null},
		"list": [{"kind": "refund", "n": 1, "ok": true}, {"kind": "Refund", "n": 2, "ok": false}, {"kind": "sale", "n": 3}, null],
		"matrix": [[1, 2], [3]], "deep": [{"items": [{"v": 1}]}, {"items": [{"v": 2}, {"v": 3}]}]
	}`), &document)
	for text, want := range map[string]string{
		"id": `[7]`, "a.b": `["stepped"]`, "a.c": `[]`, "a.d": `[]`, "id.x": `[]`, "list.1.n": `[2]`, "list.-1.n": `[]`, "list.9": `[]`,
		"list.*.n": `[1,2,3]`, "list[kind=refund].n": `[1,2]`, "list[kind=refund,ok=true].n": `[1]`, "list[kind!=refund].n": `[3]`,
		"list[n=1.0].n": `[1]`, "list[missing=x]": `[]`, "list[missing!=x].n": `[1,2,3]`, "list[kind=].n": `[]`, "list[kind!=].n": `[1,2,3]`,
		"matrix.*.*": `[1,2,3]`, "matrix.0": `[[1,2]]`, "deep.*.items.*.v": `[1,2,3]`, "deep.*.items[v=2].v": `[2]`, "id[x=1]": `[]`,
	} {
		s, err := parseSelector(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := json.Marshal(append([]any{}, s.all(document)...))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for text, want := range map[string]any{"a.b": "dotted", "list[kind=refund].n": json.Number("1"), "list[kind=none].n": nil, "a.c": nil} {
		s, err := parseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.first(document); got != want {
			t.Errorf("first of %s: %v, want %v", text, got, want)
		}
	}
	whole, err := parseSelector("")
	if err != nil || !cmp.Equal(whole.first(document), document) {
		t.Errorf("the whole: %v, %v", whole.first(document), err)
	}
}

func TestSelectorsThatAreNone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a..b": `"a..b": a step is empty; write names between dots`, ".": `".": a step is empty; write names between dots`,
		"[a=b]": `"[a=b]": a step is empty; write names between dots`, "a[b=c": `"a[b=c": a bracket is not closed at the end of its step; write items[name=value]`,
		"a[b=c]d": `"a[b=c]d": a bracket is not closed at the end of its step; write items[name=value]`,
		"a[b]":    `"a[b]": a filter compares names with values; write items[name=value,other!=value]`,
		"a[!=b]":  `"a[!=b]": a filter compares names with values; write items[name=value,other!=value]`,
	} {
		if _, err := parseSelector(text); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// FuzzSelector: whatever stands in a configuration, selecting never panics, and one is the first of all.
func FuzzSelector(f *testing.F) {
	for _, text := range []string{"", "a.b", "a[b=c,d!=e].f.*", "*.*", "0.1", "a[b", "..", "a[=]"} {
		f.Add(text, `{"a":[{"b":"c","f":[1]}],"0":[[2]]}`)
	}
	f.Fuzz(func(t *testing.T, text, document string) {
		s, err := parseSelector(text)
		if err != nil {
			return
		}
		value, err := parseJSON(document)
		if err != nil {
			return
		}
		all, first := s.all(value), s.first(value)
		if s.plain && len(s.steps) > 1 {
			return // a member whose name is the whole text comes first
		}
		if len(all) == 0 && first != nil || len(all) > 0 && !cmp.Equal(all[0], first) {
			t.Errorf("%q in %s: first %v of %v", text, document, first, all)
		}
	})
}
