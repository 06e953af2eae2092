package dialect

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type object = map[string]any

func TestJSONAndPythonLiterals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		read   func(string) (any, error)
		text   string
		want   any
		errors string
	}{
		{"numbers keep their text", parseJSON, `{"a":12.50,"b":1e+02,"c":-0,"d":100000000000000000001}`,
			object{"a": json.Number("12.50"), "b": json.Number("1e+02"), "c": json.Number("-0"), "d": json.Number("100000000000000000001")}, ""},
		{"all kinds", parseJSON, " [null, true, false, \"x\", {}, []] ", []any{nil, true, false, "x", object{}, []any{}}, ""},
		{"escapes", parseJSON, `"\"\\\/\b\f\n\r\té😀"`, "\"\\/\b\f\n\r\té😀", ""},
		{"unpaired surrogates", parseJSON, `"\ud83d \ude00 \ud83d\ud83d\ude00"`, "\uFFFD \uFFFD \uFFFD😀", ""},
		{"what Python writes for no number", parseJSON, `[NaN, Infinity, -Infinity]`, []any{"NaN", "Infinity", "-Infinity"}, ""},
		{"key twice", parseJSON, `{"a":1,"a":2}`, nil, `offset 7: key "a" stands twice`},
		{"key twice, written differently", parseJSON, `{"a":1,"\u0061":2}`, nil, `offset 7: key "a" stands twice`},
		{"U+0000", parseJSON, `"\u0000"`, nil, `offset 1: '\\', expected an escape sequence for a character other than U+0000`},
		{"broken UTF-8", parseJSON, "\"\xff\"", nil, `not valid UTF-8`},
		{"control character", parseJSON, "\"a\nb\"", nil, `offset 2: '\n', expected no control character in a string`},
		{"trailing comma", parseJSON, `[1,]`, nil, `offset 3: ']', expected a value`},
		{"trailing text", parseJSON, `{} x`, nil, `offset 3: 'x', expected end of text`},
		{"leading zero", parseJSON, `012`, nil, `offset 0: number with a leading zero`},
		{"minus alone", parseJSON, `-`, nil, `offset 1: text ends, expected a digit`},
		{"minus infinity cut", parseJSON, `-NaN`, nil, `offset 1: 'N', expected a digit`},
		{"open string", parseJSON, `"abc`, nil, `offset 4: text ends, expected a closing quote`},
		{"single quotes", parseJSON, `{'a':1}`, nil, `offset 1: '\'', expected a value`},
		{"Python's words", parseJSON, `True`, nil, `offset 0: "True" is no value`},
		{"nothing", parseJSON, ``, nil, `offset 0: text ends, expected a value`},

		{"dictionary", parsePython, `{'a': None, "b": True, 'c': False, 1: 'x', 'amount': -12.50}`,
			object{"a": nil, "b": true, "c": false, "1": "x", "amount": json.Number("-12.50")}, ""},
		{"containers", parsePython, `[(), (1,), (1, 2), {1, 2}, set(), {}, []]`,
			[]any{[]any{}, []any{json.Number("1")}, []any{json.Number("1"), json.Number("2")},
				[]any{json.Number("1"), json.Number("2")}, []any{}, object{}, []any{}}, ""},
		{"quotes", parsePython, `['it\'s', "it's", 'say "x"', '\x41é\U0001f600\\n']`, []any{"it's", "it's", `say "x"`, `Aé😀\n`}, ""},
		{"Decimal", parsePython, `{'amount': Decimal('12.50'), 'x': Decimal('NaN')}`, object{"amount": json.Number("12.50"), "x": "NaN"}, ""},
		{"no numbers", parsePython, `[nan, inf]`, []any{"NaN", "Infinity"}, ""},
		{"call", parsePython, `{'a': open('/etc/passwd')}`, nil, `offset 6: "open" is no value`},
		{"attribute", parsePython, `{'a': x.y}`, nil, `offset 6: "x" is no value`},
		{"expression", parsePython, `1+1`, nil, `offset 1: '+', expected end of text`},
		{"Decimal of no number", parsePython, `Decimal('1+1')`, nil, `offset 1: '+', expected end of number`},
		{"joined strings", parsePython, `'a' 'b'`, nil, `offset 4: '\'', expected end of text`},
		{"bytes", parsePython, `b'a'`, nil, `offset 0: "b" is no value`},
		{"brackets", parsePython, `(1)`, nil, `offset 2: ')', expected a comma`},
		{"key twice through coercion", parsePython, `{1: 'a', '1': 'b'}`, nil, `offset 9: key "1" stands twice`},
		{"list as a key", parsePython, `{'a': 1, (1,): 2}`, nil, `offset 9: expected a key`},
		{"zero", parsePython, `'\x00'`, nil, `offset 1: '\\', expected an escape sequence for a character other than U+0000`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := test.read(test.text)
			if diff := cmp.Diff(test.errors, errorText(err)); diff != "" {
				t.Fatal(diff)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNestingIsBounded(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, read := range []func(string) (any, error){parseJSON, parsePython} {
		if _, err := read(nested(MaxDepth)); err != nil {
			t.Errorf("%d deep: %v", MaxDepth, err)
		}
		_, err := read(nested(MaxDepth + 1))
		if got, want := errorText(err), "offset 64: nested deeper than 64"; got != want {
			t.Errorf("%d deep: error %q, expected %q", MaxDepth+1, got, want)
		}
		_, err = read(strings.Repeat("[", MaxValueBytes))
		if got, want := errorText(err), "offset 64: nested deeper than 64"; got != want {
			t.Errorf("brackets only: error %q, expected %q", got, want)
		}
	}
}
