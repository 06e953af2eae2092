package delivery

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
)

// Key is the attribute; see the package comment.
const Key = record.Prefix + "delivery"

// Delivery is how a log record came.
type Delivery struct {
	// Tenant is empty where the receiver was given none.
	Tenant string
	// Source is the system of record, an identifier.
	Source string
	// Connection is the provider's name (engine.Connection).
	Connection string
	// Trust is what the way in has earned.
	Trust engine.Trust
	// ID is the sender's own of this delivery, or made of its content.
	ID string
}

// Names of the fields.
const (
	tenantField     = "tenant"
	sourceField     = "source"
	connectionField = "connection"
	trustField      = "trust"
	idField         = "id"
	sealField       = "seal"
)

// Put writes a delivery on a log record. Body and event name must not change after that.
func (s *Sealer) Put(entry plog.LogRecord, d Delivery) {
	m := entry.Attributes().PutEmptyMap(Key)
	m.EnsureCapacity(6)
	for _, f := range d.fields() {
		if f.text != "" {
			m.PutStr(f.name, f.text)
		}
	}
	seal := s.seal(entry, &d)
	m.PutEmptyBytes(sealField).FromRaw(seal[:])
}

type field struct{ name, text string }

func (d *Delivery) fields() [5]field {
	return [...]field{
		{tenantField, d.Tenant}, {sourceField, d.Source}, {connectionField, d.Connection},
		{trustField, d.Trust.String()}, {idField, d.ID},
	}
}

// Read returns the delivery of a log record; ok is false where there is none,
// or none that this sealer sealed. It changes nothing.
func (s *Sealer) Read(entry plog.LogRecord) (d Delivery, ok bool) {
	value, found := entry.Attributes().Get(Key)
	if !found || value.Type() != pcommon.ValueTypeMap {
		return Delivery{}, false
	}
	m := value.Map()
	trust, err := engine.ParseTrust(text(m, trustField))
	if err != nil {
		return Delivery{}, false
	}
	d = Delivery{
		Tenant: text(m, tenantField), Source: text(m, sourceField), Connection: text(m, connectionField),
		Trust: trust, ID: text(m, idField),
	}
	seal, found := m.Get(sealField)
	if !found || seal.Type() != pcommon.ValueTypeBytes || !s.fits(entry, &d, seal.Bytes()) {
		return Delivery{}, false
	}
	return d, true
}

func text(m pcommon.Map, name string) string {
	value, ok := m.Get(name)
	if !ok || value.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return value.Str()
}
