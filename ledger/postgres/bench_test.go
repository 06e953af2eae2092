package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
)

// BenchmarkIngestFacts measures, side by side in one run and batch by batch in
// turn, facts per second
//
//   - new: IngestFacts of facts that are new, in a transaction of their own
//   - redelivered: the same batch again
//   - copy: plain CopyFrom of as many rows into a table with the same indexes
//   - single: one INSERT ... ON CONFLICT DO NOTHING per row, each its own transaction
//
// on a server with the durability of production. The goals: new at least 60 %
// of copy, redelivered faster than copy, new at least 20 times single.
func BenchmarkIngestFacts(b *testing.B) {
	for _, size := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) { benchmarkIngest(b, size) })
	}
}

// rivals are the ways to write a batch, in the order in which a round runs them.
type rivals struct {
	store  *Store
	plain  *pgx.Conn
	now    engine.Instant
	spent  map[string]time.Duration
	rounds int
}

// singles is how many rows a round inserts one by one; more would take too long.
const singles = 50

func benchmarkIngest(b *testing.B, size int) {
	address := durableURL(b)
	execute(b, address, "CREATE TABLE plain_facts (LIKE facts INCLUDING ALL)")
	execute(b, address, "CREATE TABLE single_facts (LIKE facts INCLUDING ALL)")
	r := &rivals{store: open(b, address), plain: connect(b, address), now: noon, spent: map[string]time.Duration{}}
	r.round(b, batchOf(size, -1)) // prepares statements, and is not counted
	r.spent, r.rounds = map[string]time.Duration{}, 0
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		batch := batchOf(size, i)
		b.StartTimer()
		r.round(b, batch)
	}
	rate := func(name string, rows int) float64 { return float64(rows*r.rounds) / r.spent[name].Seconds() }
	fresh, plain := rate("new", size), rate("copy", size)
	b.ReportMetric(fresh, "new/s")
	b.ReportMetric(rate("redelivered", size), "redelivered/s")
	b.ReportMetric(plain, "copy/s")
	b.ReportMetric(rate("single", singles), "single/s")
	b.ReportMetric(fresh/plain, "new/copy")
	b.ReportMetric(rate("redelivered", size)/plain, "redelivered/copy")
	b.ReportMetric(fresh/rate("single", singles), "new/single")
}

func (r *rivals) round(b *testing.B, batch []engine.Fact) {
	ctx := b.Context()
	r.rounds++
	r.measure(b, "copy", func() error { return r.copy(ctx, batch) })
	r.measure(b, "new", func() error { return r.ingest(ctx, batch, ledger.Ingested{Ingested: len(batch)}) })
	r.measure(b, "redelivered", func() error { return r.ingest(ctx, batch, ledger.Ingested{Duplicates: len(batch)}) })
	r.measure(b, "single", func() error { return r.single(ctx, batch[:singles]) })
}

func (r *rivals) measure(b *testing.B, name string, f func() error) {
	start := time.Now()
	if err := f(); err != nil {
		b.Fatalf("%s: %v", name, err)
	}
	r.spent[name] += time.Since(start)
}

func (r *rivals) ingest(ctx context.Context, facts []engine.Fact, want ledger.Ingested) error {
	return r.store.Update(ctx, func(tx ledger.Tx) error {
		got, err := tx.IngestFacts(ctx, tenant, ledger.FactBatch{Facts: facts, Trust: engine.Shared}, r.now)
		if err == nil && (got.Ingested != want.Ingested || got.Duplicates != want.Duplicates) {
			err = fmt.Errorf("counted %+v, want %+v", got, want)
		}
		return err
	})
}

var plainColumns = []string{
	"tenant_id", "raw_ref", "source", "fact_type", "subject_id", "subject_kind",
	"occurred_at", "attributes", "content_hash", "connection", "ingested_at",
}

func (r *rivals) copy(ctx context.Context, facts []engine.Fact) error {
	_, err := r.plain.CopyFrom(ctx, pgx.Identifier{"plain_facts"}, plainColumns, pgx.CopyFromSlice(len(facts), func(i int) ([]any, error) {
		return row(&facts[i], r.now), nil
	}))
	return err
}

func (r *rivals) single(ctx context.Context, facts []engine.Fact) error {
	for i := range facts {
		_, err := r.plain.Exec(ctx, `INSERT INTO single_facts (tenant_id, raw_ref, source, fact_type, subject_id, subject_kind,
			occurred_at, attributes, content_hash, connection, ingested_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
			ON CONFLICT DO NOTHING`, row(&facts[i], r.now)...)
		if err != nil {
			return err
		}
	}
	return nil
}

func row(f *engine.Fact, now engine.Instant) []any {
	hash := f.ContentHash()
	return []any{
		tenant, f.RawRef, f.Source, f.Type, f.SubjectID, f.SubjectKind, int64(f.OccurredAt), f.Attributes.Text(), hash[:], "", int64(now),
	}
}

// batchOf makes facts of some 330 bytes, in the order in which a provider would send them.
func batchOf(size, round int) []engine.Fact {
	facts := make([]engine.Fact, size)
	for i := range facts {
		id := engine.ClaimID("bench", fmt.Sprintf("%d-%d", round, i)) // spread like a provider's ids
		facts[i] = engine.Fact{
			RawRef: "re_" + id, Source: "stripe", Type: "refund_created", SubjectID: fmt.Sprintf("order_%d_%d", round, i/4), SubjectKind: "order",
			OccurredAt: noon + engine.Instant(round*size+i),
			Attributes: parsed(fmt.Sprintf(`{"amount":%d.50,"currency":"USD","status":"succeeded","refund_id":"re_%s","reason":"customer_cancelled"}`, i, id)),
		}
	}
	return facts
}

// durableURL is a migrated database on a server that syncs to disk.
func durableURL(b *testing.B) string {
	b.Helper()
	address := pgserver.Start(b, pgserver.WithFsync()).Database(b)
	if err := migrate(b.Context(), address); err != nil {
		b.Fatal(err)
	}
	return address
}
