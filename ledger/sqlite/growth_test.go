package sqlite_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

var growthFacts = flag.Int("growth.facts", 20_000, "how many facts TestMemoryStaysFlat ingests")

// TestMemoryStaysFlat ingests facts in batches and looks at the memory on the
// way: what a process keeps does not grow with what the store holds. SQLite's
// own memory is outside the Go heap, so that the resident set is looked at too;
// it may grow by the page cache, 32 MiB a connection. Other tests do not run beside it.
//
//	go test ./ledger/sqlite -run TestMemoryStaysFlat -growth.facts 10000000 -timeout 2h -v
func TestMemoryStaysFlat(t *testing.T) {
	const batch, heapSlack, residentSlack = 1000, 8 << 20, 64 << 20
	store := inFile(t)
	every := max(*growthFacts/10/batch*batch, batch)
	var firstHeap, firstResident uint64
	for n := 0; n < *growthFacts; n += batch {
		if got := ingest(t, store, refundFacts(t, n, batch)); got.Ingested != batch {
			t.Fatalf("after %d facts: %+v, want %d new ones", n, got, batch)
		}
		done := n + batch
		if done%every != 0 {
			continue
		}
		heap, resident := liveHeap(), residentSet(t)
		if firstHeap == 0 {
			firstHeap, firstResident = heap, resident
		}
		t.Logf("%9d facts: %5.1f MiB heap in use, %6.1f MiB resident", done, float64(heap)/(1<<20), float64(resident)/(1<<20))
		if heap > firstHeap+heapSlack || resident > firstResident+residentSlack {
			t.Fatalf("after %d facts: %d bytes of heap, %d resident; after the first tenth: %d and %d", done, heap, resident, firstHeap, firstResident)
		}
	}
}

// liveHeap is what is in use after a collection.
func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// residentSet is the process's memory as the kernel counts it (proc(5)).
func residentSet(t *testing.T) uint64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	var kilobytes uint64
	if _, err := fmt.Sscan(after, &kilobytes); err != nil {
		t.Fatalf("VmRSS in /proc/self/status: %v", err)
	}
	return kilobytes << 10
}
