package engine

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestD02_WhatReadsAsANumber pins decision D2: what does, in which canonical form, and what does not.
func TestD02_WhatReadsAsANumber(t *testing.T) {
	t.Parallel()
	nines := strings.Repeat("9", MaxDigits)
	for text, want := range map[string]string{
		"180": "180", "180.0": "180", " 180.00 ": "180", "+180": "180", "0180": "180", "00": "0",
		"-0": "0", "-0.0e5": "0", "0e999": "0", "0.1": "0.1", "-0.10": "-0.1", "1e2": "100", "1E+2": "100", "12e-1": "1.2",
		"1e100": "1" + strings.Repeat("0", 100), "1e-100": "0." + strings.Repeat("0", 99) + "1",
		"0.1e101": "1" + strings.Repeat("0", 100), "1000e97": "1" + strings.Repeat("0", 100),
		nines: nines, "-" + nines: "-" + nines, nines + "000": nines + "000", "000" + nines: nines, "0." + nines: "0." + nines,
		"1" + strings.Repeat("0", 100):  "1" + strings.Repeat("0", 100),
		strings.Repeat("0", 1000) + "1": "1",
	} {
		got, ok := ReadDecimal(text)
		if !ok || got.String() != want {
			t.Errorf("%.60q reads as %.60s (%v), want %.60s", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", " ", "+", "-", ".", "1.", ".5", "1..2", "1.2.3", "--1", "1-", "e5", "1e", "1e+", "1e1000", "1e1.5", "1 0",
		"0x10", "1_000", "1,000", "NaN", "nan", "Infinity", "inf", "-Inf", "true", "null", "one", "1a", "\t1", "1\n", "１",
		"1e101", "1e-101", "-1e101", "9.9e-101", nines + "9", nines + ".9", "1" + strings.Repeat("0", 101),
		strings.Repeat("0", 1024) + "1", "$1", "1%", "+ 1",
	} {
		if got, ok := ReadDecimal(text); ok {
			t.Errorf("%.60q reads as %s, but is no number", text, got)
		}
	}
}

func TestD02_OnlyNumbersAndTextsReadAsNumbers(t *testing.T) {
	t.Parallel()
	o := mustObject(t, `{"n": 1.50, "s": " 1.5 ", "b": true, "z": null, "l": [1], "m": {"a": 1}, "e": 15e-1, "big": 1e400, "h": "0x10"}`)
	for key, want := range map[string]string{"n": "1.5", "s": "1.5", "e": "1.5", "b": "", "z": "", "l": "", "m": "", "big": "", "h": "", "missing": ""} {
		number, ok := o.Lookup(key).Decimal()
		if ok != (want != "") || ok && number.String() != want {
			t.Errorf("%s reads as %s (%v), want %q", key, number, ok, want)
		}
	}
}

func TestD02_ArithmeticIsExact(t *testing.T) {
	t.Parallel()
	tenth, fifth := decimal(t, "0.1"), decimal(t, "0.2")
	if got := tenth.Add(fifth); got.Cmp(decimal(t, "0.3")) != 0 || got.String() != "0.3" {
		t.Errorf("0.1 + 0.2 = %s", got)
	}
	large, small := decimal(t, "1e100"), decimal(t, "1e-100")
	if got := large.Add(small).Sub(large); got.Cmp(small) != 0 {
		t.Errorf("1e100 + 1e-100 - 1e100 = %s", got)
	}
	var total Decimal
	for range 1000 {
		total = total.Add(decimal(t, "0.001"))
	}
	if total.String() != "1" {
		t.Errorf("a thousand thousandths are %s", total)
	}
	if got := decimal(t, "-0.005").Abs().String(); got != "0.005" {
		t.Errorf("|-0.005| = %s", got)
	}
}

// TestD02_CanonicalFormReadsBack: a canonical text reads as the same number and is its own canonical form.
func TestD02_CanonicalFormReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[+-]?[0-9]{1,45}(\.[0-9]{1,45})?([eE][+-]?[0-9]{1,3})?`).Draw(t, "text")
		checkDecimal(t, text)
	})
}

func checkDecimal(t interface{ Fatalf(string, ...any) }, text string) {
	d, ok := ReadDecimal(text)
	if !ok {
		return
	}
	canonical := d.String()
	if strings.ContainsAny(canonical, "eE+ ") || canonical == "-0" || strings.Contains(canonical, ".") && strings.HasSuffix(canonical, "0") {
		t.Fatalf("%q has the canonical form %q", text, canonical)
	}
	again, ok := ReadDecimal(canonical)
	if !ok || again.Cmp(d) != 0 || again.String() != canonical {
		t.Fatalf("%q is %q, which reads as %q (%v)", text, canonical, again, ok)
	}
	exact, ok := ExactDecimal(canonical)
	if !ok || exact.Cmp(d) != 0 {
		t.Fatalf("%q does not read back exactly", canonical)
	}
	if sum := d.Add(again).Sub(d); sum.Cmp(d) != 0 {
		t.Fatalf("%q + itself - itself = %q", text, sum)
	}
}

func FuzzDecimal(f *testing.F) {
	for _, text := range []string{"180", "-0", " 1e-100 ", "0x10", "1_000", "NaN", "99999999999999999999999999999999999999.5", "1e101", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkDecimal(t, text) })
}

func decimal(t *testing.T, text string) Decimal {
	t.Helper()
	d, ok := ReadDecimal(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return d
}

func mustObject(t *testing.T, text string) Object {
	t.Helper()
	o, err := ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}
