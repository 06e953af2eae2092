package engine

import (
	"errors"
	"strings"
	"testing"
)

// TestD06_IdentifiersAreLowercasedAndMatched pins decision D6.
func TestD06_IdentifiersAreLowercasedAndMatched(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("a", MaxIdentifier)
	for text, want := range map[string]string{
		"refund_created": "refund_created", "Refund_Created": "refund_created", "A": "a", "a9_.:-": "a9_.:-", longest: longest,
	} {
		if got, err := Identifier(text); err != nil || got != want {
			t.Errorf("%q is %q (%v), want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "9a", "_a", "-a", ".a", "a b", "a/b", "a@b", "é", "\u212a", "a\u212a", "a\n", "a\x00", longest + "a"} {
		_, err := Identifier(text)
		if !errors.Is(err, ErrIdentifier) {
			t.Errorf("%q is taken (%v)", text, err)
		}
	}
	_, err := Identifier(strings.Repeat("x y", 100))
	if want := `invalid identifier "` + strings.Repeat("x y", 26) + `x ...": write a letter, then letters, digits or _ . : -, at most 64 in all`; err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

// TestD06_OpaqueIdsKeepTheirBytes pins what may be an opaque id.
func TestD06_OpaqueIdsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a", "Order 10231", "ORDER", "日本/№ 5", " ", strings.Repeat("x", MaxOpaque)} {
		if err := CheckOpaque("subject_id", text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"":                                     "invalid id: subject_id is empty; 1 to 512 bytes are needed",
		strings.Repeat("x", MaxOpaque+1):       "invalid id: subject_id has 513 bytes; at most 512 are allowed",
		strings.Repeat("é", MaxOpaque/2) + "x": "invalid id: subject_id has 513 bytes; at most 512 are allowed",
		"a\xffb":                               "invalid id: subject_id is not valid UTF-8",
		"a\nb":                                 "invalid id: subject_id has the control character U+000A",
		"a\x00":                                "invalid id: subject_id has the control character U+0000",
		"\u0085":                               "invalid id: subject_id has the control character U+0085",
		"\x7f":                                 "invalid id: subject_id has the control character U+007F",
	} {
		err := CheckOpaque("subject_id", text)
		if !errors.Is(err, ErrOpaque) || err.Error() != want {
			t.Errorf("%.20q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func FuzzIdentifier(f *testing.F) {
	for _, text := range []string{"refund_created", "A.b:c-d", "9", "", "\u212a", "a\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := Identifier(text)
		if err != nil {
			if !errors.Is(err, ErrIdentifier) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if again, err := Identifier(id); err != nil || again != id {
			t.Fatalf("%q is %q, which is %q (%v)", text, id, again, err)
		}
		if len(id) != len(text) || !strings.EqualFold(id, text) || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789_.:-") != "" {
			t.Fatalf("%q is %q", text, id)
		}
	})
}
