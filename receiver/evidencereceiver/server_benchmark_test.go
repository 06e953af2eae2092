package evidencereceiver

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/metadata"
)

// BenchmarkDelivery is one signed delivery of some 2 KiB through the handler, network left out.
func BenchmarkDelivery(b *testing.B) {
	made, err := NewFactory().CreateLogs(b.Context(), receivertest.NewNopSettings(metadata.Type), testConfig(), consumertest.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	s, ok := made.(*server)
	if !ok {
		b.Fatalf("the factory made a %T", made)
	}
	handler := s.routes()
	body := `{"id":"evt_1","type":"refund.created","data":{"text":"` + strings.Repeat("x", 2000) + `"}}`
	sent := to("/stripe", body).stripe(time.Now())
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r := httptest.NewRequest(sent.method, sent.path, strings.NewReader(sent.body))
		r.Header = sent.header
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != 200 {
			b.Fatal(w.Code)
		}
	}
}
