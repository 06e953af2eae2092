package postgres

import (
	"context"

	"github.com/countersign-otel/countersign/engine"
)

// The columns stand in the order in which copyFacts writes them.
const copyFactsSQL = `COPY facts (tenant_id, raw_ref, source, fact_type, subject_id, subject_kind,
  occurred_at, attributes, content_hash, connection, ingested_at) FROM STDIN BINARY`

// copyFacts stores facts that were not there a moment ago. Where another writer
// was faster, the transaction runs again and meets them as known. Hashes that
// are zero are made.
func (t *tx) copyFacts(ctx context.Context, tenant string, facts []newFact, connection string, now engine.Instant) error {
	if len(facts) == 0 {
		return nil
	}
	return overtaken("CopyFacts", t.copyRows(ctx, copyFactsSQL, len(facts), func(w *rowWriter, i int) {
		f := &facts[i]
		if f.hash == ([32]byte{}) {
			f.hash = f.ContentHash()
		}
		w.text(tenant)
		w.text(f.RawRef)
		w.text(f.Source)
		w.text(f.Type)
		w.text(f.SubjectID)
		w.text(f.SubjectKind)
		w.bigint(int64(f.OccurredAt))
		w.object(f.Attributes)
		w.bytea(f.hash[:])
		w.text(connection)
		w.bigint(int64(now))
	}))
}

// object is a json.
func (w *rowWriter) object(o engine.Object) {
	w.deferred(func() { w.bytes = o.AppendText(w.bytes) })
}
