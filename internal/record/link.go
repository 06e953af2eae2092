package record

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/countersign-otel/countersign/engine"
)

// Link is a link between subjects on its way to a ledger (decision D7).
type Link struct {
	// Tenant is empty where the processor was given none; the exporter's own holds then.
	Tenant string
	// Source says so, over Connection, with Trust; as for Fact.
	Source, Connection string
	Trust              engine.Trust
	Link               engine.Link
}

// linkFields is the largest number of fields of one link.
const linkFields = 6

// AppendLink adds one link to those that a span or log record carries.
func AppendLink(attributes pcommon.Map, l Link) {
	m := appendMap(attributes, LinksKey)
	m.EnsureCapacity(linkFields)
	putText(m, tenantField, l.Tenant)
	putText(m, sourceField, l.Source)
	putText(m, connectionField, l.Connection)
	putText(m, trustField, l.Trust.String())
	putText(m, subjectIDField, l.Link.SubjectID)
	putText(m, linkedSubjectIDField, l.Link.LinkedSubjectID)
}

func readLink(m pcommon.Map) (Link, error) {
	var r reader
	var l Link
	for key, value := range m.All() {
		switch key {
		case tenantField:
			l.Tenant = r.text(key, value)
		case sourceField:
			l.Source = r.text(key, value)
		case connectionField:
			l.Connection = r.text(key, value)
		case trustField:
			l.Trust = r.trust(key, value)
		case subjectIDField:
			l.Link.SubjectID = r.text(key, value)
		case linkedSubjectIDField:
			l.Link.LinkedSubjectID = r.text(key, value)
		}
	}
	if r.err != nil {
		return Link{}, r.err
	}
	var err error
	if l.Source, err = engine.Identifier(l.Source); err != nil {
		return Link{}, fmt.Errorf("%s: %w", sourceField, err)
	}
	return l, l.Link.Check()
}
