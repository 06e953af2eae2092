package verifiedactionsreceiver

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
)

// BenchmarkReceipts is all that is done with an authenticated batch, in memory.
func BenchmarkReceipts(b *testing.B) {
	for _, n := range []int{1, 50} {
		b.Run(fmt.Sprint("receipts=", n), func(b *testing.B) {
			s := bare(b, new(consumertest.TracesSink))
			s.next = consumertest.NewNop()
			s.now = func() time.Time { return testNow }
			key := s.keys["demo"]
			wires := newSender(b, "").chain("a", n)
			bytes := 0
			for _, wire := range wires {
				bytes += len(wire)
			}
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			for b.Loop() {
				items := make([]item, n)
				for i := range items {
					items[i].wire = wires[i]
				}
				s.open(key, items)
				if err := s.place(context.Background(), key, items); err != nil {
					b.Fatal(err)
				}
				if err := s.consume(context.Background(), key, pending(items)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "receipts/s")
		})
	}
}

// BenchmarkOpen is the reading and checking of one receipt.
func BenchmarkOpen(b *testing.B) {
	for _, version := range []struct {
		name string
		key  KeyConfig
		make func(testing.TB, string) *sender
	}{
		{"v1", KeyConfig{APIKey: testKey}, newSender},
		{"v2", KeyConfig{APIKey: testKeyV2}, newSenderV2},
	} {
		b.Run(version.name, func(b *testing.B) {
			made, errs := version.key.parse("")
			if err := errors.Join(errs...); err != nil {
				b.Fatal(err)
			}
			wire := version.make(b, "").chain("a", 1)[0]
			b.SetBytes(int64(len(wire)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := made.key.Open(wire); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHistory is what remembering costs with the collector's file storage.
func BenchmarkHistory(b *testing.B) {
	config, id := testConfig(), component.MustNewID("file_storage")
	config.Storage = &id
	s, base := startIn(b, config, consumertest.NewNop(), withFiles(b, b.TempDir()))
	a := newSender(b, base)
	const n = 50
	round := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		round++
		items := make([]item, n)
		for i, wire := range a.chain(fmt.Sprint("s", round), n) {
			items[i].wire = wire
		}
		b.StartTimer()
		s.open(s.keys["demo"], items)
		if err := s.deliver(context.Background(), s.keys["demo"], items); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "receipts/s")
}

// BenchmarkActions is the reading of a message and the making of its spans.
func BenchmarkActions(b *testing.B) {
	s := bare(b, new(consumertest.TracesSink))
	body := []byte(messageOf(goldenActions))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		payloads, _, err := s.readActions(body)
		if err != nil {
			b.Fatal(err)
		}
		s.actionTraces(payloads, testNow)
	}
}
