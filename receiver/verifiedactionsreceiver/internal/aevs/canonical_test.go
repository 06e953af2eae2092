package aevs

import (
	"errors"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, in, want string }{
		{"keys in order, no spaces", " { \"b\" : 1 ,\n\"a\" : [ true , null ] } ", `{"a":[true,null],"b":1}`},
		{"keys by code point", `{"😀":1,"｡":2,"z":3}`, `{"z":3,"｡":2,"😀":1}`},
		{"order inside", `{"x":{"b":{"d":1,"c":2},"a":3}}`, `{"x":{"a":3,"b":{"c":2,"d":1}}}`},
		{"order inside a list", `[{"b":1,"a":2},{"d":1,"c":2}]`, `[{"a":2,"b":1},{"c":2,"d":1}]`},
		{"empty", `{"a":{},"b":[],"":""}`, `{"":"","a":{},"b":[]}`},
		{"only what has to be is escaped", `"\u003c\u2028\u007f\/\"\\\b\f\n\r\t\u0000\u001F"`, "\"<\u2028\x7f/\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\""},
		{"pairs", `"\ud83d\ude00"`, `"😀"`},
		{"values in form C, keys not", "{\"e\u0301\":\"e\u0301\"}", "{\"e\u0301\":\"\u00e9\"}"},
		{"whole numbers as they are", `[0,-0,-1,123456789012345678901234567890]`, `[0,0,-1,123456789012345678901234567890]`},
		{"others as text", `[1.5,-0.0,1e2,1E-7,2.5e-06,0.1234565]`, `["1.500000","-0.000000","100.000000","0.000000","0.000003","0.123456"]`},
		{"too large a number", `[1e400,-1e400]`, `[null,null]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := Canonical([]byte(test.in))
			if err != nil || string(got) != test.want {
				t.Fatalf("got %s, %v", got, err)
			}
			again, err := Canonical(got)
			if err != nil || string(again) != test.want {
				t.Errorf("the canonical form became %s, %v", again, err)
			}
		})
	}
}

func TestCanonical_Refused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{
		{"", "at byte 0: a value was expected"},
		{"{}{}", "at byte 2: something stands behind the value"},
		{"nul", "at byte 0: a value was expected"},
		{"NaN", "at byte 0: a value was expected"},
		{`{"a":1,"a":2}`, `at byte 13: the key "a" stands twice in one object`},
		{`{"a":{"b":1,"c":2,"b":3}}`, `at byte 24: the key "b" stands twice in one object`},
		{`{"a" 1}`, "at byte 5: a colon was expected"},
		{`{a:1}`, "at byte 1: a key was expected"},
		{`{"a":1,}`, "at byte 7: a key was expected"},
		{`{"a":1 "b":2}`, "at byte 7: a comma or } was expected"},
		{`[1 2]`, "at byte 3: a comma or ] was expected"},
		{`[1,]`, "at byte 3: a value was expected"},
		{`01`, "at byte 1: something stands behind the value"},
		{`1.`, "at byte 2: a digit was expected"},
		{`1e`, "at byte 2: a digit was expected"},
		{`-`, "at byte 1: a digit was expected"},
		{`"`, "at byte 1: a string does not end"},
		{`"\x"`, "at byte 2: an escape that JSON does not know"},
		{`"\u00g0"`, "at byte 2: four hexadecimal digits were expected"},
		{`"\u00"`, "at byte 2: four hexadecimal digits were expected"},
		{`"\ud83d"`, "at byte 7: an unpaired surrogate"},
		{`"\ud83d\ud83d"`, "at byte 13: an unpaired surrogate"},
		{`"\ude00"`, "at byte 7: an unpaired surrogate"},
		{"\"a\nb\"", "at byte 2: a control character stands in a string"},
		{"\"\xff\"", ": it is not valid UTF-8"},
		{strings.Repeat("[", MaxDepth+1), "at byte 256: nested deeper than 256"},
	} {
		_, err := Canonical([]byte(test.in))
		if !errors.Is(err, ErrJSON) {
			t.Errorf("%.20s: %v", test.in, err)
			continue
		}
		if got := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "invalid JSON"), " "); got != test.want {
			t.Errorf("%.20s: %q", test.in, got)
		}
	}
}
