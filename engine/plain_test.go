package engine

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sameAsJudged: what is read in one pass is what encoding/json reads, and all else is left to it.
func sameAsJudged(t interface{ Errorf(string, ...any) }, text string) {
	got, gotErr := ReadObject(text)
	want, wantErr := Object{}, error(nil)
	switch {
	case len(text) > MaxObjectBytes, strings.ToValidUTF8(text, "") != text:
		want, wantErr = got, gotErr
	default:
		want, wantErr = judgeObject(text)
		samePacked(t, want)
		want = packDense(want.value)
	}
	if (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() {
		t.Errorf("%q: %v, judged %v", text, gotErr, wantErr)
	}
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%q reads as\n%s, judged\n%s", text, got.Text(), want.Text())
	}
}

// samePacked: packed, an object says the same.
func samePacked(t interface{ Errorf(string, ...any) }, o Object) {
	if !o.Captured() {
		return
	}
	packed := pack(o.value)
	if packed.Text() != o.Text() || packed.Canonical() != o.Canonical() || string(packed.AppendText(nil)) != o.Text() ||
		(Fact{Attributes: packed}).ContentHash() != (Fact{Attributes: o}).ContentHash() {
		t.Errorf("%s\nis packed\n%s\n%s", o.Text(), packed.Text(), packed.Canonical())
	}
	if members := packed.Members(); packed.Len() != o.Len() || len(members) != 0 && !reflect.DeepEqual(members, o.Members()) || !slices.Equal(packed.Keys(), o.Keys()) {
		t.Errorf("%s\nhas packed the members %v", o.Text(), members)
	}
	for _, name := range append(o.Keys(), "", "n", "not there") {
		if want, got := o.Lookup(name), packed.Lookup(name); !reflect.DeepEqual(got, want) {
			t.Errorf("%q of %s\nis packed %s", name, o.Text(), got.Text())
		}
	}
}

// documents hold all that JSON has, and what it has not.
var documents = []string{
	`{}`, ` { } `, `{"a":1}`, `{"a":{"b":[1,-2.50,3e4,0.1,-0,1E+9,true,false,null,"x",{},[]]}}`, `{"B":1,"a":{"B":1,"a":2},"C":3}`,
	`{"a":"\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude02\ud800x"}`, `{"ü😀":"é","\u0061b":1}`, `{"\ufb33":1,"😂":2,"€":3}`,
	`{"a":1,"a":2}`, `{"a":1,"A":2}`, `{"a":{"b":1,"b":2}}`, `{"a":"\u0000"}`, `{"\u0000":1}`, "{\"a\":\"\x00\"}", "{\"a\":\"\n\"}", "{}\x00",
	`{"a":01}`, `{"a":1.}`, `{"a":.1}`, `{"a":1e}`, `{"a":+1}`, `{"a":-}`, `{"a":--1}`, `{"a":1e+}`, `{"a":0x1}`, `{"a":1_0}`,
	`{"a":tru}`, `{"a":truex}`, `{"a":nul`, `{"a":NaN}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":[1,]}`, `{"a":[,]}`, `{"a":[1 2]}`, `{"a":1 "b":2}`,
	`{"a":1]`, `{"a":[1}`, `{"a":[`, `{"a":{`, `{"a":"x`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, `{a:1}`, `{1:1}`, `[]`, `"a"`, `null`, `nul`, ``, `{}{}`, `{} x`,
	"\ufeff{}", "\v{}", "{\"a\":\u00a01}", `{"a":"` + "\x7f" + `"}`,
	strings.Repeat(`{"a":`, MaxObjectDepth) + "1" + strings.Repeat("}", MaxObjectDepth),
	strings.Repeat(`{"a":`, MaxObjectDepth+1) + "1" + strings.Repeat("}", MaxObjectDepth+1),
	`{"a":` + strings.Repeat("[", MaxObjectDepth) + strings.Repeat("]", MaxObjectDepth) + "}",
	`{` + strings.Repeat(`"a":{},`, 300) + `"b":1}`, manyNames(MaxObjectKeys), manyNames(MaxObjectKeys + 1),
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"n%d":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}

func TestReadInOnePassIsAsJudged(t *testing.T) {
	t.Parallel()
	plain := 0
	for _, text := range documents {
		sameAsJudged(t, text)
		if _, ok := plainObject(text); ok {
			plain++
		}
	}
	if plain < 7 {
		t.Errorf("only %d documents are read in one pass", plain)
	}
}

// TestDrawnObjectsAreReadInOnePass with any white space, and damaged in one place.
func TestDrawnObjectsAreReadInOnePass(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := drawJSON(t, 3, true)
		sameAsJudged(t, text)
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		junk := rapid.SampledFrom([]string{"", ",", "}", "]", `"`, "0", "-", ".", "e", "\\", "\x00", "\n", ":", "é"}).Draw(t, "junk")
		sameAsJudged(t, text[:at]+junk+text[min(len(text), at+rapid.IntRange(0, 2).Draw(t, "cut")):])
	})
}

func drawJSON(t *rapid.T, depth int, object bool) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space") }
	list := func(open, shut string, one func() string) string {
		var parts []string
		for range rapid.IntRange(0, 3).Draw(t, "parts") {
			parts = append(parts, space()+one()+space())
		}
		return open + strings.Join(parts, ",") + space() + shut
	}
	name := func() string {
		return `"` + rapid.SampledFrom([]string{"a", "B", "b", `\u0062`, "ü", "x/y", "😀", `q\"`}).Draw(t, "name") + `"`
	}
	if object || depth > 0 && rapid.Bool().Draw(t, "map") {
		return list("{", "}", func() string { return name() + space() + ":" + space() + drawJSON(t, depth-1, false) })
	}
	if depth > 0 && rapid.Bool().Draw(t, "list") {
		return list("[", "]", func() string { return drawJSON(t, depth-1, false) })
	}
	return rapid.OneOf(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?`), rapid.SampledFrom([]string{
		"true", "false", "null", `""`, `"text"`, `"\n\t\\"`, `"\ud83d\ude02"`, `"\udead"`, `"é\u00e9"`,
	})).Draw(t, "scalar")
}

// TestKnownCanonicalNumbersAreCanonical: what is taken as canonical without being read would come out the same.
func TestKnownCanonicalNumbersAreCanonical(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"0", "7", "100", "0.5", "180.5", "999999999999999999", "12345678901234.567"} {
		if !isCanonical(number) {
			t.Errorf("%s is not known", number)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[-+]?[0-9]{0,20}\.?[0-9]{0,6}([eE][+-]?[0-9]{1,3})?`).Draw(t, "number")
		d, ok := ReadDecimal(text)
		if isCanonical(text) && (!ok || d.String() != text) {
			t.Fatalf("%q is taken as canonical, and is %v, %v", text, d, ok)
		}
	})
}

// TestDenseObjectsTakeLittleMoreThanTheirText: not 72 bytes for each value of one.
func TestDenseObjectsTakeLittleMoreThanTheirText(t *testing.T) {
	for _, text := range []string{`{"a":[` + strings.Repeat("0,", 32_000) + `0]}`, manyNames(MaxObjectKeys)} {
		dense := make([]Object, 100)
		before := heap()
		for i := range dense {
			dense[i] = mustObject(t, text)
		}
		took := float64(heap()-before) / float64(len(dense)*len(text))
		if took > 2 {
			t.Errorf("an object of %d bytes takes %.1f times as much", len(text), took)
		}
		runtime.KeepAlive(dense)
	}
}

// TestDenseObjectsAreReadWithLittleGarbage: that of their values, 72 bytes each,
// and not that of room for them which grows anew with every object.
func TestDenseObjectsAreReadWithLittleGarbage(t *testing.T) {
	text := `{"a":[` + strings.Repeat("0,", 32_000) + `0]}`
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection takes the room
	mustObject(t, text)
	before, reads := allocated(), 20
	for range reads {
		mustObject(t, text)
	}
	if took := (allocated() - before) / uint64(reads*len(text)); took > 150 {
		t.Errorf("reading an object of %d bytes takes %d times as much", len(text), took)
	}
}

// allocated is what was ever taken.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// heap is what is in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// FuzzObject: no text reads otherwise in one pass than encoding/json has it.
func FuzzObject(f *testing.F) {
	for _, text := range documents {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { sameAsJudged(t, text) })
}
