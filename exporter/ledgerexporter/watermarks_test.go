package ledgerexporter

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/ledger"
)

// watermarkBundle is a writer of evidence whose clock the test moves.
type watermarkBundle struct {
	bundle
	t     *testing.T
	clock time.Time
	facts int
}

// at begins at noon, in seconds before and after it.
const noonOfMarks = 1790596800

func setupWatermarks(t *testing.T) *watermarkBundle {
	t.Helper()
	b := &watermarkBundle{t: t, clock: time.Unix(noonOfMarks, 0)}
	b.bundle = setup(t, func(c *Config) {
		evidenceOf("stripe", "crm", "erp")(c)
		c.QueueConfig.Get().Batch.Get().FlushTimeout = 0 // the clock of the tests is a whole second
		c.Watermarks = map[string]WatermarkConfig{
			"Stripe": {Lateness: time.Minute}, "crm": {Lateness: time.Minute, IdleTimeout: 10 * time.Minute},
		}
	})
	b.now = func() time.Time { return b.clock }
	b.watermarks.start(b.clock.Add(-time.Hour))
	return b
}

// send writes a fact that happened so many seconds after noon, in a record that was received now.
func (b *watermarkBundle) send(source string, occurred int) {
	b.sendReceived(source, occurred, b.clock)
}

func (b *watermarkBundle) sendReceived(source string, occurred int, received time.Time) {
	b.t.Helper()
	if err := b.logs(b.t.Context(), b.batch(source, occurred, received)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *watermarkBundle) batch(source string, occurred int, received time.Time) plog.Logs {
	b.facts++
	ld := plog.NewLogs()
	scope := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	scope.Scope().SetName(record.EvidenceScope)
	entry := scope.LogRecords().AppendEmpty()
	if !received.IsZero() {
		entry.SetObservedTimestamp(pcommon.NewTimestampFromTime(received))
	}
	record.AppendFact(entry.Attributes(), record.Fact{Fact: engine.Fact{
		RawRef: fmt.Sprintf("ref_%d", b.facts), Source: source, Type: "note_added", SubjectID: "order_1",
		OccurredAt: engine.Instant(noonOfMarks + occurred),
	}})
	return ld
}

// items are those of a batch with one fact that was received now.
func (b *watermarkBundle) items(source string, occurred int) []item {
	batch := record.FromLogs(b.batch(source, occurred, b.clock))
	return b.sorter.sort(&batch, &tally{})
}

// want are the watermarks in the store by source, in seconds after noon.
func (b *watermarkBundle) want(what string, want map[string]int) {
	b.t.Helper()
	b.writeWatermarks(b.t.Context())
	got := map[string]int{}
	for _, c := range connections(b.t, b.store) {
		if c.Watermark != nil {
			got[c.Source] = int(*c.Watermark - noonOfMarks)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("%s: watermarks (-want +got):\n%s", what, diff)
	}
}

func (b *watermarkBundle) passes(d time.Duration) { b.clock = b.clock.Add(d) }

func TestD12_ObservedWatermarks(t *testing.T) {
	t.Parallel()
	t.Run("the newest fact less the lateness", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		b.want("nothing came", map[string]int{})
		b.send("stripe", -100)
		b.send("erp", -100) // has no lateness, and so no watermark
		b.want("first", map[string]int{"stripe": -160})
		b.send("stripe", -500)
		b.want("an older one", map[string]int{"stripe": -160})
		b.send("stripe", -40)
		b.want("a newer one", map[string]int{"stripe": -100})
	})
	t.Run("silence is no watermark", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		b.send("stripe", -100)
		b.passes(48 * time.Hour)
		b.want("after two days", map[string]int{"stripe": -160})
	})
	t.Run("an idle timeout lets the clock move it", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		b.passes(time.Hour)
		b.want("a source that never spoke has none", map[string]int{})
		b.send("crm", 3600-100)
		b.want("heard", map[string]int{"crm": 3600 - 160})
		b.passes(10*time.Minute - time.Second)
		b.want("not idle yet", map[string]int{"crm": 3600 - 160})
		b.passes(time.Second)
		b.want("idle", map[string]int{"crm": 3600 + 600 - 60})
		b.passes(time.Minute)
		b.want("still idle", map[string]int{"crm": 3600 + 660 - 60})
		b.send("crm", 3600+660-300) // late, and within nobody's promise
		b.want("never back", map[string]int{"crm": 3600 + 660 - 60})
	})
	t.Run("a sender's clock cannot push it past ours", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		b.send("stripe", 3600)
		b.want("an hour ahead", map[string]int{"stripe": -60})
		b.passes(30 * time.Minute)
		b.want("silence since", map[string]int{"stripe": -60})
	})
	t.Run("what may wait for its batch to fill holds it", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		b.watermarks.filling = 90 * time.Second
		b.send("stripe", 3600)
		b.want("an hour ahead", map[string]int{"stripe": -150})
	})
	t.Run("what may wait in the queue holds it", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		b.watermarks.start(b.clock)
		b.sendReceived("stripe", -100, b.clock.Add(-time.Minute))
		b.want("received before the start", map[string]int{})
		b.passes(time.Second)
		b.send("stripe", -90)
		b.want("received after it", map[string]int{"stripe": -150})
		b.sendReceived("stripe", -80, time.Time{})
		b.want("received nobody knows when, soon after it", map[string]int{"stripe": -150})
		b.passes(time.Minute)
		b.sendReceived("stripe", -70, time.Time{})
		b.want("the same, its lateness after it", map[string]int{"stripe": -130})
	})
	t.Run("another's observed timestamp is not believed", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		b.watermarks.start(b.clock)
		b.passes(time.Second)
		ld := b.batch("stripe", -100, b.clock.Add(time.Hour))
		ld.ResourceLogs().At(0).ScopeLogs().At(0).Scope().SetName("somebody's")
		if err := b.logs(t.Context(), ld); err != nil {
			t.Fatal(err)
		}
		b.want("within the lateness after the start", map[string]int{})
	})
	t.Run("a batch under way holds it", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		underWay := b.items("stripe", -300)
		b.watermarks.look()
		sum := b.watermarks.seen(underWay, nil, b.clock)
		b.send("stripe", -100)
		b.want("another is being written", map[string]int{"stripe": -301})
		b.watermarks.end(sum, underWay, nil, nil, b.clock)
		b.want("it is done", map[string]int{"stripe": -160})
	})
	t.Run("a batch that fails holds it until it is in", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		failing := b.items("stripe", -5000)
		b.watermarks.look()
		first := b.watermarks.seen(failing, nil, b.clock)
		b.send("stripe", -200) // written, while the other is under way
		b.watermarks.end(first, failing, nil, ledger.ErrUnavailable, b.clock)
		b.passes(2 * time.Second)
		b.send("stripe", -100) // received after the failure
		b.want("it waits to be tried again", map[string]int{"stripe": -5001})
		b.watermarks.look()
		again := b.watermarks.seen(failing, nil, b.clock)
		b.want("it is tried again", map[string]int{"stripe": -5001})
		b.watermarks.end(again, failing, nil, nil, b.clock)
		b.want("it is in", map[string]int{"stripe": -160})
	})
	t.Run("what was given up holds it, and is bounded", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		for i := range maxOutstanding + 50 {
			lost := b.items("stripe", -5000+i)
			b.watermarks.look()
			b.watermarks.end(b.watermarks.seen(lost, nil, b.clock), lost, nil, ledger.ErrUnavailable, b.clock)
		}
		b.passes(time.Second)
		b.send("stripe", -100)
		b.want("nobody tries again", map[string]int{"stripe": -5001})
		if n := len(b.watermarks.outstanding); n > maxOutstanding {
			t.Errorf("%d batches are kept, want at most %d", n, maxOutstanding)
		}
	})
	t.Run("what the store refuses moves nothing", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		refused := b.items("stripe", -100)
		refused[0].refused = true
		b.watermarks.look()
		b.watermarks.end(b.watermarks.seen(refused, nil, b.clock), refused, nil, nil, b.clock)
		b.want("refused", map[string]int{})
	})
	t.Run("a restart remembers whom it follows", func(t *testing.T) {
		t.Parallel()
		b := setupWatermarks(t)
		b.send("crm", -100)
		b.want("before", map[string]int{"crm": -160})
		again := newWatermarks(&Config{Role: Evidence, Tenant: engine.DefaultTenant, Watermarks: map[string]WatermarkConfig{"crm": {Lateness: time.Minute, IdleTimeout: 10 * time.Minute}}})
		b.passes(time.Hour)
		again.start(b.clock)
		b.watermarks = again
		b.want("the silence while it was away does not count", map[string]int{"crm": -160})
		b.passes(10 * time.Minute)
		b.want("the silence since does", map[string]int{"crm": 4200 - 60})
	})
}

// TestD12_FailuresHoldWatermarks: what failed comes again, behind what is newer.
func TestD12_FailuresHoldWatermarks(t *testing.T) {
	t.Parallel()
	w, r := setupRefusing(t)
	config := NewDefaultConfig()
	evidenceOf("stripe")(config)
	config.Watermarks = map[string]WatermarkConfig{"stripe": {Lateness: time.Minute, IdleTimeout: 10 * time.Minute}}
	w.sorter, w.watermarks = newSorter(config), newWatermarks(config)
	b := &watermarkBundle{t: t, clock: time.Unix(noonOfMarks, 0)}
	w.now = func() time.Time { return b.clock }
	older := b.batch("stripe", -5000, b.clock)
	r.whole = []error{ledger.ErrUnavailable}
	if err := w.logs(t.Context(), older); err == nil {
		t.Fatal("no error")
	}
	b.writer, b.store = w, r.Ledger
	b.sendReceived("stripe", -100, b.clock)
	b.want("received before the failure", map[string]int{})
	b.passes(10*time.Minute - time.Second)
	b.want("not idle: the failure counts", map[string]int{})
	b.send("stripe", 500)
	b.want("received after it, with the older one still missing", map[string]int{"stripe": -5001})
	if err := w.logs(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	b.want("the older one is in", map[string]int{"stripe": 440})
}

// TestWholeExporterFollowsWatermarks runs it as the collector does.
func TestWholeExporterFollowsWatermarks(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) {
		evidenceOf("crm")(c)
		c.Watermarks = map[string]WatermarkConfig{"crm": {Lateness: time.Minute}}
	})
	if err := b.start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	sender := &watermarkBundle{t: t}
	if err := b.logs(t.Context(), sender.batch("crm", -100-noonOfMarks+1790592300, time.Unix(1790592301, 0))); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(time.Minute)
	for {
		found := connections(t, b.store)
		if len(found) == 1 && found[0].Watermark != nil {
			if got := *found[0].Watermark; got != 1790592300-160 {
				t.Errorf("watermark %s", got)
			}
			return
		}
		select {
		case <-deadline:
			t.Fatalf("connections %+v", found)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
