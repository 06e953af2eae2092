package record

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/countersign-otel/countersign/engine"
)

// Watermark is a report on its way to a ledger: a connection says that its
// source is complete up to a moment (decision D12).
type Watermark struct {
	// Tenant is empty where the processor was given none; the exporter's own holds then.
	Tenant string
	// Source is complete over Connection, which is believed with Trust; as for Fact.
	Source, Connection string
	Trust              engine.Trust
	// At is the moment: everything that happened until then has been sent.
	At engine.Instant
	// ReceivedNanos is when the processor had the report before it, in OTLP nanoseconds.
	ReceivedNanos int64
}

// watermarkFields is the largest number of fields of one watermark.
const watermarkFields = 6

// AppendWatermark adds one report to those that a log record carries.
func AppendWatermark(attributes pcommon.Map, w Watermark) {
	m := appendMap(attributes, WatermarksKey)
	m.EnsureCapacity(watermarkFields)
	putText(m, tenantField, w.Tenant)
	putText(m, sourceField, w.Source)
	putText(m, connectionField, w.Connection)
	putText(m, trustField, w.Trust.String())
	m.PutStr(watermarkField, w.At.String())
	m.PutInt(receivedNanosField, w.ReceivedNanos)
}

func readWatermark(m pcommon.Map) (Watermark, error) {
	var r reader
	w := Watermark{At: noInstant}
	for key, value := range m.All() {
		switch key {
		case tenantField:
			w.Tenant = r.text(key, value)
		case sourceField:
			w.Source = r.text(key, value)
		case connectionField:
			w.Connection = r.text(key, value)
		case trustField:
			w.Trust = r.trust(key, value)
		case watermarkField:
			w.At = r.instant(key, value)
		case receivedNanosField:
			w.ReceivedNanos = r.nanos(key, value)
		}
	}
	if w.At == noInstant {
		r.fail(watermarkField, "is missing")
	}
	if r.err != nil {
		return Watermark{}, r.err
	}
	var err error
	if w.Source, err = engine.Identifier(w.Source); err != nil {
		return Watermark{}, fmt.Errorf("%s: %w", sourceField, err)
	}
	return w, nil
}
