package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawValue draws a value and the JSON that says the same.
func drawValue(t *rapid.T, depth int) (Value, string) {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	text := rapid.StringOf(rapid.RuneFrom([]rune{'a', 'B', 'k', '"', '\\', '/', '\n', '\t', 0x01, 0x1f, 0x7f, 'é', '€', '😀', '\ufb33', ' ', '7'}))
	switch rapid.IntRange(1, kinds).Draw(t, "kind") {
	case 1:
		return NullValue(), "null"
	case 2:
		b := rapid.Bool().Draw(t, "bool")
		return BoolValue(b), fmt.Sprint(b)
	case 3:
		n := rapid.StringMatching(`-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,4})?`).Draw(t, "number")
		return NumberValue(n), n
	case 4:
		s := text.Draw(t, "string")
		return StringValue(s), StringValue(s).Text()
	case 5:
		var items []Value
		var texts []string
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			v, item := drawValue(t, depth-1)
			items, texts = append(items, v), append(texts, item)
		}
		return ArrayValue(items), "[" + strings.Join(texts, ",") + "]"
	}
	return drawMap(t, depth)
}

// drawMap often draws a name twice.
func drawMap(t *rapid.T, depth int) (Value, string) {
	var members []Member
	var texts []string
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		name := rapid.SampledFrom([]string{"a", "A", "amount", "ö", "😀", "\ufb33", "\r", "", "a/b~c", "z"}).Draw(t, "name")
		v, text := drawValue(t, depth-1)
		members, texts = append(members, Member{name, v}), append(texts, StringValue(name).Text()+":"+text)
	}
	return MapValue(members), "{" + strings.Join(texts, ",") + "}"
}

// TestD35_BuiltIsParsed: an object that is built is the object that is parsed
// of the same JSON, and is refused where that is.
func TestD35_BuiltIsParsed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v, text := drawMap(t, rapid.IntRange(1, 5).Draw(t, "depth"))
		built, err := NewObject(v)
		parsed, parseErr := ParseObject([]byte(text))
		if (err == nil) != (parseErr == nil) {
			t.Fatalf("%s:\nbuilt  %v\nparsed %v", text, err, parseErr)
		}
		if err != nil && !errors.Is(err, ErrObject) {
			t.Fatalf("%s: %v", text, err)
		}
		if built.Captured() != parsed.Captured() || built.Text() != parsed.Text() || built.Canonical() != parsed.Canonical() {
			t.Fatalf("%s:\nbuilt  %s\nparsed %s", text, built.Text(), parsed.Text())
		}
		if n := len(built.Text()); n != built.value.textBytes() {
			t.Fatalf("%s has %d bytes, and %d were counted", built.Text(), n, built.value.textBytes())
		}
	})
}

// TestD35_BuiltObjectsAreBounded has every refusal with its pointer.
func TestD35_BuiltObjectsAreBounded(t *testing.T) {
	t.Parallel()
	object := func(name string, v Value) Value { return MapValue([]Member{{name, v}}) }
	deep := func(levels int) Value {
		v := NumberValue("1")
		for range levels {
			v = object("a", v)
		}
		return v
	}
	keys := func(n int) Value {
		members := make([]Member, n)
		for i := range members {
			members[i] = Member{fmt.Sprintf("k%d", i), NullValue()}
		}
		return object("all", MapValue(members))
	}
	padded := func(n int) Value { return object("a", StringValue(strings.Repeat("x", n-len(`{"a":""}`)))) }
	for _, v := range []Value{NullValue(), MapValue(nil), deep(MaxObjectDepth), keys(MaxObjectKeys - 1), padded(MaxObjectBytes)} {
		o, err := NewObject(v)
		if err != nil {
			t.Errorf("%.40s: %v", o.Text(), err)
			continue
		}
		if again, err := ParseObject([]byte(o.Text())); err != nil || again.Text() != o.Text() {
			t.Errorf("%.40s does not read again: %v", o.Text(), err)
		}
	}
	for _, c := range []struct {
		v    Value
		want string
	}{
		{ArrayValue(nil), "the document is not an object; send {...}"},
		{StringValue("a"), "the document is not an object; send {...}"},
		{Value{}, "the document is not an object; send {...}"},
		{padded(MaxObjectBytes + 1), "the document has 65537 bytes; at most 65536 are allowed"},
		{deep(MaxObjectDepth + 1), strings.Repeat("/a", MaxObjectDepth) + " is nested deeper than 16 levels"},
		{keys(MaxObjectKeys), "/all brings the document over 256 keys"},
		{object("l", ArrayValue([]Value{NullValue(), StringValue("a\x00")})), "/l/1 holds U+0000; remove it"},
		{object("l", StringValue("\xff")), "/l is not valid UTF-8"},
		{object("l", object("\x00", NullValue())), "/l has a name that is not valid UTF-8 or holds U+0000; remove it"},
		{MapValue([]Member{{"a", NullValue()}, {"A", NullValue()}}), "/a stands twice in one object; keep one"},
		{object("a/b", MapValue([]Member{{"c~", NullValue()}, {"c~", NullValue()}})), "/a~1b/c~0 stands twice in one object; keep one"},
	} {
		_, err := NewObject(c.v)
		if diff := cmp.Diff("invalid JSON object: "+c.want, fmt.Sprint(err)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for _, number := range []string{"", "-", "+1", "01", "1.", ".5", "1e", "1e+", "NaN", "0x10", "1_000", " 1", "1 ", "--1", "1.5.5"} {
		if _, err := NewObject(object("n", NumberValue(number))); !errors.Is(err, ErrObject) {
			t.Errorf("%q is taken for a number", number)
		}
	}
}

// TestBuildingAllocatesNothingButItsParts: the check of a built object is free.
func TestBuildingAllocatesNothingButItsParts(t *testing.T) {
	members := []Member{{"Order_id", StringValue("order_10231")}, {"amount", NumberValue("180.50")}}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := NewObject(MapValue(members)); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestLongArraysGrowInNoSteps: what is read of one takes what it needs, not what it went through.
func TestLongArraysGrowInNoSteps(t *testing.T) {
	text := `{"a":[` + strings.Repeat("1,", 700) + `[2,[3]],4]}`
	object, err := ParseObject([]byte(text))
	if err != nil || object.Text() != text {
		t.Fatalf("%v %.100s", err, object.Text())
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = ParseObject([]byte(text)) }); n > 8 {
		t.Errorf("%v allocations", n)
	}
}
