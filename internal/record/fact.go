package record

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/countersign-otel/countersign/engine"
)

// Fact is a fact on its way to a ledger.
type Fact struct {
	// Tenant is empty where the processor was given none; the exporter's own holds then.
	Tenant string
	// Connection is the provider's name; engine.FactsAPI for none.
	Connection string
	// Trust is what the path so far has earned; engine.UnknownTrust says nothing.
	Trust engine.Trust
	Fact  engine.Fact
	// ReceivedNanos is when a receiver took the log record that carries the
	// fact, in OTLP nanoseconds; 0 when unknown. It is read, and never written.
	ReceivedNanos int64
}

// AppendFact adds one fact to those that a span or log record carries.
func AppendFact(attributes pcommon.Map, f Fact) {
	m := appendMap(attributes, FactsKey)
	m.EnsureCapacity(f.fields())
	putText(m, tenantField, f.Tenant)
	putText(m, rawRefField, f.Fact.RawRef)
	putText(m, sourceField, f.Fact.Source)
	putText(m, factTypeField, f.Fact.Type)
	putText(m, subjectIDField, f.Fact.SubjectID)
	putText(m, subjectKindField, f.Fact.SubjectKind)
	m.PutStr(occurredAtField, f.Fact.OccurredAt.String())
	m.PutStr(attributesField, f.Fact.Attributes.Text())
	putText(m, connectionField, f.Connection)
	putText(m, trustField, f.Trust.String())
}

// fields is how many of its fields are set.
func (f *Fact) fields() int {
	n := 2 // occurred_at and attributes
	for _, text := range [...]string{f.Tenant, f.Fact.RawRef, f.Fact.Source, f.Fact.Type, f.Fact.SubjectID, f.Fact.SubjectKind, f.Connection, f.Trust.String()} {
		if text != "" {
			n++
		}
	}
	return n
}

func readFact(m pcommon.Map) (Fact, error) {
	var r reader
	f := Fact{Fact: engine.Fact{OccurredAt: noInstant}}
	for key, value := range m.All() {
		r.fact(&f, key, value)
	}
	if f.Fact.OccurredAt == noInstant {
		r.fail(occurredAtField, "is missing")
	}
	if r.err != nil {
		return Fact{}, r.err
	}
	var err error
	f.Fact, err = f.Fact.Normalize()
	return f, err
}

func (r *reader) fact(f *Fact, key string, value pcommon.Value) {
	switch key {
	case tenantField:
		f.Tenant = r.text(key, value)
	case connectionField:
		f.Connection = r.text(key, value)
	case trustField:
		f.Trust = r.trust(key, value)
	case rawRefField:
		f.Fact.RawRef = r.text(key, value)
	case sourceField:
		f.Fact.Source = r.text(key, value)
	case factTypeField:
		f.Fact.Type = r.text(key, value)
	case subjectIDField:
		f.Fact.SubjectID = r.text(key, value)
	case subjectKindField:
		f.Fact.SubjectKind = r.text(key, value)
	case occurredAtField:
		f.Fact.OccurredAt = r.instant(key, value)
	case attributesField:
		f.Fact.Attributes = r.object(key, value)
	}
}
