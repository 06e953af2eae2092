package benchpeers

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/countersign-otel/countersign/internal/pgserver"
)

// nothing is a job that does nothing.
type nothing struct {
	N int `json:"n"`
}

func (nothing) Kind() string { return "nothing" }

type worker struct {
	river.WorkerDefaults[nothing]
	done *atomic.Int64
}

func (w *worker) Work(context.Context, *river.Job[nothing]) error {
	w.done.Add(1)
	return nil
}

// BenchmarkRiverJobs measures how many jobs that do nothing River works off a
// second, on a server as BenchmarkSettle of verifier/settle has it: fsync on, and
// the jobs there before the clock runs.
func BenchmarkRiverJobs(b *testing.B) {
	const size = 6000
	pool, err := pgxpool.New(b.Context(), pgserver.Start(b, pgserver.WithFsync(), pgserver.WithSetting("shared_buffers=256MB"),
		pgserver.WithSetting("max_wal_size=4GB"), pgserver.WithSetting("checkpoint_timeout=30min")).Database(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := migrator.Migrate(b.Context(), rivermigrate.DirectionUp, nil); err != nil {
		b.Fatal(err)
	}
	var working time.Duration
	rounds := 0
	for b.Loop() {
		rounds++
		working += work(b, driver, pool, size)
	}
	b.ReportMetric(float64(rounds*size)/working.Seconds(), "jobs/s")
}

func work(b *testing.B, driver *riverpgxv5.Driver, pool *pgxpool.Pool, size int) time.Duration {
	b.Helper()
	var done atomic.Int64
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{done: &done})
	client, err := river.NewClient(driver, &river.Config{
		Logger: slog.New(slog.DiscardHandler), Workers: workers, FetchCooldown: river.FetchCooldownMin,
		// As many as River's own benchmark has.
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2000}},
	})
	if err != nil {
		b.Fatal(err)
	}
	jobs := make([]river.InsertManyParams, size)
	for i := range jobs {
		jobs[i].Args = nothing{N: i}
	}
	if _, err := client.InsertManyFast(b.Context(), jobs); err != nil {
		b.Fatal(err)
	}
	if _, err := pool.Exec(b.Context(), "ANALYZE"); err != nil {
		b.Fatal(err)
	}
	started := time.Now()
	if err := client.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	// Worked off is what the table says is completed, as a verdict is what is committed.
	for completed := 0; completed < size; time.Sleep(5 * time.Millisecond) {
		if err := pool.QueryRow(b.Context(), "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&completed); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(started)
	if err := client.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
	if done.Load() != int64(size) {
		b.Fatalf("%d of %d jobs were worked", done.Load(), size)
	}
	if _, err := pool.Exec(b.Context(), "TRUNCATE river_job"); err != nil {
		b.Fatal(err)
	}
	return took
}
