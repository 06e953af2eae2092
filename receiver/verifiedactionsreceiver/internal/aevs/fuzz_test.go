package aevs

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzCanonical: what has a canonical form has one, is JSON, and means the same.
func FuzzCanonical(f *testing.F) {
	f.Add([]byte(`{"b":[1,2.5,"\ud83d\ude00"],"a":{"z":null,"y":true}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := Canonical(in)
		if err != nil {
			return
		}
		if !json.Valid(in) {
			t.Fatalf("%q is no JSON, and became %q", in, got)
		}
		again, err := Canonical(got)
		if err != nil || !bytes.Equal(got, again) {
			t.Fatalf("%q became %q, then %q, %v", in, got, again, err)
		}
		var a, b any
		if json.Unmarshal(got, &a) != nil {
			t.Fatalf("%q became %q, which is no JSON", in, got)
		}
		// As it was sent: only the order and the writing of strings may differ.
		s, err := newScanner(in)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := s.value(nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.ContainsAny(in, ".eE") && json.Unmarshal(in, &b) == nil {
			var c any
			if err := json.Unmarshal(plain, &c); err != nil || !reflect.DeepEqual(b, c) {
				t.Fatalf("%q became %q, %v", in, plain, err)
			}
		}
	})
}

// FuzzOpen: nothing but a signed receipt opens, and nothing panics.
func FuzzOpen(f *testing.F) {
	v := readVectors(f)
	key := parseKey(f, v.Key.APIKey)
	known := map[string]bool{}
	for _, r := range append(v.Chain, v.Resume.Receipts...) {
		f.Add([]byte(r.Wire))
		known[r.Hash] = true
	}
	f.Add(changed(f, object{"seq": nil}))
	f.Fuzz(func(t *testing.T, wire []byte) {
		r, err := key.Open(wire)
		if err == nil && !known[r.Hash] {
			t.Fatalf("%q was never signed, and opened", wire)
		}
		if err != nil && r == nil {
			t.Fatal("no receipt beside the error")
		}
	})
}
