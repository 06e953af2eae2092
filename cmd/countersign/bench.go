package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// benchView is one line of figures. Rates are facts a second over all writers.
type benchView struct {
	Bench       string `json:"bench"`
	Dialect     string `json:"dialect"`
	Facts       int    `json:"facts"`
	Batch       int    `json:"batch"`
	Writers     int    `json:"writers"`
	New         int64  `json:"new_per_second"`
	Redelivered int64  `json:"redelivered_per_second"`
	// Tenant is the bench's own; Left is how many of its facts could not be removed.
	Tenant string `json:"tenant"`
	Left   int    `json:"facts_left"`
}

type benchFlags struct {
	store                 storeFlags
	facts, batch, writers int
}

func newBench(t *terminal) *cobra.Command {
	var flags benchFlags
	cmd := &cobra.Command{
		Use:   "ledger",
		Short: "Measure how many facts a store takes in a second",
		Long: `Writes facts of some 330 bytes, four a subject, in batches of one durable transaction each, with
exact counts; then the same again, all of them known. Prints facts a second; with -o json one line.

The facts are in a tenant of their own, named bench_ and a random number, and from the year 2000.
They are removed at the end as countersign retention removes them, which on PostgreSQL needs the
role countersign_retention; without it they stay, and it is said how to remove them. The name of
the tenant, its source and a note of what was dropped always stay. Other tenants are not touched,
and share the machine: run it where that does no harm.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.facts < 1 || flags.batch < 1 || flags.writers < 1 || flags.batch > 100_000 || flags.writers > 1000 {
				return usagef("--facts and --batch are at least 1, --batch at most 100000, --writers 1 to 1000")
			}
			return withStore(cmd.Context(), flags.store.url(), func(store ledger.Ledger) error {
				return runBench(cmd.Context(), t, store, flags)
			})
		},
	}
	flags.store.addStore(cmd, "sqlite:PATH or postgres://..., or memory: (gone at exit); COUNTERSIGN_STORE")
	cmd.Flags().IntVar(&flags.facts, "facts", 50_000, "how many")
	cmd.Flags().IntVar(&flags.batch, "batch", 1000, "facts a transaction")
	cmd.Flags().IntVar(&flags.writers, "writers", 1, "how many write at once")
	return group("bench", "Measure a store", cmd)
}

func runBench(ctx context.Context, t *terminal, store ledger.Ledger, flags benchFlags) error {
	var number [6]byte
	if _, err := rand.Read(number[:]); err != nil {
		return err
	}
	b := bench{store: store, tenant: "bench_" + hex.EncodeToString(number[:]), at: now()}
	if err := b.make(flags.facts, flags.batch); err != nil {
		return err
	}
	view := benchView{
		Bench: "ledger", Dialect: store.Capabilities().Dialect, Facts: flags.facts, Batch: flags.batch, Writers: flags.writers, Tenant: b.tenant,
	}
	b.bar = t.progress("facts", int64(2*flags.facts))
	var err error
	view.New, err = b.write(ctx, flags.writers, func(counts ledger.Ingested) int { return counts.Ingested })
	if err == nil {
		view.Redelivered, err = b.write(ctx, flags.writers, func(counts ledger.Ingested) int { return counts.Duplicates })
	}
	b.bar.done()
	// Also after an error, and when the command was interrupted.
	left, removeErr := b.remove(context.WithoutCancel(ctx), flags.facts)
	if view.Left = left; left > 0 {
		fmt.Fprintf(t.stderr, "up to %d facts of tenant %s stay (%v); remove them: countersign retention --tenant %s --older-than 30d\n", left, b.tenant, removeErr, b.tenant)
	}
	if err != nil {
		return err
	}
	return printBench(t, view)
}

func printBench(t *terminal, view benchView) error {
	if !t.json() {
		t.printf("%s, %d facts, %d a transaction, %d writing: %d new and %d redelivered facts a second\n",
			view.Dialect, view.Facts, view.Batch, view.Writers, view.New, view.Redelivered)
		return nil
	}
	line, err := json.Marshal(view)
	if err != nil {
		return err
	}
	t.printf("%s\n", line)
	return nil
}

// bench is a load of known shape.
type bench struct {
	store   ledger.Ledger
	tenant  string
	at      engine.Instant
	batches [][]engine.Fact

	progress sync.Mutex
	bar      *progress
	written  int64
}

// benchTime is when the facts of a bench happened: long enough ago for retention.
const benchTime engine.Instant = 946_684_800 // 2000-01-01T00:00:00Z

// make makes the facts before the clock runs.
func (b *bench) make(n, size int) error {
	for i := range n {
		sum := sha256.Sum256(fmt.Append(nil, b.tenant, i)) // spread, like a provider's references
		id := hex.EncodeToString(sum[:12])
		attributes, err := engine.ParseObject(fmt.Appendf(nil, `{"amount":%d.50,"currency":"USD","status":"succeeded","refund_id":"re_%s","reason":"customer_cancelled"}`, i%500, id))
		if err != nil {
			return err
		}
		f, err := engine.Fact{
			RawRef: "re_" + id, Source: "bench", Type: "refund_created", SubjectID: fmt.Sprintf("order_%d", i/4), SubjectKind: "order",
			OccurredAt: benchTime + engine.Instant(i), Attributes: attributes,
		}.Normalize()
		if err != nil {
			return err
		}
		if i%size == 0 {
			b.batches = append(b.batches, nil)
		}
		last := &b.batches[len(b.batches)-1]
		*last = append(*last, f)
	}
	return nil
}

// write ingests all batches and returns facts a second. counted says how many of
// a batch are what they should be.
func (b *bench) write(ctx context.Context, writers int, counted func(ledger.Ingested) int) (int64, error) {
	var next, facts atomic.Int64
	errs := make([]error, writers)
	var all sync.WaitGroup
	started := time.Now()
	for w := range writers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(b.batches)) && errs[w] == nil; i = next.Add(1) - 1 {
				errs[w] = b.ingest(ctx, b.batches[i], counted)
				facts.Add(int64(len(b.batches[i])))
			}
		})
	}
	all.Wait()
	spent := time.Since(started)
	return int64(float64(facts.Load()) / spent.Seconds()), errors.Join(errs...)
}

func (b *bench) ingest(ctx context.Context, batch []engine.Fact, counted func(ledger.Ingested) int) error {
	var counts ledger.Ingested
	err := b.store.Update(ctx, func(tx ledger.Tx) (err error) {
		counts, err = tx.IngestFacts(ctx, b.tenant, ledger.FactBatch{Facts: batch, Connection: engine.FactsAPI, Trust: engine.Shared}, b.at)
		return err
	})
	if err != nil {
		return err
	}
	b.progress.Lock()
	b.written += int64(len(batch))
	b.bar.at(b.written)
	b.progress.Unlock()
	if n := counted(counts); n != len(batch) {
		return fmt.Errorf("of a batch of %d facts the store counted %d: %+v", len(batch), n, counts)
	}
	return nil
}

// remove drops the facts again and returns how many of them stay.
func (b *bench) remove(ctx context.Context, facts int) (left int, err error) {
	done, err := ledger.Expire(ctx, b.store, b.tenant, b.at.Sub(ledger.LeastRetention), b.at, false, nil)
	if err != nil {
		return facts - done.Facts, err
	}
	return done.KeptFacts, nil
}
