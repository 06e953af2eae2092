package evidencereceiver

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/internal/record/delivery"
)

// FuzzBody: whatever a body holds, nothing panics, nothing of it is lost, and
// every record has an identity and a seal.
func FuzzBody(f *testing.F) {
	endpoints, err := testConfig().compile()
	if err != nil {
		f.Fatal(err)
	}
	sealer, err := delivery.NewSealer("")
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range []string{
		"", refund, "[]", `[{"id":"a"},{"id":"b"}]`, "{\"id\":1}\n{}\n", "[1", "\xff", `{"type":"\u0000","id":["x"]}`, zip(f, refund),
	} {
		f.Add([]byte(body), false)
		f.Add([]byte(body), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, zipped bool) {
		const limit = 64 << 10
		r := &http.Request{Header: http.Header{}, Body: http.NoBody}
		r.Body = readCloser{bytes.NewReader(body)}
		if zipped {
			r.Header.Set("Content-Encoding", "gzip")
		}
		got, err := readBody(r, limit)
		if err != nil {
			return
		}
		if len(got.plain) > limit || len(got.wire) > limit {
			t.Fatalf("%d bytes of %d", len(got.plain), len(got.wire))
		}
		for _, e := range endpoints {
			events, err := split(got.plain, e.events)
			if err != nil {
				continue
			}
			ld := e.records(sealer, r.Header, events, time.Unix(0, 0))
			if ld.LogRecordCount() != len(events) {
				t.Errorf("%d records of %d events", ld.LogRecordCount(), len(events))
			}
			for i, entry := range ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
				d, ok := sealer.Read(entry)
				if !ok || d.ID == "" {
					t.Errorf("record %d: sealed %t, id %q", i, ok, d.ID)
				}
			}
		}
	})
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }
