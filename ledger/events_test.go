package ledger

import (
	"errors"
	"testing"
)

func TestPositionsAreReadAsTheyArePrinted(t *testing.T) {
	t.Parallel()
	for _, p := range []Position{{}, {Seq: 42}, {Seq: 1 << 62, N: 17}} {
		if got, err := ParsePosition(p.String()); err != nil || got != p {
			t.Errorf("%s: %v %v", p, got, err)
		}
	}
	for _, text := range []string{"", "1", "1-", "-1-0", "1--1", "01-0", "1-00", "+1-0", " 1-0", "1-0 ", "9223372036854775808-0", "a-b", "1-0-0"} {
		if _, err := ParsePosition(text); !errors.Is(err, ErrPosition) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
