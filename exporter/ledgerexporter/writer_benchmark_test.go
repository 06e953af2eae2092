package ledgerexporter

import (
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/ledger/open"
)

// BenchmarkReadTraces is the exporter without its store.
func BenchmarkReadTraces(b *testing.B) {
	td := benchmarkSpans(1000)
	b.ReportAllocs()
	for b.Loop() {
		if batch := record.FromTraces(td); len(batch.Actions) != 1000 {
			b.Fatal(len(batch.Actions))
		}
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "actions/s")
}

// BenchmarkReadLogs is the exporter without its store.
func BenchmarkReadLogs(b *testing.B) {
	ld := plog.NewLogs()
	scope := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	for i := range 1000 {
		record.AppendAction(scope.LogRecords().AppendEmpty().Attributes(), refund(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		if batch := record.FromLogs(ld); len(batch.Actions) != 1000 {
			b.Fatal(len(batch.Actions))
		}
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "actions/s")
}

// BenchmarkWriteKnownTraces writes a batch that the store knows already, to a SQLite file.
func BenchmarkWriteKnownTraces(b *testing.B) {
	config := NewDefaultConfig()
	config.Store = opaque("sqlite:" + filepath.Join(b.TempDir(), "ledger.db"))
	w, err := newWriter(componenttest.NewNopTelemetrySettings(), config, open.Ledger)
	if err != nil {
		b.Fatal(err)
	}
	w.now = func() time.Time { return time.Unix(1790592300, 0) }
	defer func() {
		if err := w.shutdown(b.Context()); err != nil {
			b.Error(err)
		}
	}()
	openStore(b, string(config.Store))
	td := benchmarkSpans(1000)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.traces(b.Context(), td); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "actions/s")
}

func benchmarkSpans(n int) ptrace.Traces {
	items := make([]func(ptrace.Span), n)
	for i := range items {
		items[i] = withAction(refund(i))
	}
	return spans(items...)
}
