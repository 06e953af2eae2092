package engine

import (
	"testing"

	"pgregory.net/rapid"
)

// TestD04_Equality pins decision D4.
func TestD04_Equality(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, a, b string
		equal      bool
	}{
		{"text", `"paid"`, `"paid"`, true},
		{"ASCII letters fold", `"PAID"`, `"paid"`, true},
		{"the Kelvin sign is no k", `"\u212a"`, `"k"`, false},
		{"no Unicode folding", `"É"`, `"é"`, false},
		{"no Turkish i", `"İ"`, `"i"`, false},
		{"sharp s is no ss", `"ß"`, `"ss"`, false},
		{"composed is not decomposed", `"\u00e9"`, `"e\u0301"`, false},
		{"spaces count", `"paid "`, `"paid"`, false},
		{"numbers", `180`, `180.0`, true},
		{"number and text", `180`, `"180.00"`, true},
		{"two texts that read as numbers", `"1e2"`, `" +100.0 "`, true},
		{"exponents", `1E2`, `100`, true},
		{"zero has no sign", `-0`, `0.0`, true},
		{"not quite", `0.1`, `0.10000000000000000001`, false},
		{"number and a text that is none", `180`, `"180 EUR"`, false},
		{"beyond the limits compares as text", `1e400`, `"1E400"`, true},
		{"beyond the limits is no number", `10e399`, `1e400`, false},
		{"true", `true`, `"TRUE"`, true},
		{"false", `false`, `"false"`, true},
		{"true is not one", `true`, `1`, false},
		{"empty texts", `""`, `""`, true},
		{"null equals nothing", `null`, `null`, false},
		{"null is no text", `null`, `"null"`, false},
		{"a list equals nothing", `["a"]`, `["a"]`, false},
		{"a mapping equals nothing", `{"a":1}`, `{"a":1}`, false},
		{"empty text is not null", `""`, `null`, false},
	} {
		a, b := one(t, c.a), one(t, c.b)
		if got := a.Equal(b); got != c.equal || b.Equal(a) != got {
			t.Errorf("%s: %s = %s is %v", c.name, c.a, c.b, got)
		}
		if scalar(a) && scalar(b) && (a.Canonicalized() == b.Canonicalized()) != c.equal {
			t.Errorf("%s: canonicalized %q and %q", c.name, a.Canonicalized(), b.Canonicalized())
		}
	}
	if (Value{}).Equal(Value{}) {
		t.Error("absent equals absent")
	}
}

func scalar(v Value) bool {
	_, ok := v.Scalar()
	return ok
}

func one(t *testing.T, text string) Value {
	t.Helper()
	return mustObject(t, `{"v":`+text+`}`).Lookup("v")
}

// TestD04_EqualAndCanonicalizedAgree: two values are equal exactly when their canonicalized texts are.
func TestD04_EqualAndCanonicalizedAgree(t *testing.T) {
	t.Parallel()
	texts := rapid.OneOf(
		rapid.StringMatching(`[+-]?[0-9]{1,3}(\.[0-9]{0,2})?(e[0-9])?`),
		rapid.StringMatching(`[a-cA-C ]{0,3}`),
		rapid.SampledFrom([]string{"true", "TRUE", "\u212a", "k", "1e101", "1E101", "-0", "0", ""}),
	)
	rapid.Check(t, func(t *rapid.T) {
		a, b := StringValue(texts.Draw(t, "a")), StringValue(texts.Draw(t, "b"))
		if a.Equal(b) != (a.Canonicalized() == b.Canonicalized()) {
			t.Fatalf("%q = %q is %v, canonicalized %q and %q", a.text, b.text, a.Equal(b), a.Canonicalized(), b.Canonicalized())
		}
	})
}
