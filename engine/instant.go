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

// ParseInstant reads an RFC 3339 time with any offset. A fraction of a second
// is floored (towards the past). It fails with ErrInstant outside 1970-9999.
func ParseInstant(text string) (Instant, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || (!isPlainTime(text) && !rfc3339.MatchString(text)) {
		return 0, fmt.Errorf("%w: %q is not an RFC 3339 time like 2026-09-28T10:42:00Z", ErrInstant, clip(text))
	}
	return InstantOf(t)
}

// isPlainTime knows 2026-09-28T10:42:00Z, the form of nearly all times, without the regular expression.
func isPlainTime(text string) bool {
	const form = "0000-00-00T00:00:00Z"
	if len(text) != len(form) {
		return false
	}
	for i := range len(form) {
		isDigit := text[i] >= '0' && text[i] <= '9'
		if form[i] == '0' && !isDigit || form[i] != '0' && text[i] != form[i] {
			return false
		}
	}
	return true
}

// InstantOf floors a time.Time to the second. It fails with ErrInstant outside 1970-9999.
func InstantOf(t time.Time) (Instant, error) {
	seconds := t.Unix() // floors: the nanosecond part is never negative
	if seconds < 0 || Instant(seconds) > MaxInstant {
		return 0, fmt.Errorf("%w: %s is outside the years 1970 to 9999", ErrInstant, t.UTC().Format(time.RFC3339))
	}
	return Instant(seconds), nil
}

// InstantOfNanos floors OTLP nanoseconds since 1970 to the second.
func InstantOfNanos(nanos uint64) Instant { return Instant(nanos / 1_000_000_000) }

// String prints the moment as 2026-09-28T10:42:00Z.
func (i Instant) String() string { return i.Time().Format(time.RFC3339) }

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
