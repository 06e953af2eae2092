package postgres

import (
	"context"
	"encoding/binary"
	"io"
	"strings"
)

// The format's beginning: its signature, no flags, no extension. A row of no columns ends it.
const (
	copyHeader  = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	copyTrailer = "\xff\xff"
)

// textOID is the type of the elements of a text[].
const textOID = 25

// copyRows stores n rows by a statement COPY table (column, ...) FROM STDIN BINARY;
// write writes the columns of row i in the order of the statement.
//
// It writes COPY's binary format itself: the columns are known, so that the
// server need not be asked for them, and no value becomes an interface first.
func (t *tx) copyRows(ctx context.Context, statement string, n int, write func(w *rowWriter, i int)) error {
	columns := strings.Count(statement, ",") + 1
	rows := &rowReader{columns: uint16(columns), n: n, write: write, ready: rowWriter{append([]byte(nil), copyHeader...)}} //nolint:gosec // a few columns
	_, err := t.db.Conn().PgConn().CopyFrom(ctx, rows, statement)
	return err
}

// rowReader makes rows as they are read: while the server stores the ones before.
type rowReader struct {
	columns uint16
	n, next int
	write   func(w *rowWriter, i int)
	ended   bool
	// ready are bytes that were not read yet, from read on.
	ready rowWriter
	read  int
}

func (r *rowReader) Read(p []byte) (int, error) {
	w := &r.ready
	if r.read == len(w.bytes) && r.ended {
		return 0, io.EOF
	}
	w.bytes = append(w.bytes[:0], w.bytes[r.read:]...)
	r.read = 0
	for len(w.bytes) < len(p) && r.next < r.n {
		w.bytes = binary.BigEndian.AppendUint16(w.bytes, r.columns)
		r.write(w, r.next)
		r.next++
	}
	if r.next == r.n && !r.ended {
		w.bytes, r.ended = append(w.bytes, copyTrailer...), true
	}
	r.read = copy(p, w.bytes)
	return r.read, nil
}

// rowWriter writes the columns of a row, each behind its length.
type rowWriter struct{ bytes []byte }

func (w *rowWriter) null() { w.bytes = binary.BigEndian.AppendUint32(w.bytes, 1<<32-1) }

// text is also what json and bytea are: its length and its bytes.
func (w *rowWriter) text(text string) { w.bytes = append(w.length(len(text)), text...) }

func (w *rowWriter) bytea(bytes []byte) { w.bytes = append(w.length(len(bytes)), bytes...) }

func (w *rowWriter) boolean(b bool) {
	if b {
		w.text("\x01")
		return
	}
	w.text("\x00")
}

func (w *rowWriter) integer(i int) {
	const size = 4
	w.bytes = binary.BigEndian.AppendUint32(w.length(size), uint32(i)) //nolint:gosec // two's complement, as the server reads it
}

func (w *rowWriter) bigint(i int64) {
	const size = 8
	w.bytes = binary.BigEndian.AppendUint64(w.length(size), uint64(i)) //nolint:gosec // two's complement, as the server reads it
}

// texts is a text[]: its dimensions, no NULLs in it, the type, the length and the
// first index of its one dimension, and the elements.
func (w *rowWriter) texts(texts []string) {
	w.deferred(func() {
		if len(texts) == 0 {
			w.words(0, 0, textOID)
			return
		}
		w.words(1, 0, textOID, uint32(len(texts)), 1) //nolint:gosec // short lists
		for _, text := range texts {
			w.text(text)
		}
	})
}

// deferred writes a column whose length shows when it is written.
func (w *rowWriter) deferred(write func()) {
	start := len(w.bytes)
	w.bytes = w.length(0)
	write()
	binary.BigEndian.PutUint32(w.bytes[start:], uint32(len(w.bytes)-start-4)) //nolint:gosec // as length
}

func (w *rowWriter) words(words ...uint32) {
	for _, word := range words {
		w.bytes = binary.BigEndian.AppendUint32(w.bytes, word)
	}
}

// length begins a column.
func (w *rowWriter) length(n int) []byte {
	return binary.BigEndian.AppendUint32(w.bytes, uint32(n)) //nolint:gosec // what is stored is bounded far below 1 GB
}
