package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/examples/stack"
)

// all runs everything, which takes minutes.
var all = os.Getenv("COUNTERSIGN_TORTURE") != ""

// longOutage is longer than the five minutes after which exporters give up by default.
const longOutage = 5*time.Minute + 20*time.Second

// result is one line of the table.
type result struct {
	scenario, store            string
	seconds                    float64
	starts                     int
	acked, refused, unanswered int64
}

var (
	resultsLock sync.Mutex
	results     []result
)

func TestMain(m *testing.M) {
	if _, err := os.Stat(filepath.Join(root, "bin", stack.CollectorBinary)); err != nil {
		command := exec.Command("make", "-C", root, "build")
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		if err := command.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "torture: make build:", err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if all {
		printResults()
	}
	os.Exit(code)
}

func printResults() {
	fmt.Println("| Fault | Store | Acknowledged | Told to come again | Without an answer | Starts | Seconds |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, r := range results {
		fmt.Printf("| %s | %s | %d | %d | %d | %d | %.0f |\n", r.scenario, r.store, r.acked, r.refused, r.unanswered, r.starts, r.seconds)
	}
}

// run is a fault: what it does around the delivery of all items.
type run struct {
	ctx context.Context
	*collector
	*sender
	store *store
	t     *testing.T
}

// scenario is one fault.
type scenario struct {
	name string
	// quick ones run with the other tests.
	quick bool
	// queue is how many requests the collector's queue holds.
	queue string
	// limit bounds the whole.
	limit time.Duration
	fault func(r *run)
}

var scenarios = []scenario{
	{"SIGKILL of the collector, five times", true, "1000", 2 * time.Minute, signalled(syscall.SIGKILL)},
	{"SIGTERM of the collector, five times", false, "1000", 3 * time.Minute, signalled(syscall.SIGTERM)},
	{"database away for longer than the default retry", false, "20000", 15 * time.Minute, awayFor(longOutage)},
	{"database killed in the middle of a commit", false, "1000", 3 * time.Minute, killedInCommit},
	{"queue full", true, "40", 2 * time.Minute, queueFull},
	{"poison amid good items", true, "1000", 2 * time.Minute, poison},
	{"everything twice, shuffled", false, "1000", 3 * time.Minute, shuffled},
	{"sender's clock off by an hour", false, "1000", 3 * time.Minute, clockOff},
}

// TestNothingIsLostAndNothingDoubled sends 10,000 items through each fault.
func TestNothingIsLostAndNothingDoubled(t *testing.T) {
	for _, sc := range scenarios {
		if !sc.quick && !all {
			continue
		}
		for _, open := range []func(*testing.T) *store{newPostgres, newSQLite} {
			t.Run(strings.NewReplacer(" ", "_", ",", "").Replace(sc.name), func(t *testing.T) {
				if sc.limit > 10*time.Minute {
					t.Parallel() // both wait, mostly
				}
				sc.run(t, open(t))
			})
		}
	}
}

func (sc *scenario) run(t *testing.T, store *store) {
	ctx, cancel := context.WithTimeout(t.Context(), sc.limit)
	defer cancel()
	began := time.Now()
	store.migrate(ctx)
	c := newCollector(t, store.url, sc.queue)
	r := &run{ctx, c, newSender(t, c.address), store, t}
	sc.fault(r)
	store.settled(ctx)
	// What is still queued would come now: nothing may.
	c.end(syscall.SIGTERM)
	store.settled(ctx)
	store.checkEach(ctx)
	resultsLock.Lock()
	defer resultsLock.Unlock()
	results = append(results, result{
		sc.name, store.name, time.Since(began).Seconds(), c.starts, r.acked.Load(), r.refused.Load(), r.broken.Load(),
	})
}

// during delivers everything while something else happens.
func (r *run) during(deliveries [][]item, happens func()) {
	r.t.Helper()
	var delivery sync.WaitGroup
	delivery.Go(func() { r.sender.deliver(r.ctx, deliveries) })
	happens()
	delivery.Wait()
	r.delivered()
}

// deliver returns when everything is acknowledged.
func (r *run) deliver(deliveries [][]item) {
	r.t.Helper()
	r.sender.deliver(r.ctx, deliveries)
	r.delivered()
}

func (r *run) delivered() {
	r.t.Helper()
	if err := r.ctx.Err(); err != nil {
		r.t.Fatalf("%d items were acknowledged: %v", r.acked.Load(), err)
	}
}

// signalled ends the collector five times under load and starts it again.
func signalled(signal syscall.Signal) func(*run) {
	return func(r *run) {
		r.during(deliveries(noon), func() {
			for i := range int64(5) {
				if !r.reaches(r.ctx, (i+1)*items/7) {
					return
				}
				r.end(signal)
				r.start()
			}
		})
	}
}

// awayFor takes the database away with the queue half full, for a while.
func awayFor(outage time.Duration) func(*run) {
	return func(r *run) {
		r.during(deliveries(noon), func() {
			if !r.reaches(r.ctx, items/4) {
				return
			}
			r.store.down(r.ctx)
			select {
			case <-time.After(outage):
			case <-r.ctx.Done():
			}
			r.store.up(r.ctx)
		})
	}
}

// killedInCommit: on PostgreSQL a trigger holds some commits up until the server
// is killed in the midst of one. On SQLite the collector itself commits, so it is killed.
func killedInCommit(r *run) {
	if r.store.server == nil {
		killedWhileWriting(r)
		return
	}
	r.store.exec(r.ctx,
		`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON facts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.subject_id LIKE '%777') EXECUTE FUNCTION hold()`)
	killed := 0
	r.during(deliveries(noon), func() {
		for killed < 3 && r.ctx.Err() == nil {
			var n int
			err := r.store.db.QueryRowContext(r.ctx,
				`SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query ILIKE 'commit%'`).Scan(&n)
			if err != nil || n == 0 {
				time.Sleep(5 * time.Millisecond)
				continue
			}
			r.store.server.Crash(r.t)
			r.store.server.Resume(r.t)
			killed++
		}
	})
	if killed < 3 {
		r.t.Errorf("the server was killed in %d commits", killed)
	}
}

// killedWhileWriting kills whenever facts have just come in.
func killedWhileWriting(r *run) {
	r.during(deliveries(noon), func() {
		for range 5 {
			seen := r.store.count(r.ctx, "true")
			r.await(r.ctx, "more facts come in", func() bool {
				n := r.store.count(r.ctx, "true")
				return n > seen || n == items
			})
			r.end(syscall.SIGKILL)
			r.start()
		}
	})
}

// queueFull: with the database away the queue fills, and senders are told so;
// nobody is told that it was taken.
func queueFull(r *run) {
	r.store.down(r.ctx)
	r.during(deliveries(noon), func() {
		r.await(r.ctx, "senders are told to come again", func() bool { return r.refused.Load() >= 20 })
		if acked := r.acked.Load(); acked == items {
			r.t.Error("everything was acknowledged with a full queue")
		}
		r.store.up(r.ctx)
	})
}

// poison: the database refuses ten items for a reason that nobody foresaw.
func poison(r *run) {
	const refuses = "raw_ref LIKE 'crm:poison_%'"
	if r.store.server != nil {
		r.store.exec(r.ctx, "ALTER TABLE facts ADD CONSTRAINT of_an_operator CHECK (NOT "+refuses+")")
	} else {
		r.store.exec(r.ctx, "CREATE TRIGGER of_an_operator BEFORE INSERT ON facts WHEN NEW."+refuses+" BEGIN SELECT RAISE(ABORT, 'of an operator'); END")
	}
	all := deliveries(noon)
	for i := range 10 {
		all[i*50] = append(all[i*50], item{ID: fmt.Sprintf("poison_%d", i), Order: "order_poison", At: noon.Format(time.RFC3339)})
	}
	r.deliver(all)
	r.store.settled(r.ctx)
	r.await(r.ctx, "the poison is kept apart", func() bool {
		var n int
		err := r.store.db.QueryRowContext(r.ctx, "SELECT count(*) FROM rejected_facts WHERE reason = 'store' AND "+refuses).Scan(&n)
		return err == nil && n == 10
	})
}

// shuffled delivers everything twice, in two orders, in other company.
func shuffled(r *run) {
	seed := rand.Uint64()
	r.t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var each []item
	for _, one := range deliveries(noon) {
		each = append(each, one...)
	}
	var all [][]item
	for range 2 {
		random.Shuffle(len(each), func(i, j int) { each[i], each[j] = each[j], each[i] })
		for n := 0; n < len(each); n += perDelivery {
			all = append(all, append([]item(nil), each[n:n+perDelivery]...))
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	r.deliver(all)
}

// clockOff: half of the items say that they happen in an hour, half that they
// did an hour ago; both stand as they were said. Where a sender signs the time,
// it is refused, which is no acknowledgement, until its clock is right.
func clockOff(r *run) {
	now := time.Now()
	ahead, behind := deliveries(now.Add(time.Hour)), deliveries(now.Add(-time.Hour))
	all := make([][]item, 0, len(ahead))
	for i := range ahead {
		if i%2 == 0 {
			all = append(all, ahead[i])
		} else {
			all = append(all, behind[i])
		}
	}
	r.deliver(all)
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		if status := r.signed(r.ctx, item{ID: "signed", Order: "order_signed", At: now.UTC().Format(time.RFC3339)}, now.Add(off)); status != 401 {
			r.t.Errorf("a signature that is off by %s is answered %d", off, status)
		}
	}
	if n := r.store.count(r.ctx, "source = 'stripe'"); n != 0 {
		r.t.Errorf("%d facts of refused deliveries", n)
	}
	if status := r.signed(r.ctx, item{ID: "signed", Order: "order_signed", At: now.UTC().Format(time.RFC3339)}, time.Now()); status != 200 {
		r.t.Errorf("with the right clock: %d", status)
	}
	r.await(r.ctx, "the signed one is there", func() bool { return r.store.count(r.ctx, "source = 'stripe'") == 1 })
	stands := fmt.Sprintf("source = 'crm' AND occurred_at IN (%d, %d)", now.Add(time.Hour).Unix(), now.Add(-time.Hour).Unix())
	r.store.settled(r.ctx)
	if n := r.store.count(r.ctx, stands); n != items {
		r.t.Errorf("%d items stand as they were said", n)
	}
}
