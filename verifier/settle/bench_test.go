package settle_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
	"github.com/countersign-otel/countersign/verifier/heap"
	"github.com/countersign-otel/countersign/verifier/settle"
)

// world is a durable PostgreSQL store (fsync on) with the contract refund_workflow.
type world struct {
	ledger   ledger.Ledger
	url      string
	contract *contract.Contract
	// history is how many facts there are about each order from before its action.
	history int
}

func newWorld(b *testing.B) *world {
	b.Helper()
	url := pgserver.Start(b, pgserver.WithFsync(), pgserver.WithSetting("track_commit_timestamp=on"), pgserver.WithSetting("shared_buffers=256MB"),
		pgserver.WithSetting("max_wal_size=4GB"), pgserver.WithSetting("checkpoint_timeout=30min")).Database(b)
	l, err := open.Ledger(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	text, err := os.ReadFile("../../contracts/refund_workflow.yaml")
	if err != nil {
		b.Fatal(err)
	}
	c, diagnostics := contract.Parse("refund_workflow.yaml", text)
	if c == nil {
		b.Fatal(diagnostics)
	}
	if err := l.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	w := &world{ledger: l, url: url, contract: c}
	w.update(b, func(tx ledger.Tx) error { return tx.PublishContracts(b.Context(), []*contract.Contract{c}, requested) })
	return w
}

func (w *world) update(b *testing.B, f func(ledger.Tx) error) {
	b.Helper()
	if err := w.ledger.Update(b.Context(), f); err != nil {
		b.Fatal(err)
	}
}

// parts are the five facts that make action i pass: the state before, three effects, and the last effect.
func parts(b *testing.B, i int) []engine.Fact {
	b.Helper()
	made := make([]engine.Fact, 0, 5)
	for j, f := range []struct {
		source, kind, attributes string
		after                    engine.Instant
	}{
		{"shopify", "order_status", `{"status": "eligible", "total": 180.0}`, -30}, {"stripe", "refund_created", `{"amount": 180.0, "currency": "USD"}`, 7},
		{"shopify", "order_cancelled", `{}`, 9}, {"crm", "note_added", `{}`, 11}, {"messaging", "customer_notified", `{}`, 12},
	} {
		attributes, err := engine.ParseObject([]byte(f.attributes))
		if err != nil {
			b.Fatal(err)
		}
		made = append(made, engine.Fact{
			RawRef: fmt.Sprintf("evt_%d_%d", i, j), Source: f.source, Type: f.kind, SubjectID: fmt.Sprintf("order_%d", i), SubjectKind: "order",
			OccurredAt: requested + f.after, Attributes: attributes,
		})
	}
	return made
}

func refund(b *testing.B, i int) ledger.RecordRequest {
	b.Helper()
	params, err := engine.ParseObject([]byte(`{"amount": 180.0, "currency": "USD"}`))
	if err != nil {
		b.Fatal(err)
	}
	return ledger.RecordRequest{Verify: true, Action: engine.Action{
		ActionID: fmt.Sprintf("act_%d", i), ContractID: "refund_workflow", SubjectID: fmt.Sprintf("order_%d", i), AgentID: "support-agent",
		RequestedAt: requested, Params: params, TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331",
	}}
}

// past are n facts about order i from the days before its action.
func past(b *testing.B, i, n int) []engine.Fact {
	b.Helper()
	attributes, err := engine.ParseObject([]byte(`{"status": "paid", "total": 180.0}`))
	if err != nil {
		b.Fatal(err)
	}
	made := make([]engine.Fact, n)
	for j := range made {
		made[j] = engine.Fact{
			RawRef: fmt.Sprintf("evt_%d_past_%d", i, j), Source: "shopify", Type: "order_status", SubjectID: fmt.Sprintf("order_%d", i), SubjectKind: "order",
			OccurredAt: requested.Sub(engine.Duration(j+1) * engine.Hour), Attributes: attributes,
		}
	}
	return made
}

// fill records actions from..to with all their facts; they are due then.
func (w *world) fill(b *testing.B, from, to int) (claims []string) {
	b.Helper()
	const at = requested + 60
	for ; from < to; from += 1000 {
		var facts []engine.Fact
		var requests []ledger.RecordRequest
		for i := from; i < min(from+1000, to); i++ {
			facts = append(append(facts, parts(b, i)...), past(b, i, w.history)...)
			requests = append(requests, refund(b, i))
			claims = append(claims, engine.ClaimID(tenant, requests[len(requests)-1].Action.ActionID))
		}
		w.update(b, func(tx ledger.Tx) error {
			if _, err := ledger.Ingest(b.Context(), tx, tenant, ledger.FactBatch{Facts: facts, Trust: engine.Independent}, at); err != nil {
				return err
			}
			_, err := ledger.Record(b.Context(), tx, tenant, requests, at)
			return err
		})
	}
	return claims
}

// BenchmarkSettle measures how many actions a second are settled: leased,
// judged in SQL and in Go, compared, sealed, chained, stored, put into the outbox
// and taken from the queue, durably, by two workers; and beside it, in the same
// run, round by round, how many the evaluation statement alone judges, on one
// connection and on two. The goals: 3,000 a second, and half of the statement alone.
// Beside other work on the machine the times of the processors say more: those of
// an action in this process and in the server, settled and evaluated alone.
// With facts=5 an order has no past; the more it has, the more there is to judge.
func BenchmarkSettle(b *testing.B) {
	for _, c := range []struct{ history, batchSize int }{{0, 500}, {0, 2000}, {20, 500}, {95, 500}} {
		b.Run(fmt.Sprintf("facts=%d/batch=%d", c.history+5, c.batchSize), func(b *testing.B) { benchmarkSettle(b, c.history, c.batchSize) })
	}
}

func benchmarkSettle(b *testing.B, history, batchSize int) {
	const size, workers = 6000, 2
	defer heap.Relax()() // as the sidecar does
	w := newWorld(b)
	w.history = history
	server := w.server(b)
	var settling, alone, both time.Duration
	var settlingCPU, aloneCPU [2]time.Duration
	rounds := 0
	for b.Loop() {
		claims := w.fill(b, rounds*size, (rounds+1)*size)
		w.analyze(b)
		rounds++
		server.during(&aloneCPU, func() { alone += w.evaluate(b, claims, batchSize, 1) })
		both += w.evaluate(b, claims, batchSize, workers)
		server.during(&settlingCPU, func() { settling += w.settle(b, size, batchSize, workers) })
	}
	rate := func(d time.Duration) float64 { return float64(rounds*size) / d.Seconds() }
	b.ReportMetric(rate(settling), "settled/s")
	b.ReportMetric(rate(alone), "evaluated/s")
	b.ReportMetric(rate(both), "evaluated-by-two/s")
	b.ReportMetric(rate(settling)/rate(alone), "settled/evaluated")
	b.ReportMetric(rate(settling)/rate(both), "settled/evaluated-by-two")
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(rounds*size) }
	b.ReportMetric(each(settlingCPU[0]), "settle-here-cpu-µs")
	b.ReportMetric(each(settlingCPU[1]), "settle-server-cpu-µs")
	b.ReportMetric(each(aloneCPU[0]), "evaluate-here-cpu-µs")
	b.ReportMetric(each(aloneCPU[1]), "evaluate-server-cpu-µs")
}

// server is the process of the store's server; 0 where the system does not tell about processes.
type server int

func (w *world) server(b *testing.B) server {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), w.url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())
	var folder string
	if err := conn.QueryRow(b.Context(), "SELECT setting FROM pg_settings WHERE name = 'data_directory'").Scan(&folder); err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "postmaster.pid"))
	if err != nil {
		b.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		b.Fatal(err)
	}
	return server(pid)
}

// during adds what f takes of the processors: in this process, and in the server.
func (s server) during(spent *[2]time.Duration, f func()) {
	here, there := own(), s.spent()
	f()
	spent[0] += own() - here
	spent[1] += s.spent() - there
}

func own() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// spent is the time that the server and its processes have taken of the processors so far.
func (s server) spent() time.Duration {
	const tick = 10 * time.Millisecond // the unit of these files on Linux
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	var ticks int64
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// What follows the name: state, parent, ..., and user and system time from 11 on, then those of ended children.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		number := func(i int) int64 {
			n, _ := strconv.ParseInt(fields[i], 10, 64)
			return n
		}
		switch strconv.Itoa(int(s)) {
		case filepath.Base(filepath.Dir(file)):
			ticks += number(11) + number(12) + number(13) + number(14)
		case fields[1]:
			ticks += number(11) + number(12)
		}
	}
	return time.Duration(ticks) * tick
}

func (w *world) analyze(b *testing.B) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), w.url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())
	if _, err := conn.Exec(b.Context(), "ANALYZE"); err != nil {
		b.Fatal(err)
	}
}

func (w *world) evaluate(b *testing.B, claims []string, batchSize, workers int) time.Duration {
	b.Helper()
	batches := make(chan []string, len(claims)/batchSize+1)
	for chunk := range slices.Chunk(claims, batchSize) {
		batches <- chunk
	}
	close(batches)
	started := time.Now()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for batch := range batches {
				err := w.ledger.View(b.Context(), func(tx ledger.Tx) error {
					judged, err := tx.Evaluate(b.Context(), tenant, w.contract, batch, nil)
					if err == nil && len(judged) != len(batch) {
						err = fmt.Errorf("%d of %d were judged", len(judged), len(batch))
					}
					return err
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	return time.Since(started)
}

// settle runs a verifier until all that is due has settled.
func (w *world) settle(b *testing.B, due, batchSize, workers int) time.Duration {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var mu sync.Mutex
	settled := 0
	v := settle.New(settle.Config{
		Ledger: w.ledger, Contracts: ledger.NewContractCache(8), Owner: "bench", Now: func() engine.Instant { return requested + 60 },
		BatchSize: batchSize, Workers: workers,
		OnStored: func(_ string, runs []ledger.Run) {
			mu.Lock()
			defer mu.Unlock()
			for i := range runs {
				if runs[i].Status == ledger.Settled && runs[i].Policy.Raw == engine.Verified {
					settled++
				}
			}
			if settled == due {
				cancel()
			}
		},
	})
	started := time.Now()
	if err := v.Run(ctx); err != nil {
		b.Fatal(err)
	}
	if settled != due {
		b.Fatalf("%d of %d settled", settled, due)
	}
	return time.Since(started)
}

// BenchmarkSettleLatency records 500 actions a second whose last fact comes a
// moment later, while a verifier runs, and measures from the commit of each
// action's last fact to the commit of its settled verdict, by the times that
// PostgreSQL notes of its commits. The goals: a median of 50 and a p99 of 250 milliseconds.
func BenchmarkSettleLatency(b *testing.B) {
	const perSecond, tick = 500, 20 * time.Millisecond
	const each = perSecond / int(time.Second/tick)
	w := newWorld(b)
	w.fill(b, 0, 2000)
	w.settle(b, 2000, 500, 2) // prepares statements
	w.analyze(b)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	now := func() engine.Instant { return requested + 60 }
	v := settle.New(settle.Config{Ledger: w.ledger, Contracts: ledger.NewContractCache(8), Owner: "bench", Now: now})
	var running sync.WaitGroup
	running.Go(func() {
		if err := v.Run(ctx); err != nil {
			b.Error(err)
		}
	})
	next, seconds := 2000, 20
	var late []time.Duration
	for b.Loop() {
		first := next
		started := time.Now()
		for n := range seconds * int(time.Second/tick) {
			if behind := time.Since(started) - time.Duration(n)*tick; behind < 0 {
				time.Sleep(-behind) // the load, not a wait for something
			} else {
				late = append(late, behind)
			}
			w.arrive(b, next, each)
			next += each
		}
		w.settled(b, next)
		b.ReportMetric(float64(next-first)/time.Since(started).Seconds(), "actions/s")
	}
	cancel()
	running.Wait()
	w.latencies(b)
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Milliseconds()), "behind-ms") // of the load generator: above a few, the machine cannot keep up
}

// arrive records some actions with all facts but the last in one transaction, and the last facts in another.
func (w *world) arrive(b *testing.B, from, n int) {
	b.Helper()
	var early, last []engine.Fact
	var requests []ledger.RecordRequest
	for i := from; i < from+n; i++ {
		facts := parts(b, i)
		early, last = append(early, facts[:4]...), append(last, facts[4])
		requests = append(requests, refund(b, i))
	}
	w.update(b, func(tx ledger.Tx) error {
		if _, err := ledger.Ingest(b.Context(), tx, tenant, ledger.FactBatch{Facts: early, Trust: engine.Independent}, requested+60); err != nil {
			return err
		}
		_, err := ledger.Record(b.Context(), tx, tenant, requests, requested+60)
		return err
	})
	w.update(b, func(tx ledger.Tx) error {
		_, err := ledger.Ingest(b.Context(), tx, tenant, ledger.FactBatch{Facts: last, Trust: engine.Independent}, requested+60)
		return err
	})
}

// settled waits until all actions are.
func (w *world) settled(b *testing.B, actions int) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), w.url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())
	deadline := time.Now().Add(time.Minute)
	for {
		var n int
		if err := conn.QueryRow(b.Context(), "SELECT count(*) FROM claims WHERE tenant_id = $1 AND settled_policy = 'VERIFIED'", tenant).Scan(&n); err != nil {
			b.Fatal(err)
		}
		if n == actions {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d of %d actions settled within a minute after the last one", n, actions)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// latencies reports from the commit of the last fact to that of the first settled run.
func (w *world) latencies(b *testing.B) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), w.url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())
	var n int
	var median, high, most float64
	err = conn.QueryRow(b.Context(), `
WITH times AS (
  SELECT 1000 * extract(epoch FROM min(pg_xact_commit_timestamp(r.xmin)) - min(pg_xact_commit_timestamp(f.xmin))) AS ms
  FROM facts f JOIN claims c ON c.tenant_id = f.tenant_id AND c.subject_id = f.subject_id
  JOIN runs r ON r.tenant_id = c.tenant_id AND r.claim_id = c.claim_id AND r.status = 'settled'
  WHERE f.tenant_id = $1 AND f.raw_ref LIKE 'evt\_%\_4' AND substr(f.subject_id, 7)::int >= 2000
  GROUP BY c.claim_id
)
SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY ms), percentile_cont(0.99) WITHIN GROUP (ORDER BY ms), max(ms) FROM times`, tenant).Scan(&n, &median, &high, &most)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(median, "p50-ms")
	b.ReportMetric(high, "p99-ms")
	b.ReportMetric(most, "max-ms")
	b.ReportMetric(float64(n), "measured")
}
