package engine

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestD01_InstantsAreWholeSecondsInUTC pins decision D1.
func TestD01_InstantsAreWholeSecondsInUTC(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-09-28T10:42:00Z":           "2026-09-28T10:42:00Z",
		"2026-09-28T12:42:00+02:00":      "2026-09-28T10:42:00Z",
		"2026-09-28T00:12:00-10:30":      "2026-09-28T10:42:00Z",
		"2026-09-28T10:42:00.999999999Z": "2026-09-28T10:42:00Z",
		"2026-09-28T10:42:00.5+01:00":    "2026-09-28T09:42:00Z",
		"1970-01-01T00:00:00Z":           "1970-01-01T00:00:00Z",
		"1970-01-01T00:00:00.1Z":         "1970-01-01T00:00:00Z",
		"9999-12-31T23:59:59.9Z":         "9999-12-31T23:59:59Z",
		"2024-02-29T00:00:00Z":           "2024-02-29T00:00:00Z",
	} {
		got, err := ParseInstant(text)
		if err != nil || got.String() != want {
			t.Errorf("%s reads as %s (%v), want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                          `invalid time: "" is not an RFC 3339 time like 2026-09-28T10:42:00Z`,
		"2026-09-28":                `invalid time: "2026-09-28" is not an RFC 3339 time like 2026-09-28T10:42:00Z`,
		"2026-09-28 10:42:00Z":      `invalid time: "2026-09-28 10:42:00Z" is not an RFC 3339 time like 2026-09-28T10:42:00Z`,
		"2026-09-28T10:42:00":       `invalid time: "2026-09-28T10:42:00" is not an RFC 3339 time like 2026-09-28T10:42:00Z`,
		"2026-09-28T5:42:00Z":       `invalid time: "2026-09-28T5:42:00Z" is not an RFC 3339 time like 2026-09-28T10:42:00Z`,
		"2026-09-28T10:42:00,5Z":    `invalid time: "2026-09-28T10:42:00,5Z" is not an RFC 3339 time like 2026-09-28T10:42:00Z`,
		"2026-09-28T10:42:00+24:00": `invalid time: "2026-09-28T10:42:00+24:00" is not an RFC 3339 time like 2026-09-28T10:42:00Z`,
		"2026-02-30T10:42:00Z":      `invalid time: "2026-02-30T10:42:00Z" is not an RFC 3339 time like 2026-09-28T10:42:00Z`,
		"1969-12-31T23:59:59.9Z":    `invalid time: 1969-12-31T23:59:59Z is outside the years 1970 to 9999`,
		"1970-01-01T00:00:00+00:01": `invalid time: 1969-12-31T23:59:00Z is outside the years 1970 to 9999`,
		"9999-12-31T23:59:59-00:01": `invalid time: 10000-01-01T00:00:59Z is outside the years 1970 to 9999; were milliseconds taken for seconds?`,
		"+058710-05-21T04:00:00Z":   `invalid time: "+058710-05-21T04:00:00Z" is outside the years 1970 to 9999; were milliseconds taken for seconds?`,
		"58710-05-21T04:00:00.000Z": `invalid time: "58710-05-21T04:00:00.000Z" is outside the years 1970 to 9999; were milliseconds taken for seconds?`,
		"58710-05-21 04:00:00":      `invalid time: "58710-05-21 04:00:00" is not an RFC 3339 time like 2026-09-28T10:42:00Z`,
	} {
		_, err := ParseInstant(text)
		if !errors.Is(err, ErrInstant) || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// TestPlainTimesReadAsAll: the short way takes no time that the long way has not, and no other moment.
func TestPlainTimesReadAsAll(t *testing.T) {
	t.Parallel()
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`(19[67][0-9]|20[0-9][0-9]|9999|[0-9]{4})-([01][0-9])-([0-3][0-9])T([012][0-9]):([0-6][0-9]):([0-6][0-9])[Zz]`).Draw(t, "time")
		got, ok := plainInstant(text)
		at, err := time.Parse(time.RFC3339Nano, text)
		if !ok {
			return
		}
		read++
		if want, wantErr := InstantOf(at); err != nil || wantErr != nil || got != want {
			t.Fatalf("%s reads as %d, want %d, %v, %v", text, got, want, err, wantErr)
		}
	})
	if read == 0 {
		t.Error("no time was read the short way")
	}
}

// TestD01_MillisecondsForSeconds: a moment that lies beyond the range by its unit is refused, one that is merely to come is not.
func TestD01_MillisecondsForSeconds(t *testing.T) {
	t.Parallel()
	const milliseconds = 1_790_592_120_000
	_, err := InstantOf(time.Unix(milliseconds, 0))
	if want := "invalid time: 58711-08-10T20:00:00Z is outside the years 1970 to 9999; were milliseconds taken for seconds?"; !errors.Is(err, ErrInstant) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if got, err := InstantOf(time.Unix(int64(MaxInstant), 0)); got != MaxInstant || err != nil {
		t.Errorf("the last moment reads as %d, %v", got, err)
	}
	if _, err := InstantOf(time.Unix(int64(MaxInstant)+1, 0)); !errors.Is(err, ErrInstant) {
		t.Errorf("the moment after the last one: %v", err)
	}
}

func TestD01_NanosecondsAreFloored(t *testing.T) {
	t.Parallel()
	for nanos, want := range map[uint64]Instant{0: 0, 999_999_999: 0, 1_000_000_000: 1, 1_790_592_120_999_999_999: 1_790_592_120} {
		if got := InstantOfNanos(nanos); got != want {
			t.Errorf("%d ns is %d, want %d", nanos, got, want)
		}
	}
	if got, err := InstantOf(time.Unix(5, 999)); got != 5 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

func TestInstantSaturates(t *testing.T) {
	t.Parallel()
	if got := MaxInstant.Add(Week); got != MaxInstant {
		t.Errorf("the end plus a week is %d", got)
	}
	if got := Instant(5).Sub(Minute); got != 0 {
		t.Errorf("five seconds minus a minute is %d", got)
	}
}
