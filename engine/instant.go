package engine

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Instant is a moment in UTC, in whole seconds since 1970-01-01T00:00:00Z
// (decision D1). Its range is years 1970 to 9999.
type Instant int64

// MaxInstant is 9999-12-31T23:59:59Z, the last representable moment.
const MaxInstant Instant = 253402300799

// ErrInstant is wrapped by every error about a moment that cannot be represented.
var ErrInstant = errors.New("invalid time")

// rfc3339 is the shape of RFC 3339 section 5.6. time.Parse also takes hours of
// one digit, a comma before the fraction, and offsets of a day.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// longYear begins a time whose year has more than four digits, as JavaScript
// writes one and RFC 3339 does not allow.
var longYear = regexp.MustCompile(`^\+?\d{5,}-\d{2}-\d{2}T`)

// beyond explains a moment after MaxInstant: no record is of such a year, but
// milliseconds that were taken for seconds make one.
const beyond = "is outside the years 1970 to 9999; were milliseconds taken for seconds?"

// ParseInstant reads an RFC 3339 time with any offset. A fraction of a second
// is floored (towards the past). It fails with ErrInstant outside 1970-9999.
func ParseInstant(text string) (Instant, error) {
	if i, ok := plainInstant(text); ok {
		return i, nil
	}
	if longYear.MatchString(text) {
		return 0, fmt.Errorf("%w: %q %s", ErrInstant, clip(text), beyond)
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || !rfc3339.MatchString(text) {
		return 0, fmt.Errorf("%w: %q is not an RFC 3339 time like 2026-09-28T10:42:00Z", ErrInstant, clip(text))
	}
	return InstantOf(t)
}

// plainInstant reads 2026-09-28T10:42:00Z, the form of nearly all times, where
// the moment exists and is in the range.
func plainInstant(text string) (Instant, bool) {
	const form = "0000-00-00T00:00:00Z"
	if len(text) != len(form) {
		return 0, false
	}
	var numbers [6]int
	at := 0
	for i := range len(form) {
		if form[i] != '0' {
			if text[i] != form[i] {
				return 0, false
			}
			at++
			continue
		}
		digit := text[i] - '0'
		if digit > 9 {
			return 0, false
		}
		numbers[at] = 10*numbers[at] + int(digit)
	}
	year, month, day := numbers[0], time.Month(numbers[1]), numbers[2]
	hour, minute, second := numbers[3], numbers[4], numbers[5]
	if year < 1970 || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	t := time.Date(year, month, day, hour, minute, second, 0, time.UTC)
	if t.Month() != month || t.Day() != day { // there is no such day
		return 0, false
	}
	return Instant(t.Unix()), true
}

// InstantOf floors a time.Time to the second. It fails with ErrInstant outside 1970-9999.
func InstantOf(t time.Time) (Instant, error) {
	seconds := t.Unix() // floors: the nanosecond part is never negative
	if Instant(seconds) > MaxInstant {
		return 0, fmt.Errorf("%w: %s %s", ErrInstant, t.UTC().Format(time.RFC3339), beyond)
	}
	if seconds < 0 {
		return 0, fmt.Errorf("%w: %s is outside the years 1970 to 9999", ErrInstant, t.UTC().Format(time.RFC3339))
	}
	return Instant(seconds), nil
}

// InstantOfNanos floors OTLP nanoseconds since 1970 to the second.
func InstantOfNanos(nanos uint64) Instant { return Instant(nanos / 1_000_000_000) }

// String prints the moment as 2026-09-28T10:42:00Z.
func (i Instant) String() string {
	var b [len("2026-09-28T10:42:00Z")]byte
	return string(i.AppendText(b[:0]))
}

// AppendText appends String.
func (i Instant) AppendText(b []byte) []byte { return i.Time().AppendFormat(b, time.RFC3339) }

// Time returns the moment as a UTC time.Time.
func (i Instant) Time() time.Time { return time.Unix(int64(i), 0).UTC() }

// Add returns the moment d later, saturating at the ends of the range.
func (i Instant) Add(d Duration) Instant { return clampInstant(int64(i) + int64(d)) }

// Sub returns the moment d earlier, saturating at the ends of the range.
func (i Instant) Sub(d Duration) Instant { return clampInstant(int64(i) - int64(d)) }

func clampInstant(seconds int64) Instant {
	return min(max(Instant(seconds), 0), MaxInstant)
}

// MarshalText prints the moment for JSON and YAML.
func (i Instant) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText reads what ParseInstant reads.
func (i *Instant) UnmarshalText(text []byte) error {
	parsed, err := ParseInstant(string(text))
	if err != nil {
		return err
	}
	*i = parsed
	return nil
}

// clip bounds hostile text that is repeated in an error.
func clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
