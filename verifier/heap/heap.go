// Package heap lets a program that needs little memory collect its garbage less often.
//
// Go collects when as much garbage has come together as there is living memory
// (GOGC=100). A sidecar's living memory is a few megabytes while every batch that
// it settles leaves as many behind: it would collect dozens of times a second
// to save memory that nobody misses.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Least is up to where a heap grows without a collection, in bytes.
const Least = 64 << 20

// usual is GOGC where nobody sets it.
const usual = 100

// Relax lets the heap grow to Least from one collection to the next. A heap that is
// larger than half of that is collected as usual, at twice its size. GOGC in the
// environment stands instead, as does a memory limit (GOMEMLIMIT) in any case.
// The returned function puts things back; it may be called more than once.
func Relax() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	r := &relaxed{before: debug.SetGCPercent(usual), percent: usual}
	r.afterCollection()
	return sync.OnceFunc(r.stop)
}

type relaxed struct {
	mu              sync.Mutex
	before, percent int
	stopped         bool
}

// sentinel is garbage from its beginning: a collection finds it. It must not be tiny, or it would share its block with others that live.
type sentinel struct{ _ [64]byte }

// afterCollection sets the percentage now and after every collection to come.
func (r *relaxed) afterCollection() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	// Setting it stops the world for a moment.
	if percent := percentFor(living()); percent != r.percent {
		debug.SetGCPercent(percent)
		r.percent = percent
	}
	runtime.AddCleanup(&sentinel{}, (*relaxed).afterCollection, r)
}

func (r *relaxed) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	debug.SetGCPercent(r.before)
}

// living is what the last collection left, in bytes; 0 before the first.
func living() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return Least // a Go that does not tell
	}
	return sample[0].Value.Uint64()
}

// percentFor is GOGC for a heap of which so much lives, in steps, so that small
// changes change nothing. Go itself collects nothing below 4 MiB at 100, and takes
// that for larger by the percentage.
func percentFor(living uint64) int {
	const step, smallest = 50, 4 << 20
	percent := int((Least*100)/max(living, smallest)) - 100 //nolint:gosec // at most 1500
	return max(usual, percent/step*step)
}
