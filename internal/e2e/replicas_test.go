package e2e

import (
	"bufio"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/examples/stack"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
)

var rounds = flag.Int("rounds", 6, "how often TestKilledReplicas kills")

const (
	roundActions = 25
	// roundTransactions is about how many a round takes at four actions a batch.
	roundTransactions = 40
	// roundTimeout bounds the way to the point where a replica is killed, and to the last verdict.
	roundTimeout = time.Minute
)

// TestKilledReplicas runs two sidecars over one PostgreSQL and kills one of
// them, or both, at a random point of the work of each round. In the end every
// action is verified and settled in exactly one run, the chain is whole, and
// every event was delivered, each under one id however often.
func TestKilledReplicas(t *testing.T) {
	ctx := t.Context()
	url := pgserver.Start(t).Database(t)
	tool(t, "migrate", "--store", url)
	tool(t, "contracts", "publish", filepath.Join(root, "contracts"), "--store", url)
	store, err := open.Ledger(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	watch, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close(context.WithoutCancel(ctx))
	told := listening(t)
	replicas := []*replica{{url: url, emit: told.URL}, {url: url, emit: told.URL}}
	for _, r := range replicas {
		t.Cleanup(r.kill)
	}

	kills := 0
	for round := range *rounds {
		recordRound(t, store, round)
		for _, r := range replicas {
			r.start(t)
		}
		awaitTransactions(t, watch, store, 1+rand.IntN(roundTransactions), (round+1)*roundActions)
		for _, r := range replicas[:1+rand.IntN(len(replicas))] {
			r.kill()
			kills++
		}
		replicas[0], replicas[1] = replicas[1], replicas[0]
	}
	for _, r := range replicas {
		r.start(t)
	}
	awaitSettled(t, store, *rounds*roundActions)
	checkRuns(t, store, *rounds*roundActions)
	told.await(t, *rounds*roundActions)
	tool(t, "log", "verify", "--store", url)
	t.Logf("%d kills, %d actions, %d events in %d deliveries", kills, *rounds*roundActions, len(told.ids), told.deliveries)
}

func tool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(filepath.Join(root, "bin", stack.SidecarBinary), args...).CombinedOutput(); err != nil {
		t.Fatalf("countersign %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// replica is a sidecar that is killed and started again.
type replica struct {
	url, emit string
	process   *exec.Cmd
	log       strings.Builder
}

// start starts it, unless it runs, and returns when it answers.
func (r *replica) start(t *testing.T) {
	t.Helper()
	if r.process != nil {
		return
	}
	r.log.Reset()
	r.process = exec.Command(filepath.Join(root, "bin", stack.SidecarBinary), "serve", "--store", r.url, "--listen", "localhost:0",
		"--settlement-lease-for", "2s", "--settlement-batch-size", "4", "--emit-endpoint", r.emit, "--emit-protocol", "http/protobuf")
	r.process.Stderr = &r.log
	out, err := r.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "serving ") {
		_ = r.process.Wait()
		t.Fatalf("the sidecar says %q, %v:\n%s", line, err, r.log.String())
	}
}

// kill is SIGKILL: nothing is finished, nothing is given back.
func (r *replica) kill() {
	if r.process == nil {
		return
	}
	_ = r.process.Process.Signal(os.Kill)
	_ = r.process.Wait()
	r.process = nil
}

// recordRound stores what a collector would: the facts first, so that one run is enough, then the actions.
func recordRound(t *testing.T, store ledger.Ledger, round int) {
	t.Helper()
	now := engine.Instant(time.Now().Unix())
	batch := ledger.FactBatch{Connection: engine.FactsAPI, Trust: engine.Shared}
	var actions []ledger.NewAction
	for i := range roundActions {
		order := fmt.Sprintf("order_%04d_%02d", round, i)
		for _, effect := range [][2]string{{"shopify", "order_status"}, {"stripe", "refund_created"}, {"shopify", "order_cancelled"}, {"crm", "note_added"}, {"messaging", "customer_notified"}} {
			fact := engine.Fact{Source: effect[0], Type: effect[1], SubjectID: order, SubjectKind: "order", OccurredAt: now, Attributes: objectOf(t, `{"status": "eligible"}`)}
			fact, err := fact.Normalize()
			if err != nil {
				t.Fatal(err)
			}
			batch.Facts = append(batch.Facts, fact)
		}
		actions = append(actions, ledger.NewAction{Verify: true, Action: engine.Action{
			ActionID: "act_" + order, ContractID: "refund_workflow", ContractVersion: 1, ActionType: "refund_order",
			SubjectID: order, SubjectKind: "order", RequestedAt: now, Params: objectOf(t, `{"amount": 20}`),
		}})
	}
	err := store.Update(t.Context(), func(tx ledger.Tx) error {
		if _, err := tx.IngestFacts(t.Context(), engine.DefaultTenant, batch, now); err != nil {
			return err
		}
		_, err := tx.RecordActions(t.Context(), engine.DefaultTenant, actions, now)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func objectOf(t *testing.T, text string) engine.Object {
	t.Helper()
	o, err := engine.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// awaitTransactions waits until the replicas were seen n times in the middle of
// a transaction, or have nothing left to do: some point of their work, other every time.
func awaitTransactions(t *testing.T, watch *pgx.Conn, store ledger.Ledger, n, all int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), roundTimeout)
	defer cancel()
	for seen := 0; seen < n; {
		var inside bool
		err := watch.QueryRow(ctx, `SELECT count(*) > 0 FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL`).Scan(&inside)
		if err != nil {
			t.Fatal(err)
		}
		if inside {
			seen++
		} else if settledIn(t, ctx, store) >= all {
			return
		}
	}
}

// awaitSettled waits until at least n actions are settled.
func awaitSettled(t *testing.T, store ledger.Ledger, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), roundTimeout)
	defer cancel()
	_, err := stack.Await(ctx, fmt.Sprintf("%d settled actions", n), func(ctx context.Context) (int, bool, error) {
		settled := settledIn(t, ctx, store)
		return settled, settled >= n, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func settledIn(t *testing.T, ctx context.Context, store ledger.Ledger) (settled int) {
	t.Helper()
	err := store.View(ctx, func(tx ledger.Tx) error {
		summary, err := tx.Summary(ctx, engine.DefaultTenant, ledger.ActionFilter{})
		settled = summary.Pass - summary.Pending
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return settled
}

// checkRuns wants one run for each action: all its facts were there before it.
func checkRuns(t *testing.T, store ledger.Ledger, n int) {
	t.Helper()
	err := store.View(t.Context(), func(tx ledger.Tx) error {
		seen, filter := 0, ledger.ActionFilter{Limit: 500}
		for more := true; more; more = filter.Cursor != "" {
			page, err := tx.ListActions(t.Context(), engine.DefaultTenant, filter)
			if err != nil {
				return err
			}
			for _, a := range page.Actions {
				seen++
				runs, err := tx.Runs(t.Context(), engine.DefaultTenant, a.ClaimID)
				if err != nil {
					return err
				}
				if len(runs) != 1 || runs[0].Status != ledger.Settled {
					t.Errorf("action %s has %d runs, want one that is settled", a.Action.ActionID, len(runs))
				}
			}
			filter.Cursor = page.Next
		}
		if seen != n {
			t.Errorf("%d actions, want %d", seen, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// listener takes events as a tracing backend would.
type listener struct {
	*httptest.Server
	mu sync.Mutex
	// ids holds the event ids of each action's action.verified.
	ids        map[string]map[string]bool
	deliveries int
}

func listening(t *testing.T) *listener {
	t.Helper()
	l := &listener{ids: map[string]map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/logs", l.take)
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	})
	l.Server = httptest.NewServer(mux)
	t.Cleanup(l.Close)
	return l
}

func (l *listener) take(w http.ResponseWriter, r *http.Request) {
	body, err := unzipped(r)
	request := plogotlp.NewExportRequest()
	if err != nil || request.UnmarshalProto(body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, resource := range request.Logs().ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				if record.EventName() != "action.verified" {
					continue
				}
				action, _ := record.Attributes().Get("countersign.action.id")
				id, _ := record.Attributes().Get("countersign.event.id")
				if l.ids[action.Str()] == nil {
					l.ids[action.Str()] = map[string]bool{}
				}
				l.ids[action.Str()][id.Str()] = true
				l.deliveries++
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// await waits until the settlement of n actions was told, and wants one id for each.
func (l *listener) await(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), roundTimeout)
	defer cancel()
	_, err := stack.Await(ctx, "all events", func(context.Context) (int, bool, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.ids), len(l.ids) == n, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for action, ids := range l.ids {
		if len(ids) != 1 {
			t.Errorf("the settlement of %s was told under %d ids, want one", action, len(ids))
		}
	}
}

func unzipped(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	reader, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}
