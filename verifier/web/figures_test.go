package web

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func nonEmpty(text string) []string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// A page waits a moment for a count, shows what is known meanwhile, and counts
// again only after a multiple of what counting cost.
func TestFiguresDoNotKeepAPageWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFigures(0)
		defer f.close()
		var counts atomic.Int64
		slow := func(ctx context.Context) (int64, error) {
			timer := time.NewTimer(time.Second)
			defer timer.Stop()
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-timer.C:
			}
			return counts.Add(1), nil
		}
		get := func() counted[int64] {
			started := time.Now()
			found, err := count(f, "key", slow)
			if err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(started); waited > defaultPatience {
				t.Errorf("waited %s", waited)
			}
			return found
		}
		if got := get(); got.Known || got.Stale {
			t.Errorf("while counting: %+v", got)
		}
		get() // joins the count that is under way
		pause(t.Context(), time.Second)
		if got := get(); !got.Known || got.Stale || got.Value != 1 {
			t.Errorf("counted: %+v", got)
		}
		pause(t.Context(), 15*time.Second)
		if got := get(); got.Value != 1 || got.Stale {
			t.Errorf("15 seconds later: %+v", got)
		}
		pause(t.Context(), 6*time.Second)
		if got := get(); got.Value != 1 || !got.Stale {
			t.Errorf("21 seconds later: %+v, want the old count while counting again", got)
		}
		pause(t.Context(), time.Second)
		if got := get(); got.Value != 2 {
			t.Errorf("counted again: %+v", got)
		}
	})
}

func TestFiguresThatFail(t *testing.T) {
	t.Parallel()
	f := newFigures(time.Minute)
	defer f.close()
	broken := errors.New("broken")
	fail := true
	compute := func(context.Context) (string, error) {
		if fail {
			return "", broken
		}
		return "good", nil
	}
	if _, err := count(f, "key", compute); !errors.Is(err, broken) {
		t.Errorf("%v, want broken", err)
	}
	fail = false
	if found, err := count(f, "key", compute); err != nil || found != (counted[string]{Value: "good", Known: true}) {
		t.Errorf("after it is mended: %+v %v", found, err)
	}
	fail = true
	known, _ := f.known.Get("key")
	known.cost = 0 // old at once
	if found, err := count(f, "key", compute); err != nil || found != (counted[string]{Value: "good", Known: true, Stale: true}) {
		t.Errorf("broken again: %+v %v, want what was known before", found, err)
	}
}

func TestFiguresEndWithThePage(t *testing.T) {
	t.Parallel()
	f := newFigures(0)
	started := make(chan struct{})
	go func() {
		_, _ = count(f, "key", func(ctx context.Context) (int, error) {
			close(started)
			<-ctx.Done()
			return 0, ctx.Err()
		})
	}()
	<-started
	f.close()
	if found, err := count(f, "other", func(context.Context) (int, error) { return 1, nil }); err != nil || found.Known {
		t.Errorf("after the end: %+v %v", found, err)
	}
}

func TestChartIsToScale(t *testing.T) {
	t.Parallel()
	s := spans[0].endingAt(start)
	tallies := []ledger.Tally{
		{Key: "a", At: s.since, Total: 10, Pass: 6, Fail: 3, Unknown: 1, Compensated: 1},
		{Key: "b", At: s.since, Total: 10, Pass: 10},
		{Key: "a", At: s.until.Sub(s.step), Total: 5, Pending: 4, Unverified: 1},
	}
	charts := drawCharts(s, tallies, func(from, to engine.Instant) string { return fmt.Sprint(from, " ", to) })
	c, slim := charts[0], charts[1]
	if len(slim.Bars) != 2 || len(slim.Times) != 3 || slim.Summary != c.Summary {
		t.Errorf("for narrow screens: %d bars, %d times, %q", len(slim.Bars), len(slim.Times), slim.Summary)
	}
	if len(c.Bars) != 2 || len(c.Times) != 6 {
		t.Fatalf("%d bars, %d times", len(c.Bars), len(c.Times))
	}
	var heights []string
	for _, part := range c.Bars[0].Segments {
		heights = append(heights, fmt.Sprintf("%s %.1f", part.Class, part.Height/(c.Bottom-c.Top)*20))
	}
	if diff := cmp.Diff([]string{"pass 16.0", "compensated 1.0", "fail 2.0", "unknown 1.0"}, heights); diff != "" {
		t.Errorf("the first bar (-want +got):\n%s", diff)
	}
	if want := fmt.Sprint(s.since, " ", s.since.Add(s.step)); c.Bars[0].Link != want {
		t.Errorf("the first bar leads to %s, want %s", c.Bars[0].Link, want)
	}
	if want := s.since.Time().Format("2006-01-02 15:04") + " UTC: 20 actions, 16 PASS, 1 COMPENSATED, 2 FAIL, 1 UNKNOWN"; c.Bars[0].Title != want {
		t.Errorf("the first bar says %q, want %q", c.Bars[0].Title, want)
	}
}

func TestRoundScale(t *testing.T) {
	t.Parallel()
	for most := range 5000 {
		top, step := roundScale(most)
		if top < most || step < 1 || top/step > 5 || top%step != 0 || (most > 4 && top > 2*most) {
			t.Fatalf("roundScale(%d) = %d, %d", most, top, step)
		}
	}
}

func TestPercentNeverClaimsAllOrNothing(t *testing.T) {
	t.Parallel()
	for want, given := range map[string][2]int{
		"–": {0, 0}, "100.0 %": {5, 5}, "99.9 %": {99999, 100000}, "0.0 %": {0, 7}, "0.1 %": {1, 100000}, "33.3 %": {1, 3}, "66.7 %": {2, 3},
	} {
		if got := percent(given[0], given[1]); got != want {
			t.Errorf("percent(%d, %d) = %q, want %q", given[0], given[1], got, want)
		}
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		return b.String()
	}
	if got := difference("a\nb\n", "a\nb\n"); got != nil {
		t.Errorf("the same: %v", got)
	}
	got := difference(lines(20), strings.Replace(lines(20), "line 10\n", "line ten\nline eleven\n", 1))
	want := []diffLine{
		{"jump", ""}, {"kept", "line 7"}, {"kept", "line 8"}, {"kept", "line 9"}, {"removed", "line 10"}, {"added", "line ten"}, {"added", "line eleven"},
		{"kept", "line 11"}, {"kept", "line 12"}, {"kept", "line 13"}, {"jump", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	started := time.Now()
	difference(lines(50_000), strings.ReplaceAll(lines(50_000), "1", "2"))
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("two long documents took %s", took)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
