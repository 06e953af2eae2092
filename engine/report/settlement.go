// Package report turns an evaluation into what people and programs read: the
// checks table, the headline, the settlement and the sources of AC.
package report

import (
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
)

// Settings bound the wait for evidence (AC "Settlement waits for evidence").
type Settings struct {
	// RecheckInterval is SETTLEMENT_RECHECK_INTERVAL: how often a verdict that waits for a source is looked at again.
	RecheckInterval engine.Duration
	// MaxLag is SETTLEMENT_MAX_LAG: how long after the window a source is waited for.
	MaxLag engine.Duration
}

// DefaultSettings are 15 minutes and 48 hours.
func DefaultSettings() Settings {
	return Settings{RecheckInterval: 15 * engine.Minute, MaxLag: 48 * engine.Hour}
}

// Settlement says whether a verdict is final, and what it waits for if not.
type Settlement struct {
	Settled     bool            `json:"-"`
	SettlesAt   engine.Instant  `json:"settles_at"`
	NextCheckAt *engine.Instant `json:"next_check_at"`
	// WaitingOn are the sources behind the window of a pending verdict;
	// StaleSources those still behind when the wait ran out.
	WaitingOn    []Lagging `json:"waiting_on"`
	StaleSources []Lagging `json:"stale_sources"`
}

// Lagging is a source whose watermark has not passed the window.
type Lagging struct {
	Source        string         `json:"source"`
	Watermark     engine.Instant `json:"watermark"`
	BehindSeconds int64          `json:"behind_seconds"`
}

// String is crm (2h 10m behind).
func (l Lagging) String() string {
	return fmt.Sprintf("%s (%s behind)", l.Source, engine.Duration(l.BehindSeconds))
}

func laggards(list []Lagging) string {
	texts := make([]string, len(list))
	for i, l := range list {
		texts[i] = l.String()
	}
	return strings.Join(texts, ", ")
}

// Settle decides by AC "Settlement window and pending": an early PASS settles
// at once (unless decision D28 holds it); anything else waits for the window
// to close and for the sources to catch up, for a bounded time.
func Settle(c *contract.Contract, a engine.Action, outcome engine.RawVerdict, sources map[string]engine.Source, now engine.Instant, settings Settings) Settlement {
	s := Settlement{SettlesAt: c.SettlesAt(a.RequestedAt), WaitingOn: []Lagging{}, StaleSources: []Lagging{}}
	if outcome == engine.Verified && !c.SettleAtClose {
		s.Settled = true
		return s
	}
	if now < s.SettlesAt {
		s.NextCheckAt = &s.SettlesAt
		return s
	}
	behind := lagging(c, sources, s.SettlesAt, now)
	deadline := s.SettlesAt.Add(settings.MaxLag)
	if len(behind) > 0 && now < deadline {
		next := min(now.Add(settings.RecheckInterval), deadline)
		s.NextCheckAt, s.WaitingOn = &next, behind
		return s
	}
	s.Settled, s.StaleSources = true, append(s.StaleSources, behind...)
	return s
}

// lagging are the sources named in the action block whose watermark is before
// the close of the window. A source without a watermark is taken as current.
func lagging(c *contract.Contract, sources map[string]engine.Source, settlesAt, now engine.Instant) []Lagging {
	var behind []Lagging
	for _, name := range c.NamedSources() {
		watermark := sources[name].Watermark
		if watermark != nil && *watermark < settlesAt {
			behind = append(behind, Lagging{name, *watermark, int64(now - *watermark)})
		}
	}
	return behind
}
