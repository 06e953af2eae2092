package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestPercentFor(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		living uint64
		want   int
	}{
		{0, 1500}, {mib, 1500}, {4 * mib, 1500}, {8 * mib, 700}, {9 * mib, 600}, {16 * mib, 300}, {31 * mib, 100},
		{32 * mib, 100}, {64 * mib, 100}, {1 << 40, 100},
	} {
		if got := percentFor(test.living); got != test.want {
			t.Errorf("%d bytes: %d %%, want %d", test.living, got, test.want)
		}
	}
}

var kept [][]byte

func TestRelaxFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(80))
	stop := Relax()
	defer stop()
	small := awaitPercent(t, func(percent int) bool { return percent > usual })
	for range 64 {
		kept = append(kept, make([]byte, 1<<20))
	}
	awaitPercent(t, func(percent int) bool { return percent == usual })
	kept = nil
	awaitPercent(t, func(percent int) bool { return percent >= small/2 })
	stop()
	stop()
	if got := percentNow(); got != 80 {
		t.Errorf("after stop: %d %%, want 80 as before", got)
	}
	runtime.GC()
	runtime.GC()
	if got := percentNow(); got != 80 {
		t.Errorf("a collection after stop set %d %%", got)
	}
}

// awaitPercent collects garbage until the percentage is as wanted.
func awaitPercent(t *testing.T, wanted func(int) bool) int {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		runtime.GC()
		percent := percentNow()
		if wanted(percent) {
			return percent
		}
		if time.Now().After(deadline) {
			t.Fatalf("still %d %%", percent)
		}
	}
}

// percentNow only reads: setting it and putting it back could undo what a
// collection set between the two.
func percentNow() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64()) //nolint:gosec // a percentage
}

func TestRelaxLeavesGOGCAlone(t *testing.T) {
	t.Setenv("GOGC", "33")
	defer debug.SetGCPercent(debug.SetGCPercent(33))
	defer Relax()()
	runtime.GC()
	runtime.GC()
	if got := percentNow(); got != 33 {
		t.Errorf("%d %%, want 33", got)
	}
}
