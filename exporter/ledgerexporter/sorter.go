package ledgerexporter

import (
	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/ledger"
)

// kind says what an item is.
type kind string

const (
	kindAction  kind = "action"
	kindFact    kind = "fact"
	kindContext kind = "trace_context"
	kindLink    kind = "link"
)

// item is one thing to write; kind says which field holds it.
type item struct {
	kind    kind
	tenant  string
	action  ledger.RecordRequest
	context ledger.TraceContext
	fact    engine.Fact
	link    engine.Link
	path    path
}

// path is how a fact or a link came.
type path struct {
	connection string
	trust      engine.Trust
}

// sorter decides what of a batch this exporter may write.
type sorter struct {
	role       Role
	sources    map[string]bool
	trust      engine.Trust
	connection string
	tenant     string
	tenants    map[string]bool
}

func newSorter(config *Config) sorter {
	s := sorter{
		role: config.Role, connection: config.Connection, tenant: config.Tenant,
		sources: map[string]bool{}, tenants: map[string]bool{config.Tenant: true},
	}
	for _, source := range config.Sources {
		s.sources[engine.Fold(source)] = true
	}
	for _, tenant := range config.Tenants {
		s.tenants[tenant] = true
	}
	// Validate has read it; of a recorder it is never used.
	s.trust, _ = engine.ParseTrust(config.Trust)
	return s
}

func (s *sorter) sort(batch *record.Batch, t *tally) []item {
	items := make([]item, 0, len(batch.Actions)+len(batch.Facts)+len(batch.Links)+len(batch.Contexts))
	for i := range batch.Actions {
		a := &batch.Actions[i]
		if tenant, ok := s.may(kindAction, a.Tenant, s.role == Recorder, t); ok {
			items = append(items, item{kind: kindAction, tenant: tenant, action: ledger.RecordRequest{
				Action: a.Action, StartedNanos: a.StartedNanos, Verify: true, // decision D15
			}})
		}
	}
	for i := range batch.Contexts {
		c := &batch.Contexts[i]
		if tenant, ok := s.may(kindContext, c.Tenant, s.role == Recorder, t); ok {
			items = append(items, item{kind: kindContext, tenant: tenant, context: ledger.TraceContext{
				TraceID: c.TraceID, SpanID: c.SpanID, StartNanos: c.StartNanos, EndNanos: c.EndNanos,
				Agent: c.Agent, Session: c.Session,
			}})
		}
	}
	for i := range batch.Facts {
		if made, ok := s.fact(&batch.Facts[i], t); ok {
			items = append(items, made)
		}
	}
	for i := range batch.Links {
		if made, ok := s.link(&batch.Links[i], t); ok {
			items = append(items, made)
		}
	}
	for _, rejected := range batch.Rejected {
		t.reject(kindOf(rejected.Key), reasonUnreadable)
	}
	return items
}

func kindOf(key string) kind {
	switch key {
	case record.FactsKey:
		return kindFact
	case record.LinksKey:
		return kindLink
	case record.ContextKey:
		return kindContext
	}
	return kindAction
}

// fact: agents speak through a recorder and for themselves alone; systems of
// record speak through an exporter that was given their source.
func (s *sorter) fact(f *record.Fact, t *tally) (item, bool) {
	ofAgent := f.Fact.Source == engine.AgentSource
	tenant, ok := s.may(kindFact, f.Tenant, ofAgent == (s.role == Recorder), t)
	if !ok {
		return item{}, false
	}
	if !ofAgent && !s.sources[f.Fact.Source] {
		t.reject(kindFact, reasonSource)
		return item{}, false
	}
	return item{kind: kindFact, tenant: tenant, fact: f.Fact, path: s.path(f.Connection, f.Trust)}, true
}

// link: a link brings the facts of another subject before a verdict, so only a
// source of this exporter may make one.
func (s *sorter) link(l *record.Link, t *tally) (item, bool) {
	tenant, ok := s.may(kindLink, l.Tenant, s.role == Evidence, t)
	if !ok {
		return item{}, false
	}
	if !s.sources[l.Source] {
		t.reject(kindLink, reasonSource)
		return item{}, false
	}
	return item{kind: kindLink, tenant: tenant, link: l.Link, path: s.path(l.Connection, l.Trust)}, true
}

// path is what an item says of how it came, with at most the trust that this
// exporter may give (decision D10).
func (s *sorter) path(connection string, trust engine.Trust) path {
	if connection == "" {
		connection = s.connection
	}
	switch {
	case s.role == Recorder:
		trust = engine.SelfReported
	case trust == engine.UnknownTrust:
		trust = min(engine.Shared, s.trust)
	default:
		trust = min(trust, s.trust)
	}
	return path{connection, trust}
}

// may checks role and tenant, and returns whose the item is.
func (s *sorter) may(k kind, tenant string, roleFits bool, t *tally) (string, bool) {
	if !roleFits {
		t.reject(k, reasonRole)
		return "", false
	}
	if tenant == "" {
		return s.tenant, true
	}
	if !s.tenants[tenant] && !s.tenants[anyTenant] {
		t.reject(k, reasonTenant)
		return "", false
	}
	return tenant, true
}
