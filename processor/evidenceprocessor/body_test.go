package evidenceprocessor

import (
	"reflect"
	"strings"
	"testing"
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
	f.Fuzz(sameAsJudged)
}
