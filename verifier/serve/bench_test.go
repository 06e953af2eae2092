package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
	"github.com/countersign-otel/countersign/verifier/heap"
	"github.com/countersign-otel/countersign/verifier/keys"
)

// sidecarEnv makes the test binary a sidecar: its memory is to be measured alone.
const sidecarEnv = "COUNTERSIGN_BENCH_STORE"

func runSidecar(store string) {
	defer heap.Relax()() // as the program does
	c := Default()
	c.Store, c.Listen, c.AddressFile, c.Migrate = store, "127.0.0.1:0", os.Getenv("COUNTERSIGN_BENCH_ADDRESS"), false
	c.Limits.KeyRate = 0 // one key opens them all
	if err := Run(context.Background(), c, Options{Version: "bench", Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// BenchmarkWaiters holds 10,000 requests at GET /v1/actions/{ref}/wait of one
// sidecar on PostgreSQL, each for an action of its own, and then lets 500 actions
// a second settle. It measures the sidecar's memory as the kernel counts it, how many
// transactions the store sees a second while all wait, and how long after the
// commit of a settled verdict its waiter has the answer. The goals: 300 MB, none
// that grows with the waiters, and 100 milliseconds.
func BenchmarkWaiters(b *testing.B) {
	const waiters, perSecond = 10_000, 500
	url := pgserver.Start(b, pgserver.WithSetting("track_commit_timestamp=on"), pgserver.WithSetting("shared_buffers=256MB")).Database(b)
	w := &waiting{b: b, answers: make([]time.Time, waiters), requested: engine.Instant(time.Now().Unix() - 60)}
	w.prepare(url, waiters)
	for b.Loop() { // it is long, and asked for once
		w.start(url)
		w.until("all are pending", func() bool {
			return w.count("SELECT count(*) FROM claims WHERE latest_status = 'pending'") == waiters
		})
		b.ReportMetric(w.resident(), "MB-idle")
		w.wait(waiters)
		b.ReportMetric(w.resident(), "MB-waiting")
		time.Sleep(11 * time.Second) // until idle connections have reported what came before
		before, began := w.count("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"), time.Now()
		time.Sleep(5 * time.Second) // what is measured is what happens meanwhile
		b.ReportMetric(float64(w.count("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")-before)/time.Since(began).Seconds(), "transactions/s-waiting")
		w.settle(waiters, perSecond)
		w.group.Wait()
		b.ReportMetric(w.resident(), "MB-after")
		w.report()
	}
}

type waiting struct {
	b         *testing.B
	ledger    ledger.Ledger
	conn      *pgx.Conn
	requested engine.Instant
	secret    string
	address   string
	pid       int

	group    sync.WaitGroup
	mu       sync.Mutex
	answers  []time.Time
	timedOut int
}

func (w *waiting) check(err error) {
	w.b.Helper()
	if err != nil {
		w.b.Fatal(err)
	}
}

func (w *waiting) count(sql string) (n int64) {
	w.b.Helper()
	w.check(w.conn.QueryRow(w.b.Context(), sql).Scan(&n))
	return n
}

func (w *waiting) until(what string, holds func() bool) {
	w.b.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			w.b.Fatalf("not in time: %s", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// prepare records actions with all their facts but the last.
func (w *waiting) prepare(url string, n int) {
	ctx := w.b.Context()
	var err error
	w.ledger, err = open.Ledger(ctx, url)
	w.check(err)
	w.b.Cleanup(func() { _ = w.ledger.Close() })
	w.conn, err = pgx.Connect(ctx, url)
	w.check(err)
	w.b.Cleanup(func() { _ = w.conn.Close(context.Background()) })
	w.check(w.ledger.Migrate(ctx))
	_, err = publish(ctx, w.ledger, []string{"../../contracts/refund_workflow.yaml"}, w.requested)
	w.check(err)
	_, secret, err := keys.Create(ctx, w.ledger, keys.Request{Role: ledger.RoleRecorder}, w.requested)
	w.check(err)
	w.secret = string(secret)
	for from := 0; from < n; from += 1000 {
		var facts []engine.Fact
		var requests []ledger.RecordRequest
		for i := from; i < min(from+1000, n); i++ {
			for _, f := range [][3]string{{"shopify", "order_status", `{"status": "eligible"}`}, {"stripe", "refund_created", `{"amount": 180}`}, {"shopify", "order_cancelled", `{}`}, {"crm", "note_added", `{}`}} {
				facts = append(facts, w.fact(i, f[0], f[1], f[2]))
			}
			requests = append(requests, ledger.RecordRequest{Verify: true, Action: engine.Action{
				ActionID: fmt.Sprintf("act_%d", i), ContractID: "refund_workflow", SubjectID: fmt.Sprintf("order_%d", i), RequestedAt: w.requested, Params: engine.EmptyObject(),
			}})
		}
		w.check(w.ledger.Update(ctx, func(tx ledger.Tx) error {
			if _, err := ledger.Ingest(ctx, tx, engine.DefaultTenant, ledger.FactBatch{Facts: facts, Trust: engine.Independent}, w.requested); err != nil {
				return err
			}
			_, err := ledger.Record(ctx, tx, engine.DefaultTenant, requests, w.requested)
			return err
		}))
	}
}

func (w *waiting) fact(i int, source, kind, attributes string) engine.Fact {
	parsed, err := engine.ParseObject([]byte(attributes))
	w.check(err)
	at := w.requested + 1
	if kind == "order_status" {
		at = w.requested - 30
	}
	return engine.Fact{RawRef: fmt.Sprintf("%s_%d", kind, i), Source: source, Type: kind, SubjectID: fmt.Sprintf("order_%d", i), SubjectKind: "order", OccurredAt: at, Attributes: parsed}
}

// start starts the sidecar as a process of its own.
func (w *waiting) start(url string) {
	executable, err := os.Executable()
	w.check(err)
	file := filepath.Join(w.b.TempDir(), "address")
	sidecar := exec.CommandContext(w.b.Context(), executable)
	sidecar.Env = append(os.Environ(), sidecarEnv+"="+url, "COUNTERSIGN_BENCH_ADDRESS="+file)
	sidecar.Stderr = os.Stderr
	w.check(sidecar.Start())
	w.b.Cleanup(func() {
		_ = sidecar.Process.Kill()
		_ = sidecar.Wait()
	})
	w.pid = sidecar.Process.Pid
	w.until("the sidecar serves", func() bool {
		text, err := os.ReadFile(file)
		w.address = strings.TrimPrefix(strings.TrimSpace(string(text)), "http://")
		return err == nil
	})
}

// resident is the sidecar's memory in MB, as the kernel counts it.
func (w *waiting) resident() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.pid))
	w.check(err)
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		w.b.Fatal("no VmRSS")
	}
	kib, err := strconv.ParseFloat(string(found[1]), 64)
	w.check(err)
	return kib * 1024 / 1e6
}

// wait opens all requests, a hundred at once.
func (w *waiting) wait(n int) {
	opening := make(chan struct{}, 100)
	for i := range n {
		opening <- struct{}{}
		w.group.Go(func() {
			conn, err := new(net.Dialer).DialContext(w.b.Context(), "tcp", w.address)
			if err == nil {
				_, err = fmt.Fprintf(conn, "GET /v1/actions/act_%d/wait?timeout=60 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: %s\r\n\r\n", i, w.secret)
			}
			<-opening
			if err != nil {
				w.b.Error(err)
				return
			}
			defer conn.Close()
			w.answer(i, conn)
		})
	}
	w.until("all wait", func() bool {
		response, err := http.Get("http://" + w.address + "/metrics")
		w.check(err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		w.check(err)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.timedOut > 0 {
			w.b.Fatal("the machine is too slow: the first have waited a minute before the last began")
		}
		return strings.Contains(string(text), fmt.Sprintf("countersign_waiters %d\n", n))
	})
}

func (w *waiting) answer(i int, conn net.Conn) {
	response, err := http.ReadResponse(bufio.NewReaderSize(conn, 1024), nil)
	if err != nil {
		w.b.Errorf("waiter %d: %v", i, err)
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	at := time.Now()
	if err != nil || response.StatusCode != http.StatusOK {
		w.b.Errorf("waiter %d: %d %v", i, response.StatusCode, err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(string(body), `"timed_out":true`) {
		w.timedOut++
		return
	}
	w.answers[i] = at
}

// settle pushes the last facts, a twentieth of a second's at once.
func (w *waiting) settle(n, perSecond int) {
	const tick = 50 * time.Millisecond
	each := perSecond / int(time.Second/tick)
	started := time.Now()
	for from := 0; from < n; from += each {
		if ahead := time.Duration(from/each)*tick - time.Since(started); ahead > 0 {
			time.Sleep(ahead) // the load, not a wait for something
		}
		var facts []engine.Fact
		for i := from; i < min(from+each, n); i++ {
			facts = append(facts, w.fact(i, "messaging", "customer_notified", `{}`))
		}
		w.check(w.ledger.Update(w.b.Context(), func(tx ledger.Tx) error {
			_, err := ledger.Ingest(w.b.Context(), tx, engine.DefaultTenant, ledger.FactBatch{Facts: facts, Trust: engine.Independent}, engine.Instant(time.Now().Unix()))
			return err
		}))
	}
	w.b.ReportMetric(float64(n)/time.Since(started).Seconds(), "settled/s")
}

// report compares answers with the commits of their verdicts.
func (w *waiting) report() {
	rows, err := w.conn.Query(w.b.Context(), `SELECT substr(c.action_id, 5)::int, min(pg_xact_commit_timestamp(r.xmin))
		FROM runs r JOIN claims c ON c.tenant_id = r.tenant_id AND c.claim_id = r.claim_id WHERE r.status = 'settled' GROUP BY 1`)
	w.check(err)
	var latencies []float64
	within := 0
	var i int
	var committed time.Time
	_, err = pgx.ForEachRow(rows, []any{&i, &committed}, func() error {
		if at := w.answers[i]; !at.IsZero() {
			ms := float64(at.Sub(committed).Microseconds()) / 1000
			latencies = append(latencies, ms)
			if ms <= 100 {
				within++
			}
		}
		return nil
	})
	w.check(err)
	if len(latencies) == 0 {
		w.b.Fatal("nobody was answered")
	}
	slices.Sort(latencies)
	w.b.ReportMetric(latencies[len(latencies)/2], "p50-ms")
	w.b.ReportMetric(latencies[len(latencies)*99/100], "p99-ms")
	w.b.ReportMetric(latencies[len(latencies)-1], "max-ms")
	w.b.ReportMetric(100*float64(within)/float64(len(w.answers)), "%-within-100ms")
	w.b.ReportMetric(float64(w.timedOut), "timed-out")
}
