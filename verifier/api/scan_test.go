package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"testing"
	"unicode/utf8"
)

// FuzzScanner: of all text that encoding/json takes, the scanner finds the same
// parts; a list or an object is counted as it is read.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{
		facts(eligible, refunded), `{}`, `[]`, `null`, `-1.5e+3`, `"a"`, ` { "a" : [ ] , "b" : { } } `, "\t[\n1 ,\r2 , \"]\" ]\n",
		`{"a":{"b":[[[]],{"c":"}"}]},"a":"\"","":"\\"}`, `["\\\"[{", true, false,null ,0]`, `{"\u0061\ud83d\ude00":"\ud800"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !utf8.Valid(text) || !json.Valid(text) {
			return // parseBody lets nothing else through
		}
		s := scanner{text: text}
		raw := s.value()
		if s.space(); s.at != len(text) || !json.Valid(raw) {
			t.Fatalf("of %q it reads %q and leaves %q", text, raw, text[s.at:])
		}
		if want, got := tokens(t, text), scanned(t, raw, nil); !slices.Equal(got, want) {
			t.Errorf("of %q it reads %q, want %q", text, got, want)
		}
	})
}

// tokens are those that encoding/json reads.
func tokens(t *testing.T, text []byte) (all []json.Token) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, token)
	}
}

// scanned are the same, found by the scanner.
func scanned(t *testing.T, raw json.RawMessage, all []json.Token) []json.Token {
	t.Helper()
	switch kindOf(raw) {
	case "a list":
		all = append(all, json.Delim('['))
		items, _ := itemsOf(raw, len(raw))
		for _, item := range items {
			all = scanned(t, item, all)
		}
		_, fewer := itemsOf(raw, max(0, len(items)-1))
		if fewer != (len(items) == 0) || isEmpty(raw) != fewer {
			t.Errorf("%q: counted wrongly", raw)
		}
		return append(all, json.Delim(']'))
	case "an object":
		all = append(all, json.Delim('{'))
		n := 0
		each(raw, func(key string, value json.RawMessage) bool {
			all, n = scanned(t, value, append(all, key)), n+1
			return true
		})
		if hasMoreMembers(raw, n) || n > 0 && !hasMoreMembers(raw, n-1) || isEmpty(raw) != (n == 0) {
			t.Errorf("%q: counted wrongly", raw)
		}
		return append(all, json.Delim('}'))
	case "a text":
		return append(all, textOf(raw))
	}
	return append(all, tokens(t, raw)...)
}

// TestScannerGivesPartsOfTheText: nothing is copied, however much there is.
func TestScannerGivesPartsOfTheText(t *testing.T) {
	text := []byte(`{"facts": [` + string(bytes.Repeat([]byte(`{"a": [0, 0, 0]},`), 100_000)) + `0]}`)
	allocations := testing.AllocsPerRun(1, func() {
		for s := inside(text); s.more(); {
			s.name()
			for items := inside(s.value()); items.more(); {
				items.value()
			}
		}
	})
	if allocations > 0 {
		t.Errorf("%.0f allocations", allocations)
	}
}

// BenchmarkReadFacts reads a push of 500 good facts, up to what a store takes.
func BenchmarkReadFacts(b *testing.B) {
	one := []byte(`{"source": "stripe", "subject_id": "order_10231", "subject_kind": "order", "fact_type": "refund_created",
		"occurred_at": "2026-09-28T10:44:00Z", "raw_ref": "re_3Nabc", "attributes": {"amount": 180.00, "currency": "USD", "note": "he said \"no\"", "lines": [1, 2, 3]}},`)
	body := append(append([]byte(`{"facts": [`), bytes.TrimSuffix(bytes.Repeat(one, 500), []byte(","))...), `]}`...)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		var faults []Fault
		o, err := parseBody(body, factsMembers, &faults)
		if err != nil {
			b.Fatal(err)
		}
		if read := o.evidence(func(string) error { return nil }, 1<<40); len(read.facts) != 500 {
			b.Fatalf("%d facts, %v", len(read.facts), read.rejected)
		}
	}
}
