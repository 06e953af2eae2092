package engine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Duration is a length of time in whole seconds (decision D22: the canonical form).
type Duration int64

// Units of a contract duration.
const (
	Second Duration = 1
	Minute          = 60 * Second
	Hour            = 60 * Minute
	Day             = 24 * Hour
	Week            = 7 * Day
)

// ErrDuration is wrapped by every error about a duration that does not parse.
var ErrDuration = errors.New("invalid duration")

// ParseDuration reads <n>m, <n>h, <n>d or <n>w with n from 1 to 9999 (AC "The action: block", decision D22).
func ParseDuration(text string) (Duration, error) {
	unit, ok := unitOf(text)
	if !ok {
		return 0, durationError(text)
	}
	digits := text[:len(text)-1]
	if len(digits) > 4 || strings.Trim(digits, "0123456789") != "" {
		return 0, durationError(text)
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 {
		return 0, durationError(text)
	}
	return Duration(n) * unit, nil
}

func unitOf(text string) (Duration, bool) {
	if text == "" {
		return 0, false
	}
	switch text[len(text)-1] {
	case 'm':
		return Minute, true
	case 'h':
		return Hour, true
	case 'd':
		return Day, true
	case 'w':
		return Week, true
	}
	return 0, false
}

func durationError(text string) error {
	return fmt.Errorf(`%w: %q; write <n>m, <n>h, <n>d or <n>w with n from 1 to 9999, like "15m"`, ErrDuration, clip(text))
}

// String prints the two largest non-zero units, without seconds from a minute up (decision D26): 2h 10m, 3d, 45s.
func (d Duration) String() string {
	if d <= 0 {
		return "0s"
	}
	if d < Minute {
		return strconv.FormatInt(int64(d), 10) + "s"
	}
	var parts []string
	for _, unit := range []struct {
		size Duration
		name string
	}{{Day, "d"}, {Hour, "h"}, {Minute, "m"}} {
		n := d / unit.size
		d %= unit.size
		if n > 0 && len(parts) < 2 {
			parts = append(parts, strconv.FormatInt(int64(n), 10)+unit.name)
		}
	}
	return strings.Join(parts, " ")
}
