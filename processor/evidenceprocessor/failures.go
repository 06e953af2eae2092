package evidenceprocessor

import (
	"encoding/json"
	"errors"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/internal/record/delivery"
)

// maxSamples is how many failures of one record show what was sent: a record
// with a thousand bad items must not become a thousand times as large.
const maxSamples = 20

// failures are what could not be made of one record. They are written at the
// end, because what they show is the record as it came.
type failures struct {
	entry *entry
	all   []record.Failure
}

func (f *failures) add(j *judge, label int, m made) {
	one := record.Failure{Kind: j.kinds[label], Source: f.entry.source, Reason: "rule", Error: j.labels[label] + ": " + m.err.Error()}
	switch {
	case errors.Is(m.err, errBody):
		one.Kind, one.Reason, one.Error = "record", "unreadable", m.err.Error()
	case errors.Is(m.err, errNoTrust):
		one.Reason = "no_trust"
	}
	if len(f.all) < maxSamples {
		one.Item = sampleOf(f.entry, j.labels[label], m.item)
	}
	f.all = append(f.all, one)
}

func (f *failures) write(came delivery.Delivery) {
	for _, one := range f.all {
		one.Tenant, one.Connection = came.Tenant, came.Connection
		record.AppendFailure(f.entry.log.Attributes(), one)
	}
}

// failedRecord is what is shown of a record. It is the same for a delivery that is
// repeated, so that this counts and is not kept twice.
type failedRecord struct {
	Rule  string `json:"rule"`
	Event string `json:"event,omitempty"`
	Item  any    `json:"item,omitempty"`
	Body  any    `json:"body,omitempty"`
	// Attributes are those of the record; a row of a database is nothing else.
	Attributes map[string]any `json:"attributes,omitempty"`
}

func sampleOf(e *entry, rule string, item any) string {
	s := failedRecord{Rule: rule, Event: e.log.EventName(), Item: item}
	if item == nil {
		s.Body = bodySample(e)
		s.Attributes = attributesSample(e.log.Attributes())
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// bodySample shows JSON as it is, as long as it is small, else the beginning of its text.
func bodySample(e *entry) any {
	switch body := e.log.Body(); body.Type() {
	case pcommon.ValueTypeEmpty:
		return nil
	case pcommon.ValueTypeBytes:
		return textSample(string(body.Bytes().AsRaw()[:min(body.Bytes().Len(), record.MaxFailedItem)]))
	default:
		return textSample(body.AsString())
	}
}

func textSample(text string) any {
	if len(text) < record.MaxFailedItem && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return strings.ToValidUTF8(text[:min(len(text), record.MaxFailedItem)], "\uFFFD")
}

// attributesSample leaves out what this project wrote, and marked.
func attributesSample(all pcommon.Map) map[string]any {
	shown := map[string]any{}
	for key, value := range all.All() {
		if !record.Owned(key) {
			shown[key] = textSample(value.AsString())
		}
	}
	return shown
}
