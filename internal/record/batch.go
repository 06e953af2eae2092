package record

import (
	"fmt"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Batch is everything that one batch of telemetry carries, in its order.
// Actions and facts are normalized.
type Batch struct {
	Actions  []Action
	Facts    []Fact
	Links    []Link
	Contexts []Context
	// Watermarks are reports of connections.
	Watermarks []Watermark
	// Failures are what a processor could not make; somebody has to be told.
	Failures []Failure
	// Rejected are items that do not read; those beside them are not concerned.
	Rejected []Rejected
}

// Rejected is one item that does not read.
type Rejected struct {
	// Key is the attribute, like FactsKey.
	Key string
	// Where is the span or log record, and the place in the attribute: "span 5fb3...: countersign.actions[1]".
	Where string
	Err   error
	// Item is what does not read, as JSON text; Source and RawRef are what it says of itself, where it says it.
	Item, Source, RawRef string
}

// Error is Where and Err in one line.
func (r Rejected) Error() string { return fmt.Sprintf("%s: %v", r.Where, r.Err) }

// Empty says that the batch carries nothing at all.
func (b *Batch) Empty() bool {
	return len(b.Actions) == 0 && len(b.Facts) == 0 && len(b.Links) == 0 && len(b.Contexts) == 0 &&
		len(b.Watermarks) == 0 && len(b.Failures) == 0 && len(b.Rejected) == 0
}

// FromTraces reads what spans carry. It changes nothing.
func FromTraces(td ptrace.Traces) Batch {
	var b Batch
	for _, resource := range td.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				b.readSpan(span)
			}
		}
	}
	return b
}

// FromLogs reads what log records carry. It changes nothing.
func FromLogs(ld plog.Logs) Batch {
	var b Batch
	for _, resource := range ld.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			ours := scope.Scope().Name() == EvidenceScope
			for _, entry := range scope.LogRecords().All() {
				b.readLog(entry, ours)
				if len(b.Facts) == 1 { // where one record carries a fact, most do
					b.Facts = slices.Grow(b.Facts, ld.LogRecordCount())
				}
			}
		}
	}
	return b
}

func (b *Batch) readSpan(span ptrace.Span) {
	for key, value := range span.Attributes().All() {
		if !Owned(key) {
			continue
		}
		place := func() string { return "span " + span.SpanID().String() }
		if key == ContextKey {
			b.readContext(place, value, span)
			continue
		}
		b.read(place, key, value)
	}
}

// EvidenceScope is the scope of the records that our own evidence receiver
// makes. It stamps them by this host's clock; elsewhere the observed timestamp
// may be the sender's.
const EvidenceScope = "github.com/countersign-otel/countersign/receiver/evidencereceiver"

func (b *Batch) readLog(entry plog.LogRecord, ours bool) {
	first := len(b.Facts)
	for key, value := range entry.Attributes().All() {
		if Owned(key) {
			b.read(func() string { return "log record of " + entry.Timestamp().String() }, key, value)
		}
	}
	if !ours {
		return
	}
	for i := first; i < len(b.Facts); i++ {
		b.Facts[i].ReceivedNanos = int64(entry.ObservedTimestamp()) //nolint:gosec // up to the year 2262
	}
}

func (b *Batch) readContext(place func() string, value pcommon.Value, span ptrace.Span) {
	if value.Type() != pcommon.ValueTypeMap {
		b.reject(ContextKey, place()+": "+ContextKey, value, wrongType(value, pcommon.ValueTypeMap))
		return
	}
	c, err := readContext(value.Map(), span)
	if err != nil {
		b.reject(ContextKey, place()+": "+ContextKey, value, err)
		return
	}
	b.Contexts = append(b.Contexts, c)
}

func (b *Batch) read(place func() string, key string, value pcommon.Value) {
	switch key {
	case ActionsKey:
		b.each(place, key, value, func(m pcommon.Map) error {
			a, err := readAction(m)
			if err == nil {
				b.Actions = append(b.Actions, a)
			}
			return err
		})
	case FactsKey:
		b.each(place, key, value, func(m pcommon.Map) error {
			f, err := readFact(m)
			if err == nil {
				b.Facts = append(b.Facts, f)
			}
			return err
		})
	case LinksKey:
		b.each(place, key, value, func(m pcommon.Map) error {
			l, err := readLink(m)
			if err == nil {
				b.Links = append(b.Links, l)
			}
			return err
		})
	case WatermarksKey:
		b.each(place, key, value, func(m pcommon.Map) error {
			w, err := readWatermark(m)
			if err == nil {
				b.Watermarks = append(b.Watermarks, w)
			}
			return err
		})
	case FailuresKey:
		b.each(place, key, value, func(m pcommon.Map) error {
			f, err := readFailure(m)
			if err == nil {
				b.Failures = append(b.Failures, f)
			}
			return err
		})
	}
}

func (b *Batch) each(place func() string, key string, value pcommon.Value, read func(pcommon.Map) error) {
	if value.Type() != pcommon.ValueTypeSlice {
		b.reject(key, place()+": "+key, value, wrongType(value, pcommon.ValueTypeSlice))
		return
	}
	for i, item := range value.Slice().All() {
		var err error
		if item.Type() == pcommon.ValueTypeMap {
			err = read(item.Map())
		} else {
			err = wrongType(item, pcommon.ValueTypeMap)
		}
		if err != nil {
			b.reject(key, place()+": "+key+"["+strconv.Itoa(i)+"]", item, err)
		}
	}
}

func (b *Batch) reject(key, where string, value pcommon.Value, err error) {
	r := Rejected{Key: key, Where: where, Err: err, Item: value.AsString()}
	if value.Type() == pcommon.ValueTypeMap {
		r.Source, r.RawRef = says(value.Map(), sourceField), says(value.Map(), rawRefField)
	}
	b.Rejected = append(b.Rejected, r)
}

// says is a text of an item that need not be well formed.
func says(m pcommon.Map, field string) string {
	value, ok := m.Get(field)
	if !ok {
		return ""
	}
	return value.AsString()
}

func wrongType(value pcommon.Value, want pcommon.ValueType) error {
	return fmt.Errorf("%w: is a %s; a %s was expected", ErrRecord, value.Type(), want)
}
