package engine

import (
	"errors"
	"fmt"
)

// Trust says how far the path by which a source's facts arrive can be
// believed (decision D10). Higher is better; the zero Trust is unknown.
type Trust uint8

// Levels of trust.
const (
	UnknownTrust Trust = iota
	// SelfReported: it came from the agent's side.
	SelfReported
	// Shared: the operator's own pipeline pushed it with an evidence credential.
	Shared
	// Independent: it was read from the system of record itself.
	Independent
)

// ErrTrust is wrapped by the error about an unknown level of trust.
var ErrTrust = errors.New("invalid trust level")

// AgentSource is the source of facts made from agent spans (AC
// "OpenTelemetry"). It is always self-reported, whatever a span or a setting
// says (decision D10).
const AgentSource = "otel"

// ParseTrust reads self_reported, shared or independent.
func ParseTrust(text string) (Trust, error) {
	for t := SelfReported; t <= Independent; t++ {
		if t.String() == text {
			return t, nil
		}
	}
	return UnknownTrust, fmt.Errorf("%w %q: write self_reported, shared or independent", ErrTrust, clip(text))
}

// String is the specification's word; empty for UnknownTrust.
func (t Trust) String() string {
	switch t {
	case SelfReported:
		return "self_reported"
	case Shared:
		return "shared"
	case Independent:
		return "independent"
	}
	return ""
}

// MarshalText prints the specification's word.
func (t Trust) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what ParseTrust reads, and empty as UnknownTrust.
func (t *Trust) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*t = UnknownTrust
		return nil
	}
	parsed, err := ParseTrust(string(text))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}
