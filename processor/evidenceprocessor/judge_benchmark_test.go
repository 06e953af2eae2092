package evidenceprocessor

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
)

// BenchmarkLogs is one batch of 1,000 records through all ready mappings.
func BenchmarkLogs(b *testing.B) {
	for _, event := range []struct{ source, sample string }{
		{"stripe", "refund_created"}, {"stripe", "customer_created"}, {"shopify", "refunds_create"},
	} {
		b.Run("event="+event.sample+"/records=1000", func(b *testing.B) {
			j := newTestJudge(b, mappingConfig(mappingNames...))
			s := readSample(b, "testdata/mappings/"+event.source+"/"+event.sample+".json")
			one := firstLog(s.logs(b, event.source))
			input := plog.NewLogs()
			list := input.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
			for range 1000 {
				one.CopyTo(list.AppendEmpty())
			}
			b.ReportAllocs()
			for b.Loop() {
				ld := plog.NewLogs()
				input.CopyTo(ld)
				if _, err := j.logs(b.Context(), ld); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkCompile is what a start costs: every expression of all ready mappings.
func BenchmarkCompile(b *testing.B) {
	config := mappingConfig(mappingNames...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := config.compile(); err != nil {
			b.Fatal(err)
		}
	}
}
