package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/countersign-otel/countersign/engine"
)

// MostClockSkew is the largest clock skew of a source: what is off by more is
// in another time zone, and an hour before a request much happens that is no effect of it.
const MostClockSkew = engine.Hour

// ErrSetting: an operator's word on a source that cannot be taken.
var ErrSetting = errors.New("cannot set the source")

// SourceSetting is an operator's word on a source; nil fields stay as they are.
type SourceSetting struct {
	Source string
	// Trust overrides the level of the connections of the source; UnknownTrust takes
	// that back (decision D10).
	Trust *engine.Trust
	// ClockSkew is from 0, which takes it back, to MostClockSkew (decision D29).
	ClockSkew *engine.Duration
	// Connection is whose Health it is (decision D11).
	Connection string
	Health     *engine.Health
}

// SourceState is a source with its connections.
type SourceState struct {
	engine.Source
	Connections []engine.Connection
}

// SourceSet is what a SourceSetting changed.
type SourceSet struct {
	Before, After SourceState
	// Woken is how many unsettled actions are judged again for it.
	Woken int
}

// ReachesVerdicts says whether anything changed that a verdict may depend on.
func (s SourceSet) ReachesVerdicts() bool {
	before, after := s.Before.Source, s.After.Source
	return before.Trust != after.Trust || before.ClockSkew != after.ClockSkew || before.Present != after.Present
}

// SetSource takes an operator's word on a source, and makes due at now every
// action with a due row whose contract reads the source, where that can change
// its verdict. Verdicts that are settled stay. Trust and clock skew are of the
// whole source, and kept with the facts API, whether facts are pushed or not.
func SetSource(ctx context.Context, tx Tx, tenant string, setting SourceSetting, now engine.Instant) (set SourceSet, err error) {
	if err := setting.check(); err != nil {
		return set, err
	}
	if set.Before, err = sourceOf(ctx, tx, tenant, setting.Source); err != nil {
		return set, err
	}
	if err := setting.takesBack(set.Before); err != nil {
		return set, err
	}
	if err := setting.store(ctx, tx, tenant, now); err != nil {
		return set, err
	}
	if set.After, err = sourceOf(ctx, tx, tenant, setting.Source); err != nil {
		return set, err
	}
	if err := setting.holds(set.After); err != nil {
		return set, err
	}
	if set.ReachesVerdicts() {
		set.Woken, err = wakeReaders(ctx, tx, tenant, setting.Source, now)
	}
	return set, err
}

func (s SourceSetting) check() error {
	if _, err := engine.Identifier(s.Source); err != nil {
		return fmt.Errorf("%w: %w", ErrSetting, err)
	}
	if s.Trust != nil && s.Source == engine.AgentSource {
		return fmt.Errorf("%w: %s is what agents tell of themselves, and stays self_reported whatever is set", ErrSetting, engine.AgentSource)
	}
	if s.ClockSkew != nil && (*s.ClockSkew < 0 || *s.ClockSkew > MostClockSkew) {
		return fmt.Errorf("%w: a clock skew is from 0s to %s, and %ds is not; what is off by more is in another time zone: have the source send its times with their offset",
			ErrSetting, MostClockSkew, int64(*s.ClockSkew))
	}
	if s.Connection == engine.FactsAPI {
		return nil
	}
	if err := engine.CheckOpaque("connection", s.Connection); err != nil {
		return fmt.Errorf("%w: %w", ErrSetting, err)
	}
	return nil
}

// takesBack fails where a setting only takes back what was never said: of a
// misspelt name the word would stand on, and the misspelt one be listed for ever.
func (s SourceSetting) takesBack(before SourceState) error {
	known := slices.ContainsFunc(before.Connections, func(c engine.Connection) bool { return c.Name == s.Connection })
	trust := s.Trust != nil && *s.Trust != engine.UnknownTrust
	skew := s.ClockSkew != nil && *s.ClockSkew != 0
	silenced := s.Health != nil && *s.Health == engine.NoHealth
	switch {
	case silenced && !known:
		return fmt.Errorf("%w: %s has no connection %s, so that no health of it can be taken back; countersign sources list shows its connections", ErrSetting, s.Source, inWords(s.Connection))
	case s.Health == nil && !trust && !skew && len(before.Connections) == 0:
		return fmt.Errorf("%w: nothing is known of %s, so that nothing can be taken back; countersign sources list shows the sources", ErrSetting, s.Source)
	}
	return nil
}

func inWords(connection string) string {
	if connection == engine.FactsAPI {
		return "of pushed facts"
	}
	return strconv.Quote(connection)
}

func (s SourceSetting) store(ctx context.Context, tx Tx, tenant string, now engine.Instant) error {
	if s.Trust != nil || s.ClockSkew != nil {
		ofSource := ConnectionSetting{Source: s.Source, Name: engine.FactsAPI, Override: s.Trust, ClockSkew: s.ClockSkew}
		if err := tx.SetConnection(ctx, tenant, ofSource, now); err != nil {
			return err
		}
	}
	if s.Health == nil {
		return nil
	}
	return tx.SetConnection(ctx, tenant, ConnectionSetting{Source: s.Source, Name: s.Connection, Health: s.Health}, now)
}

// holds fails where another connection has an override or a clock skew of its
// own, as a program can set one: the lowest trust and the largest skew hold.
func (s SourceSetting) holds(now SourceState) error {
	for _, c := range now.Connections {
		switch {
		case c.Name == engine.FactsAPI:
		case s.Trust != nil && c.Override != engine.UnknownTrust && now.Override != *s.Trust:
			return fmt.Errorf("%w: the connection %q overrides its trust as %s, and the lower of two holds; have the program that set it take it back", ErrSetting, c.Name, c.Override)
		case s.ClockSkew != nil && c.ClockSkew > *s.ClockSkew:
			return fmt.Errorf("%w: the connection %q has a clock skew of %s, and the larger of two holds; have the program that set it take it back", ErrSetting, c.Name, c.ClockSkew)
		}
	}
	return nil
}

func sourceOf(ctx context.Context, tx Tx, tenant, source string) (state SourceState, err error) {
	all, err := tx.Connections(ctx, tenant)
	if err != nil {
		return state, err
	}
	for _, c := range all {
		if c.Source == source {
			state.Connections = append(state.Connections, c)
		}
	}
	state.Source = engine.Sources(state.Connections, nil)[source]
	state.Name = source
	return state, nil
}

// wakeReaders makes due what waits under contracts that read a source. Those
// that this program cannot read may.
func wakeReaders(ctx context.Context, tx Tx, tenant, source string, now engine.Instant) (int, error) {
	waiting, err := tx.DueContracts(ctx, tenant)
	if err != nil || len(waiting) == 0 {
		return 0, err
	}
	documents, err := tx.ContractVersions(ctx, waiting)
	if err != nil {
		return 0, err
	}
	var reading []ContractRef
	for _, d := range documents {
		if c, err := ParseDocument(d); err != nil || c.Reads(source) {
			reading = append(reading, ContractRef{d.ID, d.Version})
		}
	}
	if len(reading) == 0 {
		return 0, nil
	}
	return tx.WakeContracts(ctx, tenant, reading, now)
}
