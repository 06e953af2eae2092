package postgres

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/countersign-otel/countersign/engine"
)

// copyFactsSQL names the columns in the order that factRows writes them.
const copyFactsSQL = `COPY facts (tenant_id, raw_ref, source, fact_type, subject_id, subject_kind,
  occurred_at, attributes, content_hash, connection, ingested_at) FROM STDIN BINARY`

const factColumns = 11

// copyFacts stores facts that were not there a moment ago. Where another writer
// was faster, the transaction runs again and meets them as known.
//
// It writes COPY's binary format itself: the columns are known, so that the
// server need not be asked for them, and no value becomes an interface first.
func (t *tx) copyFacts(ctx context.Context, tenant string, facts []newFact, connection string, now engine.Instant) error {
	if len(facts) == 0 {
		return nil
	}
	rows := &factRows{tenant: tenant, connection: connection, now: now, facts: facts, ready: append([]byte(nil), copyHeader...)}
	_, err := t.db.Conn().PgConn().CopyFrom(ctx, rows, copyFactsSQL)
	return overtaken("CopyFacts", err)
}

// The format's beginning: its signature, no flags, no extension. A row of no columns ends it.
const (
	copyHeader  = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	copyTrailer = "\xff\xff"
)

// factRows are facts in COPY's binary format. Reading makes hashes where they
// are zero: while the server stores the rows before.
type factRows struct {
	tenant, connection string
	now                engine.Instant
	facts              []newFact
	next               int
	ended              bool
	// ready are bytes that were not read yet, from read on.
	ready []byte
	read  int
}

func (r *factRows) Read(p []byte) (int, error) {
	if r.read == len(r.ready) && r.ended {
		return 0, io.EOF
	}
	r.ready = append(r.ready[:0], r.ready[r.read:]...)
	r.read = 0
	for len(r.ready) < len(p) && r.next < len(r.facts) {
		r.row(&r.facts[r.next])
		r.next++
	}
	if r.next == len(r.facts) && !r.ended {
		r.ready, r.ended = append(r.ready, copyTrailer...), true
	}
	r.read = copy(p, r.ready)
	return r.read, nil
}

func (r *factRows) row(f *newFact) {
	if f.hash == ([32]byte{}) {
		f.hash = f.ContentHash()
	}
	r.ready = binary.BigEndian.AppendUint16(r.ready, factColumns)
	r.text(r.tenant)
	r.text(f.RawRef)
	r.text(f.Source)
	r.text(f.Type)
	r.text(f.SubjectID)
	r.text(f.SubjectKind)
	r.bigint(f.OccurredAt)
	r.json(f.Attributes)
	r.text(string(f.hash[:]))
	r.text(r.connection)
	r.bigint(r.now)
}

// text is also what bytea is: its length and its bytes.
func (r *factRows) text(text string) {
	r.ready = append(binary.BigEndian.AppendUint32(r.ready, uint32(len(text))), text...) //nolint:gosec // bounded by decision D35
}

func (r *factRows) bigint(i engine.Instant) {
	const size = 8
	r.ready = binary.BigEndian.AppendUint32(r.ready, size)
	r.ready = binary.BigEndian.AppendUint64(r.ready, uint64(i)) //nolint:gosec // two's complement, as the server reads it
}

// json is written behind room for its length.
func (r *factRows) json(o engine.Object) {
	length := len(r.ready)
	r.ready = o.AppendText(append(r.ready, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(r.ready[length:], uint32(len(r.ready)-length-4)) //nolint:gosec // bounded by decision D35
}
