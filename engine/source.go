package engine

// Health is what a connection last said about itself.
type Health string

// States of a connection. The facts API is a connection without a health of its own.
const (
	NoHealth Health = ""
	Healthy  Health = "healthy"
	Syncing  Health = "syncing"
	Failing  Health = "error"
)

// FactsAPI names the connection of facts pushed with an evidence credential.
const FactsAPI = ""

// Connection is one provider of one source: the facts API or a connector.
type Connection struct {
	Source string
	// Name tells connections of one source apart; FactsAPI for pushed facts.
	Name   string
	Health Health
	// Trust is the connection's own level; Override is the operator's, UnknownTrust for none.
	Trust, Override Trust
	// Delivered says that at least one fact ever came over this connection.
	Delivered bool
	// Watermark is the moment up to which everything has been sent; nil for none (decision D12).
	Watermark *Instant
	// ClockSkew is how much too early the source may stamp an effect (decision D29).
	ClockSkew Duration
}

// Source is what the connections of one source amount to at verification time.
type Source struct {
	Name  string
	Trust Trust
	// Override is the operator's word on Trust; UnknownTrust for none.
	Override Trust
	// Present: a source that is absent makes missing_fact_source hold (decision D11).
	Present   bool
	Watermark *Instant
	ClockSkew Duration
}

// Sources merges connections by source (decisions D10, D11). An unavailable
// source could not be read for this verification and is absent. Where several
// connections provide one source, the lowest trust, the earliest watermark and
// the largest skew hold, because any of them may have delivered the fact that
// decides.
func Sources(connections []Connection, unavailable []string) map[string]Source {
	byName := map[string][]Connection{}
	for _, c := range connections {
		byName[c.Source] = append(byName[c.Source], c)
	}
	merged := make(map[string]Source, len(byName))
	for name, providers := range byName {
		merged[name] = mergeConnections(name, providers)
	}
	for _, name := range unavailable {
		if s, ok := merged[name]; ok {
			s.Present = false
			merged[name] = s
		}
	}
	return merged
}

func mergeConnections(name string, providers []Connection) Source {
	s := Source{Name: name, Present: present(providers)}
	for _, c := range providers {
		s.Trust = lowerTrust(s.Trust, c.Trust)
		s.Override = lowerTrust(s.Override, c.Override)
		s.ClockSkew = max(s.ClockSkew, c.ClockSkew)
		if c.Watermark != nil && (s.Watermark == nil || *c.Watermark < *s.Watermark) {
			s.Watermark = c.Watermark
		}
	}
	if name == AgentSource {
		s.Trust, s.Override = SelfReported, UnknownTrust
	}
	if s.Override != UnknownTrust {
		s.Trust = s.Override
	}
	return s
}

// lowerTrust is the lower of two levels, where UnknownTrust says nothing.
func lowerTrust(a, b Trust) Trust {
	if a == UnknownTrust {
		return b
	}
	if b == UnknownTrust {
		return a
	}
	return min(a, b)
}

// present is decision D11 without the unavailable list.
func present(providers []Connection) bool {
	delivered, failing, providing := false, false, 0
	for _, c := range providers {
		if c.Health == Healthy || c.Health == Syncing {
			return true
		}
		delivered = delivered || c.Delivered
		failing = failing || c.Health == Failing
		if c.provides() {
			providing++
		}
	}
	onlyOneFails := failing && providing == 1
	return delivered && !onlyOneFails
}

// provides is false of a connection that is there only because an operator set
// the trust or the clock skew of its source.
func (c *Connection) provides() bool {
	return c.Health != NoHealth || c.Delivered || c.Watermark != nil
}
