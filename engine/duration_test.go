package engine

import (
	"errors"
	"fmt"
	"testing"
)

// TestD22_Durations pins decision D22: n from 1 to 9999, and the unit.
func TestD22_Durations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Duration{
		"1m": 60, "60m": 3600, "1h": 3600, "24h": 86400, "1d": 86400, "1w": 604800, "9999w": 9999 * 604800, "0001m": 60,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s is %d s (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "m", "15", "0m", "0000h", "10000m", "00001m", "-1h", "+1h", "1.5h", "1 h", " 1h", "1h ", "1h30m", "1s", "1M", "1H", "1y", "１h", "1_0m",
	} {
		_, err := ParseDuration(text)
		want := fmt.Sprintf(`invalid duration: %q; write <n>m, <n>h, <n>d or <n>w with n from 1 to 9999, like "15m"`, text)
		if !errors.Is(err, ErrDuration) || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestD26_ALagPrintsItsTwoLargestUnits pins decision D26.
func TestD26_ALagPrintsItsTwoLargestUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[Duration]string{
		0: "0s", -5: "0s", 45: "45s", 59: "59s", 60: "1m", 61: "1m", 2*Hour + 10*Minute: "2h 10m", 2*Hour + 10*Minute + 59: "2h 10m",
		3 * Day: "3d", 3*Day + 59*Minute: "3d 59m", 3*Day + 2*Hour + 5*Minute: "3d 2h", 15 * Minute: "15m", Week: "7d",
	} {
		if got := d.String(); got != want {
			t.Errorf("%d s print as %q, want %q", d, got, want)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, text := range []string{"15m", "0m", "9999w", "10000d", "1h30m", "", "m", "-1h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			if !errors.Is(err, ErrDuration) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		unit, _ := unitOf(text)
		if d < Minute || d > 9999*Week || d%unit != 0 {
			t.Fatalf("%q is %d s", text, d)
		}
		if back := fmt.Sprintf("%0*d%c", len(text)-1, d/unit, text[len(text)-1]); back != text {
			t.Fatalf("%q reads back as %q", text, back)
		}
	})
}
