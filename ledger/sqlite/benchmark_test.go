package sqlite_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/ledger"
)

const (
	tenant = "acme"
	noon   = engine.Instant(1_790_000_000)
)

// refundFact is a fact as payment providers send them, with a reference that
// does not grow with time, which is the harder case for an index.
func refundFact(tb testing.TB, n int) engine.Fact {
	tb.Helper()
	attributes, err := engine.ParseObject(fmt.Appendf(nil, `{"amount":%d.50,"currency":"USD","refund_id":"re_1Q2x%d","status":"succeeded"}`, n%500, n))
	if err != nil {
		tb.Fatal(err)
	}
	return engine.Fact{
		RawRef: fmt.Sprintf("evt_%09d", n*7919%1_000_000_007), Source: "stripe", Type: "refund_created",
		SubjectID: fmt.Sprintf("order_%d", n/4), SubjectKind: "order", OccurredAt: noon + engine.Instant(n%900), Attributes: attributes,
	}
}

func refundFacts(tb testing.TB, from, n int) []engine.Fact {
	tb.Helper()
	facts := make([]engine.Fact, n)
	for i := range facts {
		facts[i] = refundFact(tb, from+i)
	}
	return facts
}

func ingest(tb testing.TB, store ledger.Ledger, facts []engine.Fact) (counts ledger.Ingested) {
	tb.Helper()
	err := store.Update(tb.Context(), func(tx ledger.Tx) (err error) {
		counts, err = tx.IngestFacts(tb.Context(), tenant, ledger.FactBatch{Facts: facts, Trust: engine.Independent}, noon)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return counts
}

// BenchmarkIngestFacts measures facts a second, each batch one durable
// transaction with exact counting of duplicates and waking of actions. Making
// the facts is not measured.
func BenchmarkIngestFacts(b *testing.B) {
	const batch = 1000
	rows := func(b *testing.B, n int) {
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("new", func(b *testing.B) {
		store := inFile(b)
		n := 0
		for b.Loop() {
			b.StopTimer()
			facts := refundFacts(b, n, batch)
			b.StartTimer()
			n += ingest(b, store, facts).Ingested
		}
		rows(b, n)
	})
	b.Run("redelivered", func(b *testing.B) {
		store := inFile(b)
		facts := refundFacts(b, 0, batch)
		ingest(b, store, facts)
		n := 0
		for b.Loop() {
			n += ingest(b, store, facts).Duplicates
		}
		rows(b, n)
	})
	b.Run("waking", func(b *testing.B) {
		store := inFile(b)
		n := 0
		for b.Loop() {
			b.StopTimer()
			facts := refundFacts(b, n, batch)
			record(b, store, n/4, batch/4)
			b.StartTimer()
			counts := ingest(b, store, facts)
			if counts.Woken != batch/4 {
				b.Fatalf("%d actions were woken, want %d", counts.Woken, batch/4)
			}
			n += counts.Ingested
		}
		rows(b, n)
	})
	b.Run("one a transaction", func(b *testing.B) {
		store := inFile(b)
		n := 0
		for b.Loop() {
			b.StopTimer()
			facts := refundFacts(b, n, 1)
			b.StartTimer()
			n += ingest(b, store, facts).Ingested
		}
		rows(b, n)
	})
}

func library(tb testing.TB, name string) *contract.Contract {
	tb.Helper()
	document, err := os.ReadFile("../../contracts/" + name + ".yaml")
	if err != nil {
		tb.Fatal(err)
	}
	c, diagnostics := contract.Parse(name, document)
	if c == nil {
		tb.Fatal(diagnostics)
	}
	return c
}

// record records refunds of order_<from>..., each due at once.
func record(tb testing.TB, store ledger.Ledger, from, n int) []string {
	tb.Helper()
	actions := make([]ledger.RecordRequest, n)
	ids := make([]string, n)
	for i := range actions {
		id := fmt.Sprintf("act_%d", from+i)
		ids[i] = engine.ClaimID(tenant, id)
		actions[i] = ledger.RecordRequest{Verify: true, Action: engine.Action{
			ActionID: id, ContractID: "refund_workflow", SubjectID: fmt.Sprintf("order_%d", from+i), AgentID: "bot", RequestedAt: noon,
		}}
	}
	err := store.Update(tb.Context(), func(tx ledger.Tx) error {
		if err := tx.PublishContracts(tb.Context(), []*contract.Contract{library(tb, "refund_workflow")}, noon); err != nil {
			return err
		}
		results, err := ledger.Record(tb.Context(), tx, tenant, actions, noon)
		for _, r := range results {
			if r.Err != nil {
				tb.Fatal(r.Err)
			}
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return ids
}

func BenchmarkRecordActions(b *testing.B) {
	const batch = 500
	store := inFile(b)
	n := 0
	for b.Loop() {
		record(b, store, n, batch)
		n += batch
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "actions/s")
}

// BenchmarkEvaluate judges batches among many other actions and facts.
func BenchmarkEvaluate(b *testing.B) {
	const batch, batches = 500, 20
	store := inFile(b)
	c := library(b, "refund_workflow")
	var all [][]string
	for i := range batches {
		all = append(all, record(b, store, i*batch, batch))
		ingest(b, store, refundFacts(b, i*batch*4, batch*4))
	}
	b.Run("SQL", func(b *testing.B) {
		n := 0
		for b.Loop() {
			err := store.View(b.Context(), func(tx ledger.Tx) error {
				found, err := tx.Evaluate(b.Context(), tenant, c, all[n/batch%batches], nil)
				n += len(found)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "actions/s")
	})
	b.Run("SnapshotAndGo", func(b *testing.B) {
		n := 0
		for b.Loop() {
			err := store.View(b.Context(), func(tx ledger.Tx) error {
				snapshot, err := tx.Snapshot(b.Context(), tenant, c, all[n/batch%batches], nil)
				if err == nil {
					n += len(goeval.Evaluate(c, snapshot))
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "actions/s")
	})
}
