package emit

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/collector/pdata/plog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/countersign-otel/countersign/engine"
)

// later moves the clock on, beyond every pause.
func (f *fixture) later() { f.clock.Add(int64(longestWait / time.Second)) }

// answering is a server that answers everything with a status, and the number of requests to it.
func answering(t *testing.T, answer int) (base string, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		http.Error(w, "no such field", answer)
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func refusingReceiver(code codes.Code) *receiver {
	r := newReceiver()
	r.refuse = func(plog.Logs) error { return status.Error(code, "no such field") }
	return r
}

// TestEventRefusedForGoodIsGivenUp by the destination that refuses it, once it was told often enough.
func TestEventRefusedForGoodIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		destination string
		config      func(t *testing.T, status int) (Config, *atomic.Int64)
		status      int
	}{
		"OTLP over HTTP, 400": {"otlp", func(t *testing.T, status int) (Config, *atomic.Int64) {
			base, requests := answering(t, status)
			return to(base, HTTP), requests
		}, http.StatusBadRequest},
		"OTLP over HTTP, 422": {"otlp", func(t *testing.T, status int) (Config, *atomic.Int64) {
			base, requests := answering(t, status)
			return to(base, HTTP), requests
		}, http.StatusUnprocessableEntity},
		"Langfuse, 413": {"langfuse", func(t *testing.T, status int) (Config, *atomic.Int64) {
			base, requests := answering(t, status)
			return toLangfuse(base), requests
		}, http.StatusRequestEntityTooLarge},
		"Phoenix, 422": {"phoenix", func(t *testing.T, status int) (Config, *atomic.Int64) {
			base, requests := answering(t, status)
			return toPhoenix(base), requests
		}, http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.verify(t, "bad", 4, "")
			var log bytes.Buffer // read after the emitter has ended
			f.logger, f.registry = slog.New(slog.NewTextHandler(&log, nil)), prometheus.NewRegistry()
			c, requests := row.config(t, row.status)
			stop := f.emitting(t, c)
			within(t, time.Minute, "it is given up", func() bool {
				f.later()
				return f.left(t) == 0
			})
			stop()
			if got := requests.Load(); got != mostRefusals {
				t.Errorf("told %d times, want %d", got, mostRefusals)
			}
			if got := strings.Count(log.String(), "level=ERROR"); got != 1 {
				t.Errorf("%d errors in the log, want one:\n%s", got, log.String())
			}
			for _, want := range []string{"action_id=bad", "claim_id=" + engine.ClaimID(tenant, "bad"), "no such field"} {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log does not say %s:\n%s", want, log.String())
				}
			}
			wantMetrics := `# HELP countersign_emit_given_up_total Events that a destination refused so often, and for good, that they were given up for it.
# TYPE countersign_emit_given_up_total counter
countersign_emit_given_up_total{destination="` + row.destination + `"} 1
`
			if err := testutil.GatherAndCompare(f.registry, strings.NewReader(wantMetrics), "countersign_emit_given_up_total"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRefusalsOverGRPC: a code that says so is for good, one that is not is tried for ever.
func TestRefusalsOverGRPC(t *testing.T) {
	t.Parallel()
	for code, left := range map[codes.Code]int{codes.InvalidArgument: 0, codes.Unavailable: 1} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.verify(t, "bad", 4, "")
			c := to("http://"+serveGRPC(t, refusingReceiver(code), "localhost:0"), GRPC)
			c.MaxBackOff = time.Millisecond
			stop := f.emitting(t, c)
			within(t, time.Minute, "it was tried often", func() bool {
				f.later()
				return f.left(t) == 0 || f.attempts(t) > mostRefusals+3
			})
			stop()
			if got := f.left(t); got != left {
				t.Errorf("%d events are left, want %d", got, left)
			}
		})
	}
}

// TestOneRefusedEventCostsFewRequests: the batch is halved until the event stands alone.
func TestOneRefusedEventCostsFewRequests(t *testing.T) {
	t.Parallel()
	const events = 64
	f := newFixture(t)
	for i := range events - 1 {
		f.verify(t, "good_"+strings.Repeat("x", i+1), 0, "")
	}
	f.verify(t, "bad", 0, "")
	r := newReceiver()
	r.refuse = func(logs plog.Logs) error {
		for _, record := range logs.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
			if id, _ := record.Attributes().Get("countersign.action.id"); id.Str() == "bad" {
				return status.Error(codes.InvalidArgument, "no such field")
			}
		}
		return nil
	}
	stop := f.emitting(t, to("http://"+serveGRPC(t, r, "localhost:0"), GRPC))
	within(t, time.Minute, "all others are sent", func() bool { return f.left(t) <= 1 })
	stop()
	if r.calls > 20 {
		t.Errorf("%d requests for one refused event of %d", r.calls, events)
	}
}
