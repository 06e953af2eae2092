package ledgerexporter

import (
	"encoding/json"

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
	// kindWatermark is what a connection reports; kindRecord a whole record of which nothing could be made.
	kindWatermark kind = "watermark"
	kindRecord    kind = "record"
)

// item is one thing to write; kind says which field holds it. Items are many, so
// they point to what is large.
type item struct {
	kind    kind
	tenant  string
	action  *ledger.RecordRequest
	context *ledger.TraceContext
	fact    *engine.Fact
	// receivedNanos is when the fact's record was received; 0 when unknown.
	receivedNanos int64
	// refused says that the item was not written and will not be.
	refused bool
	link    engine.Link
	// linkSource is who says that the subjects are linked.
	linkSource string
	watermark  *record.Watermark
	path       path
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
	take := func(it item, reason string) {
		if reason != "" {
			s.refuse(&it, reason, reasonTexts[reason], t)
			return
		}
		items = append(items, it)
	}
	for i := range batch.Actions {
		a := &batch.Actions[i]
		it := item{kind: kindAction, action: &ledger.RecordRequest{
			Action: a.Action, StartedNanos: a.StartedNanos, Verify: true, // decision D15
		}}
		take(it, s.may(&it, a.Tenant, s.role == Recorder))
	}
	for i := range batch.Contexts {
		c := &batch.Contexts[i]
		it := item{kind: kindContext, context: &ledger.TraceContext{
			TraceID: c.TraceID, SpanID: c.SpanID, StartNanos: c.StartNanos, EndNanos: c.EndNanos,
			Agent: c.Agent, Session: c.Session,
		}}
		take(it, s.may(&it, c.Tenant, s.role == Recorder))
	}
	for i := range batch.Facts {
		take(s.fact(&batch.Facts[i]))
	}
	for i := range batch.Links {
		take(s.link(&batch.Links[i]))
	}
	for i := range batch.Failures {
		s.failure(&batch.Failures[i], t)
	}
	for i := range batch.Rejected {
		s.unreadable(&batch.Rejected[i], t)
	}
	return items
}

// report is a watermark that a connection reported, and this exporter may write.
type report struct {
	observed
	at            engine.Instant
	receivedNanos int64
}

// reports are those of a batch, none of them ahead of the clock: a watermark
// that names a time to come would end the waiting for facts that have not happened yet.
func (s *sorter) reports(batch *record.Batch, now engine.Instant, t *tally) []report {
	var reports []report
	for i := range batch.Watermarks {
		w := &batch.Watermarks[i]
		it := item{kind: kindWatermark, watermark: w, path: s.path(w.Connection, w.Trust)}
		reason := s.may(&it, w.Tenant, s.role == Evidence)
		if reason == "" && !s.sources[w.Source] {
			reason = reasonSource
		}
		if reason != "" {
			s.refuse(&it, reason, reasonTexts[reason], t)
			continue
		}
		latest := now
		if w.ReceivedNanos > 0 {
			latest = min(latest, engine.InstantOfNanos(uint64(w.ReceivedNanos)))
		}
		if w.At > latest {
			t.take(kindWatermark, outcomeCapped, 1)
		} else {
			t.take(kindWatermark, outcomeReported, 1)
		}
		reports = append(reports, report{observed{it.tenant, w.Source, it.path}, min(w.At, latest), w.ReceivedNanos})
	}
	return reports
}

// reasonTexts say what an operator has to know of a reason that is found here.
var reasonTexts = map[string]string{
	reasonRole:   "this exporter's role does not write it",
	reasonSource: "the source is none of this exporter's sources",
	reasonTenant: "the tenant is none of this exporter's tenants",
}

func kindOf(key string) kind {
	switch key {
	case record.FactsKey:
		return kindFact
	case record.LinksKey:
		return kindLink
	case record.WatermarksKey:
		return kindWatermark
	case record.FailuresKey:
		return kindRecord
	case record.ContextKey:
		return kindContext
	}
	return kindAction
}

// fact: agents speak through a recorder and for themselves alone; systems of
// record speak through an exporter that was given their source.
func (s *sorter) fact(f *record.Fact) (it item, reason string) {
	ofAgent := f.Fact.Source == engine.AgentSource
	it = item{kind: kindFact, fact: &f.Fact, receivedNanos: f.ReceivedNanos, path: s.path(f.Connection, f.Trust)}
	reason = s.may(&it, f.Tenant, ofAgent == (s.role == Recorder))
	if reason == "" && !ofAgent && !s.sources[f.Fact.Source] {
		reason = reasonSource
	}
	return it, reason
}

// link: a link brings the facts of another subject before a verdict, so only a
// source of this exporter may make one.
func (s *sorter) link(l *record.Link) (it item, reason string) {
	it = item{kind: kindLink, link: l.Link, linkSource: l.Source, path: s.path(l.Connection, l.Trust)}
	reason = s.may(&it, l.Tenant, s.role == Evidence)
	if reason == "" && !s.sources[l.Source] {
		reason = reasonSource
	}
	return it, reason
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

// may says whose the item is, and why it may not be written.
func (s *sorter) may(it *item, tenant string, roleFits bool) (reason string) {
	it.tenant = s.tenant
	if !roleFits {
		return reasonRole
	}
	if tenant == "" {
		return ""
	}
	if !s.tenants[tenant] && !s.tenants[anyTenant] || engine.CheckOpaque("tenant", tenant) != nil {
		return reasonTenant
	}
	it.tenant = tenant
	return ""
}

// refuse counts an item that is not written, and of evidence keeps what it is.
// What may not be written at all is kept for the exporter's own tenant.
func (s *sorter) refuse(it *item, reason, text string, t *tally) {
	it.refused = true
	t.reject(it.kind, reason)
	if s.role == Evidence && it.kind.isEvidence() {
		t.keep(it.tenant, it.rejected(reason, text))
	}
}

func (k kind) isEvidence() bool { return k != kindAction && k != kindContext }

// failure keeps what the processor could not make. Agents must not fill a table: a recorder only counts.
func (s *sorter) failure(f *record.Failure, t *tally) {
	it := item{path: s.path(f.Connection, engine.UnknownTrust)}
	if reason := s.may(&it, f.Tenant, s.role == Evidence); reason != "" {
		t.reject(kindRecord, reason)
		if s.role != Evidence {
			return
		}
	} else {
		t.reject(kindOfFailure(f), reasonOfFailure(f))
	}
	t.keep(it.tenant, ledger.RejectedFact{
		Kind: string(kindOfFailure(f)), Source: f.Source, Connection: it.path.connection, Reason: reasonOfFailure(f), Error: f.Error, Item: f.Item,
	})
}

func reasonOfFailure(f *record.Failure) string {
	switch f.Reason {
	case reasonUnreadable, reasonNoTrust:
		return f.Reason
	}
	return reasonRule
}

func kindOfFailure(f *record.Failure) kind {
	switch k := kind(f.Kind); k {
	case kindFact, kindLink, kindWatermark:
		return k
	}
	return kindRecord
}

func (s *sorter) unreadable(r *record.Rejected, t *tally) {
	k := kindOf(r.Key)
	t.reject(k, reasonUnreadable)
	if s.role == Evidence && k.isEvidence() {
		t.keep(s.tenant, ledger.RejectedFact{
			Kind: string(k), Source: r.Source, Connection: s.connection, Reason: reasonUnreadable, Error: r.Error(), RawRef: r.RawRef, Item: r.Item,
		})
	}
}

// rejected is what is kept of a fact, a link or a watermark.
func (it *item) rejected(reason, text string) ledger.RejectedFact {
	r := ledger.RejectedFact{Kind: string(it.kind), Connection: it.path.connection, Reason: reason, Error: text}
	switch it.kind {
	case kindWatermark:
		r.Source = it.watermark.Source
		r.Item = jsonText(sentWatermark{r.Source, it.watermark.At})
		return r
	case kindLink:
		r.Source, r.SubjectID = it.linkSource, it.link.SubjectID
		r.Item = jsonText(it.link)
		return r
	}
	r.Source, r.RawRef, r.SubjectID = it.fact.Source, it.fact.RawRef, it.fact.SubjectID
	r.Item = jsonText(sentFact{
		RawRef: it.fact.RawRef, Source: it.fact.Source, FactType: it.fact.Type, SubjectID: it.fact.SubjectID,
		SubjectKind: it.fact.SubjectKind, OccurredAt: it.fact.OccurredAt, Attributes: it.fact.Attributes,
	})
	return r
}

type sentWatermark struct {
	Source    string         `json:"source"`
	Watermark engine.Instant `json:"watermark"`
}

// sentFact is a fact as POST /v1/facts takes it.
type sentFact struct {
	RawRef      string         `json:"raw_ref,omitempty"`
	Source      string         `json:"source"`
	FactType    string         `json:"fact_type"`
	SubjectID   string         `json:"subject_id"`
	SubjectKind string         `json:"subject_kind"`
	OccurredAt  engine.Instant `json:"occurred_at"`
	Attributes  engine.Object  `json:"attributes"`
}

// jsonText says so where something cannot be written as JSON.
func jsonText(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
