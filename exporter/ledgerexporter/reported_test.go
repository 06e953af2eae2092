package ledgerexporter

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/exporter/ledgerexporter/internal/metadatatest"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/ledger"
)

// reportOf is a record in which the evidence processor found, at received, that
// source is complete up to so many seconds after noon.
func reportOf(source string, at int, received time.Time) plog.Logs {
	ld := plog.NewLogs()
	entry := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.AppendWatermark(entry.Attributes(), record.Watermark{
		Source: source, At: engine.Instant(noonOfMarks + at), ReceivedNanos: received.UnixNano(),
	})
	return ld
}

func (b *watermarkBundle) report(source string, at int) {
	b.t.Helper()
	if err := b.logs(b.t.Context(), reportOf(source, at, b.clock)); err != nil {
		b.t.Fatal(err)
	}
}

// TestD12_ReportedWatermarks: erp is followed by nothing but what it says.
func TestD12_ReportedWatermarks(t *testing.T) {
	t.Parallel()
	t.Run("up to where it says", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		b.report("erp", -100)
		b.want("a batch before it may not have been seen yet", map[string]int{})
		b.passes(watermarkEvery)
		b.want("it counts", map[string]int{"erp": -100})
		b.report("erp", -500)
		b.passes(watermarkEvery)
		b.want("an older one", map[string]int{"erp": -100})
		b.passes(48 * time.Hour)
		b.want("silence is no watermark", map[string]int{"erp": -100})
	})
	t.Run("what may wait for its batch to fill holds it", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		b.watermarks.filling = 90 * time.Second
		b.report("erp", -100)
		b.passes(90 * time.Second)
		b.want("too early", map[string]int{})
		b.passes(watermarkEvery)
		b.want("it counts", map[string]int{"erp": -100})
	})
	t.Run("many of them do not put each other off", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		for i := range 8 {
			b.report("erp", -100+i)
			b.passes(watermarkEvery / 4)
			b.writeWatermarks(t.Context())
		}
		b.want("those of up to two seconds ago", map[string]int{"erp": -100 + 3})
	})
	t.Run("none is ahead of the clock", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		b.report("erp", 3600)
		b.passes(time.Minute)
		b.want("as far as the moment it came", map[string]int{"erp": 0})
	})
	t.Run("a batch under way holds it", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		underWay := b.items("erp", -300)
		b.watermarks.look()
		sum := b.watermarks.seen(underWay, nil, b.clock)
		b.report("erp", -100)
		b.passes(time.Minute)
		b.want("it is being written", map[string]int{"erp": -301})
		b.watermarks.end(sum, underWay, nil, nil, b.clock)
		b.want("it is done", map[string]int{"erp": -100})
	})
	t.Run("over whatever connection it comes", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		underWay := b.items("erp", -300)
		underWay[0].path.connection = "another"
		b.watermarks.look()
		b.watermarks.seen(underWay, nil, b.clock)
		b.report("erp", -100)
		b.passes(time.Minute)
		b.want("the source has not told everything", map[string]int{"erp": -301})
	})
	t.Run("a batch that fails holds it until it is in", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		failing := b.items("erp", -5000)
		b.watermarks.look()
		b.watermarks.end(b.watermarks.seen(failing, nil, b.clock), failing, nil, ledger.ErrUnavailable, b.clock)
		b.report("erp", -100)
		b.passes(time.Hour)
		b.want("it waits to be tried again", map[string]int{"erp": -5001})
		b.watermarks.look()
		b.watermarks.end(b.watermarks.seen(failing, nil, b.clock), failing, nil, nil, b.clock)
		b.want("it is in", map[string]int{"erp": -100})
	})
	t.Run("what was given up holds it", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		for i := range maxOutstanding + 50 {
			lost := b.items("erp", -5000+i)
			b.watermarks.look()
			b.watermarks.end(b.watermarks.seen(lost, nil, b.clock), lost, nil, ledger.ErrUnavailable, b.clock)
		}
		b.report("erp", -100)
		b.passes(time.Minute)
		b.want("nobody tries again", map[string]int{"erp": -5001})
	})
	t.Run("a report of a batch that fails counts when that is in", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		reported := []report{{observed{engine.DefaultTenant, "erp", path{"hook", engine.Shared}}, noonOfMarks - 100, 0}}
		b.watermarks.look()
		b.watermarks.end(b.watermarks.seen(nil, reported, b.clock), nil, reported, ledger.ErrUnavailable, b.clock)
		b.passes(time.Minute)
		b.want("not in", map[string]int{})
		b.watermarks.look()
		b.watermarks.end(b.watermarks.seen(nil, reported, b.clock), nil, reported, nil, b.clock)
		b.passes(time.Minute)
		b.want("in", map[string]int{"erp": -100})
	})
	t.Run("beside what is observed the further one holds", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		b.send("stripe", -100)
		b.report("stripe", -130)
		b.passes(time.Minute)
		b.want("the newest fact less a minute is -160", map[string]int{"stripe": -130})
	})
}

// TestD12_ReportsOfAQueueOnDisk: what was under way when the process ended is
// put behind newer things, so that a report may come before facts that were
// received before it.
func TestD12_ReportsOfAQueueOnDisk(t *testing.T) {
	t.Parallel()
	b := setupWatermarks(t)
	b.watermarks.outlives = true
	b.watermarks.start(b.clock)
	if err := b.logs(t.Context(), reportOf("erp", -300, b.clock.Add(-time.Minute))); err != nil {
		t.Fatal(err)
	}
	b.passes(time.Hour)
	b.want("received before the start", map[string]int{})
	b.send("crm", -6000) // received since, so that nothing older is in the queue
	b.want("it may have overtaken another batch", map[string]int{"crm": -6060})
	b.passes(watermarkEvery)
	b.want("it counts", map[string]int{"crm": -6060, "erp": -300})
	b.report("erp", 3500)
	b.passes(watermarkEvery)
	b.want("received since", map[string]int{"crm": -6060, "erp": 3500})
}

// TestD12_ShutdownWritesWhatWasReported without waiting: nothing can be under way.
func TestD12_ShutdownWritesWhatWasReported(t *testing.T) {
	t.Parallel()
	b := setupWatermarks(t)
	b.report("erp", -100)
	failing := b.items("crm", -5000)
	b.watermarks.look()
	b.watermarks.end(b.watermarks.seen(failing, nil, b.clock), failing, nil, ledger.ErrUnavailable, b.clock)
	b.report("crm", -100)
	if err := b.shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, c := range connections(t, b.store) {
		got[c.Source] = int(*c.Watermark - noonOfMarks)
	}
	if diff := cmp.Diff(map[string]int{"erp": -100, "crm": -5001}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReportsOfOthersAreRefused: of no source but its own, for no tenant but
// its own, and by no recorder. What an evidence exporter refuses is kept.
func TestReportsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	telemetry := componenttest.NewTelemetry()
	b := setupWith(t, telemetry.NewTelemetrySettings(), evidenceOf("erp"))
	foreign := reportOf("erp", -500, time.Unix(noonOfMarks, 0))
	attributes := foreign.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes()
	attributes.Clear()
	record.AppendWatermark(attributes, record.Watermark{Tenant: "victim", Source: "erp", At: noonOfMarks - 500})
	for _, ld := range []plog.Logs{reportOf("crm", -5000, time.Unix(noonOfMarks, 0)), foreign, reportOf("erp", -6000, b.now()), reportOf("erp", 0, b.now())} {
		if err := b.logs(t.Context(), ld); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range connections(t, b.store) {
		got = append(got, c.Source+" "+c.Watermark.String())
	}
	if diff := cmp.Diff([]string{"erp 2026-09-28T10:45:00Z"}, got); diff != "" {
		t.Errorf("watermarks (-want +got):\n%s", diff)
	}
	lines, found := rejectedLines(t, b.store, engine.DefaultTenant)
	if diff := cmp.Diff([]string{"watermark crm hook source  x", "watermark erp hook tenant  x"}, lines); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}
	for _, r := range found {
		if !strings.HasPrefix(r.Item, `{"source":"`+r.Source+`","watermark":"2026-09-28T1`) {
			t.Errorf("item %s", r.Item)
		}
	}
	point := func(n int64, pairs ...attribute.KeyValue) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(append(pairs, attribute.String("kind", "watermark"))...)}
	}
	metadatatest.AssertEqualExporterLedgerItems(t, telemetry, []metricdata.DataPoint[int64]{
		point(1, attribute.String("outcome", "reported")), point(1, attribute.String("outcome", "capped")),
	}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	metadatatest.AssertEqualExporterLedgerRejectedItems(t, telemetry, []metricdata.DataPoint[int64]{
		point(1, attribute.String("reason", "source")), point(1, attribute.String("reason", "tenant")),
	}, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
}

func TestRecorderTakesNoReport(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.sorter.sources["stripe"] = true // even if it had any
	if err := b.logs(t.Context(), reportOf("stripe", -5000, b.now())); err != nil {
		t.Fatal(err)
	}
	if err := b.shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if found := connections(t, b.store); len(found) != 0 {
		t.Errorf("connections %+v", found)
	}
}

// TestFailuresOfTheProcessorAreKept, however it says them, and a flood of them in bounds.
func TestFailuresOfTheProcessorAreKept(t *testing.T) {
	t.Parallel()
	failures := func(n int, change func(int, *record.Failure)) plog.Logs {
		ld := plog.NewLogs()
		entry := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		for i := range n {
			f := record.Failure{Kind: "fact", Source: "crm", Connection: "poller", Reason: "rule", Error: "notes: subject_id: the expression gave no value", Item: `{"body":{}}`}
			change(i, &f)
			record.AppendFailure(entry.Attributes(), f)
		}
		return ld
	}
	b := setup(t, evidenceOf("crm"))
	for range 2 {
		if err := b.logs(t.Context(), failures(4, func(i int, f *record.Failure) {
			switch i {
			case 1:
				f.Kind, f.Reason, f.Source = "record", "unreadable", ""
			case 2:
				f.Tenant = "victim"
			case 3:
				f.Kind, f.Reason, f.Connection = "anything", "whatever", ""
			}
		})); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"fact crm poller rule  xxxx", "record  poller unreadable  xx", "record crm hook rule  xx"}
	lines, found := rejectedLines(t, b.store, engine.DefaultTenant)
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, r := range found {
		if r.Item != `{"body":{}}` || r.Error == "" {
			t.Errorf("%+v", r)
		}
	}
	if err := b.logs(t.Context(), failures(3000, func(i int, f *record.Failure) {
		f.Kind, f.Item = "link", strings.Repeat("x", i)
	})); err != nil {
		t.Fatal(err)
	}
	items, times := rejectedCount(t, b.store, "crm")
	if items > 1100 || times != 3000+6 {
		t.Errorf("%d lines for %d rejections", items, times)
	}
	recorder := setup(t, nil)
	if err := recorder.logs(t.Context(), failures(1, func(int, *record.Failure) {})); err != nil {
		t.Fatal(err)
	}
	if lines, _ := rejectedLines(t, recorder.store, engine.DefaultTenant); lines != nil {
		t.Errorf("a recorder kept %v", lines)
	}
}

func rejectedCount(t *testing.T, store ledger.Ledger, source string) (items, times int) {
	t.Helper()
	if err := store.View(t.Context(), func(tx ledger.Tx) error {
		counts, err := tx.CountRejected(t.Context(), engine.DefaultTenant, 0)
		for _, c := range counts {
			if c.Source == source {
				items, times = c.Items, c.Times
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return items, times
}

// TestQueueOnDiskIsKnown by its setting.
func TestQueueOnDiskIsKnown(t *testing.T) {
	t.Parallel()
	config := NewDefaultConfig()
	if newWatermarks(config).outlives {
		t.Error("a queue in memory outlives the process")
	}
	id := component.MustNewID("file_storage")
	config.QueueConfig.Get().StorageID = &id
	if !newWatermarks(config).outlives {
		t.Errorf("a queue in %s does not", filepath.Base(id.String()))
	}
}
