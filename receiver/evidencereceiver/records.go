package evidencereceiver

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record/delivery"
	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/metadata"
	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/scheme"
)

// records makes one log record per event, in their order. The time of the
// record is left open: when an event happened stands in its body.
func (e *endpoint) records(sealer *delivery.Sealer, header http.Header, events [][]byte, now time.Time) plog.Logs {
	ld := plog.NewLogs()
	scope := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	scope.Scope().SetName(metadata.ScopeName)
	scope.LogRecords().EnsureCapacity(len(events))
	observed := pcommon.NewTimestampFromTime(now)
	for _, event := range events {
		entry := scope.LogRecords().AppendEmpty()
		entry.SetObservedTimestamp(observed)
		said := e.describe(header, event, len(events) > 1)
		entry.SetEventName(said.Event)
		e.fill(entry, header, event)
		d := e.delivery
		d.ID = identity(said.ID, event)
		sealer.Put(entry, d)
	}
	return ld
}

// fill writes body and headers. A body that is no text is kept as bytes.
func (e *endpoint) fill(entry plog.LogRecord, header http.Header, event []byte) {
	if utf8.Valid(event) {
		entry.Body().SetStr(string(event))
	} else {
		entry.Body().SetEmptyBytes().FromRaw(event)
	}
	for _, kept := range e.headers {
		values := header[kept.name]
		if len(values) == 0 {
			continue
		}
		list := entry.Attributes().PutEmptySlice(kept.attribute)
		for _, value := range values {
			list.AppendEmpty().SetStr(value)
		}
	}
}

// describe: a header says nothing of one event among several.
func (e *endpoint) describe(header http.Header, event []byte, several bool) scheme.Description {
	if several {
		header = nil
	}
	return e.verifier.Describe(header, event)
}

// identity is the sender's own where it has one that can stand, else made of
// the bytes. Either way a delivery that is repeated has the same.
func identity(id string, event []byte) string {
	if engine.CheckOpaque("id", id) == nil {
		return id
	}
	sum := sha256.Sum256(event)
	return "sha256:" + hex.EncodeToString(sum[:])
}
