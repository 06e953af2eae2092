package evidenceprocessor

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
)

// sameAsJudged: what is read in one pass is what encoding/json reads, and all else is left to it.
func sameAsJudged(t *testing.T, text string) {
	t.Helper()
	got, gotErr := parseJSON(text)
	want, wantErr := judgeJSON(text)
	if (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() || !reflect.DeepEqual(want, got) {
		t.Errorf("%q reads as\n%#v, %v, judged\n%#v, %v", text, got, gotErr, want, wantErr)
	}
}

func TestReadInOnePassIsAsJudged(t *testing.T) {
	t.Parallel()
	for _, mapping := range mappingNames {
		for _, file := range samples(t, mapping) {
			body := string(readSample(t, file).Body)
			sameAsJudged(t, body)
			if body == "" {
				continue // it is all in attributes
			}
			for _, at := range []int{1, len(body) / 3, len(body) / 2, len(body) - 1} {
				sameAsJudged(t, body[:at])
				sameAsJudged(t, body[:at]+`"`+body[at:])
			}
			if _, ok := plainValue(body); !ok {
				t.Errorf("%s is not read in one pass", file)
			}
		}
	}
	for _, text := range odd {
		sameAsJudged(t, text)
	}
}

// sameFlat: what selectors find in members is what they find in the value.
func sameFlat(t *testing.T, text string, selectors ...string) {
	t.Helper()
	log := plog.NewLogRecord()
	log.Body().SetStr(text)
	for _, s := range selectors {
		parsed, err := parseSelector(s)
		if err != nil {
			t.Fatal(err)
		}
		e := entry{log: log, members: []bodyMember{{name: "order", text: "of another record", isText: true}}}
		var want any
		value, wantErr := judgeJSON(text)
		if wantErr == nil {
			want = parsed.first(value)
		}
		got, gotErr := e.first(&parsed)
		if (gotErr == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%q of %q is %#v, %v, want %#v, %v", s, text, got, gotErr, want, wantErr)
		}
		if short, ok := e.text(&parsed); ok && short != want {
			t.Errorf("%q of %q is the text %q, want %#v", s, text, short, want)
		}
		if whole, err := e.json(); (err == nil) != (wantErr == nil) || !reflect.DeepEqual(whole, value) {
			t.Errorf("%q is %#v, want %#v", text, whole, value)
		}
	}
}

func TestMembersAreFoundAsInTheValue(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"n%d":"%d"`, i, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	for _, text := range []string{
		"{}", `{"a":"1","a":2,"a":"3"}`, `{"a":null}`, `{"a":{"b":"c","d":[1,{"e":2}]},"a.b":"dotted"}`, `{"a":{"b":null},"a.b":null}`,
		`{"a":"x","b":{"a":"y"}}`, `{"order":null}`, `{"o":1}`, `{"a":[{"k":"v","n":1}]}`, `{"a":1}x`, `{"a":`, many(maxFlat), many(maxFlat + 1), ` {"a" : "b" } `,
		`{"a":"\ud83d\ude02"}`, `[{"a":1}]`, `[]`,
	} {
		sameFlat(t, text, "", "a", "a.b", "a.d.1.e", "b.a", "order", "n0", "n63", "n64", "a.*", "a[k=v].n", "0.a", "0")
	}
}

// odd is JSON that few write, and what looks like JSON.
var odd = []string{
	"", " ", "{}", "[]", "[ ]", `[[],{},"",0,-0,1.50,1e400,true,false,null]`, `{"a":1,"a":{"b":2},"A":3}`, `{"a":{"x":1},"a":{"y":2}}`,
	`["\ud83d\ude02","\ud800","\u0000","\u00e9\/\b\f\n\r\t\"\\"]`, "[\"\xff\"]", "[\"\x00\"]", "[\"\n\"]", "[\"\x7f\"]", "[1]x", "[1] \n", "[1]\x00", "[1]\v",
	"[01]", "[1.]", "[.1]", "[+1]", "[-]", "[1e]", "[tru]", "[truex]", "[nul]", "[NaN]", "[1,]", "[,1]", "[1 2]", `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{1:1}`, `{"a":1]`, "[1}", `["\x"]`, `["\u12"]`,
	strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 65) + strings.Repeat("]", 65), strings.Repeat("[", 20_000),
	strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65),
}

// FuzzJSON: no text reads otherwise in one pass than encoding/json has it.
func FuzzJSON(f *testing.F) {
	for _, text := range odd {
		f.Add(text)
	}
	for _, mapping := range mappingNames {
		for i, file := range samples(f, mapping) {
			if i%8 == 0 {
				f.Add(string(readSample(f, file).Body))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		sameAsJudged(t, text)
		if trimmed := strings.TrimLeft(text, " \t\r\n"); trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') {
			sameFlat(t, text, "a", "id", "data.object.id")
		}
	})
}
