package record

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/countersign-otel/countersign/engine"
)

// Failure is evidence that a processor could not make into what it should have
// been. The exporter keeps it apart, so that nothing is lost quietly.
type Failure struct {
	// Tenant is empty where the processor was given none; the exporter's own holds then.
	Tenant string
	// Kind says what was to be made: fact, link, watermark, or record for all of it.
	Kind string
	// Source and Connection are as far as they are known.
	Source, Connection string
	// Reason is a word, Error says it in words.
	Reason, Error string
	// Item is the beginning of what was sent, as JSON text; empty where others
	// of the same record show it.
	Item string
}

// MaxFailedItem bounds Item, in bytes: it travels beside the whole record.
const MaxFailedItem = 4096

// failureFields is the largest number of fields of one failure.
const failureFields = 7

// AppendFailure adds one failure to those that a log record carries. Error and Item are cut.
func AppendFailure(attributes pcommon.Map, f Failure) {
	m := appendMap(attributes, FailuresKey)
	m.EnsureCapacity(failureFields)
	putText(m, tenantField, f.Tenant)
	putText(m, kindField, f.Kind)
	putText(m, sourceField, f.Source)
	putText(m, connectionField, f.Connection)
	putText(m, reasonField, f.Reason)
	putText(m, errorField, cut(f.Error, maxErrorText))
	putText(m, itemField, cut(f.Item, MaxFailedItem))
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

func readFailure(m pcommon.Map) (Failure, error) {
	var r reader
	var f Failure
	for key, value := range m.All() {
		switch key {
		case tenantField:
			f.Tenant = r.text(key, value)
		case kindField:
			f.Kind = r.text(key, value)
		case sourceField:
			f.Source = r.text(key, value)
		case connectionField:
			f.Connection = r.text(key, value)
		case reasonField:
			f.Reason = r.text(key, value)
		case errorField:
			f.Error = r.text(key, value)
		case itemField:
			f.Item = r.text(key, value)
		}
	}
	for _, needed := range []struct{ field, text string }{{kindField, f.Kind}, {reasonField, f.Reason}} {
		if _, err := engine.Identifier(needed.text); err != nil && r.err == nil {
			r.err = fmt.Errorf("%w: %s: %w", ErrRecord, needed.field, err)
		}
	}
	return f, r.err
}
