package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestD35_ObjectsAreBounded pins decision D35: every refusal with its pointer.
func TestD35_ObjectsAreBounded(t *testing.T) {
	t.Parallel()
	keys := func(n int) string {
		var members []string
		for i := range n {
			members = append(members, fmt.Sprintf(`"k%d":%d`, i, i))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	padded := func(n int) string { return `{"a":"` + strings.Repeat("x", n-8) + `"}` }
	for _, text := range []string{`{}`, keys(MaxObjectKeys), deep(MaxObjectDepth), padded(MaxObjectBytes), ` {"a" : [ ] } `, "null"} {
		if _, err := ParseObject([]byte(text)); err != nil {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	for _, c := range []struct{ text, want string }{
		{padded(MaxObjectBytes + 1), "the document has 65537 bytes; at most 65536 are allowed"},
		{keys(MaxObjectKeys + 1), "the document brings the document over 256 keys"},
		{deep(MaxObjectDepth + 1), strings.Repeat("/a", MaxObjectDepth) + " is nested deeper than 16 levels"},
		{`{"l":` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + "}", "/l" + strings.Repeat("/0", 15) + " is nested deeper than 16 levels"},
		{"{\"a\":\"\xff\"}", "the document is not valid UTF-8"},
		{`{"a":{"b":"\u0000"}}`, "/a/b holds U+0000; remove it"},
		{`{"a":{"\u0000":1}}`, "/a has a name that holds U+0000; remove it"},
		{`{"a":1,"a":2}`, "/a stands twice in one object; keep one"},
		{`{"a":1,"A":2}`, "/a stands twice in one object; keep one"},
		{`{"x":[{"a":1,"a":2}]}`, "/x/0/a stands twice in one object; keep one"},
		{`{"a/b":{"c~d":{"e":1,"e":1}}}`, "/a~1b/c~0d/e stands twice in one object; keep one"},
		{`[]`, "the document is not an object; send {...}"},
		{`"a"`, "the document is not an object; send {...}"},
		{`{} {}`, "the document is followed by more text; send one object"},
		{``, "the document ends too early"},
		{`{"a":`, "/a ends too early"},
	} {
		_, err := ParseObject([]byte(c.text))
		if !errors.Is(err, ErrObject) || err.Error() != "invalid JSON object: "+c.want {
			t.Errorf("%.40s:\ngot  %v\nwant invalid JSON object: %s", c.text, err, c.want)
		}
	}
	for _, text := range []string{`{"a":1,}`, `{"a":[1,]}`, `{"a" 1}`, `{"a":01}`, `{"a":NaN}`, `{a:1}`, `{'a':1}`, `{"a":1]`, `{"a":"` + "\n" + `"}`, `{"a":1`} {
		if _, err := ParseObject([]byte(text)); !errors.Is(err, ErrObject) {
			t.Errorf("%s is taken: %v", text, err)
		}
	}
}

func TestD35_WhatIsKept(t *testing.T) {
	t.Parallel()
	o := mustObject(t, `{"Zeta":1.50,"alpha":{"B":1E2,"a":"\ud800x","b":[true,null,-0]},"quote":"\"\\\u0007\/é"}`)
	if diff := cmp.Diff([]string{"alpha", "quote", "zeta"}, o.Keys()); diff != "" {
		t.Errorf("names of the top level are lowercased and sorted: %s", diff)
	}
	text := `{"alpha":{"B":1E2,"a":"` + "\ufffd" + `x","b":[true,null,-0]},"quote":"\"\\\u0007/é","zeta":1.50}`
	if got := o.Text(); got != text {
		t.Errorf("numbers keep their text:\ngot  %s\nwant %s", got, text)
	}
	canonical := `{"alpha":{"B":100,"a":"` + "\ufffd" + `x","b":[true,null,0]},"quote":"\"\\\u0007/é","zeta":1.5}`
	if got := o.Canonical(); got != canonical {
		t.Errorf("the canonical text:\ngot  %s\nwant %s", got, canonical)
	}
}

// TestCanonicalKeysAreInUTF16Order pins RFC 8785 section 3.2.3.
func TestCanonicalKeysAreInUTF16Order(t *testing.T) {
	t.Parallel()
	o := mustObject(t, `{"\ufb33":1,"\ud83d\ude02":2,"\u20ac":3,"ö":4,"1":5,"\r":6,"\u0080":7}`)
	want := []string{"\r", "1", "\u0080", "ö", "\u20ac", "\U0001f602", "\ufb33"}
	if got := o.Keys(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestD33_NotCapturedIsNotEmpty pins decision D33.
func TestD33_NotCapturedIsNotEmpty(t *testing.T) {
	t.Parallel()
	null := mustObject(t, `null`)
	if null.Captured() || null.Text() != "null" || null.Lookup("a").Kind() != Absent {
		t.Errorf("null is captured: %s", null.Text())
	}
	empty := mustObject(t, `{}`)
	if !empty.Captured() || empty.Text() != "{}" || !EmptyObject().Captured() {
		t.Errorf("{} is not captured: %s", empty.Text())
	}
}
