package torture

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// reporting is the configuration with a rule for what the CRM reports, and with
// small batches, so that many wait behind each other.
var reporting = strings.NewReplacer(
	`condition: Body("id") == nil,`, `condition: Body("id") == nil and Body("complete_to") == nil,`,
	"    rules:\n", "    rules:\n      - {name: complete, source: crm, condition: Body(\"complete_to\") != nil, watermark: Body(\"complete_to\")}\n",
	"min_size: 200", "min_size: 25",
).Replace(configuration)

const (
	reportRounds  = 40
	itemsPerRound = 100
)

// TestReportsOvertakeNoFact (decision D12): the CRM sends a round of items at
// once, and when all are acknowledged reports that it is complete so far. Each
// item happened a second after the one before, so that whatever the watermark
// is, it says how many facts have to stand behind it. It is compared all the
// while: under load, with the database away, when the collector is killed with
// a full queue, and when what was under way comes behind newer things.
func TestReportsOvertakeNoFact(t *testing.T) {
	stores := []func(*testing.T) *store{newPostgres}
	if all { // SQLite has one writer: little can overtake anything
		stores = append(stores, newSQLite)
	}
	for _, open := range stores {
		s := open(t)
		t.Run(s.name, func(t *testing.T) {
			s.t = t
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			s.migrate(ctx)
			s.tarry(ctx)
			c := newCollectorWith(t, s.url, "5000", reporting)
			r := &reporter{run{ctx, c, newSender(t, c.address), s, t}, time.Now().Add(-6 * time.Hour).Truncate(time.Second)}
			watching, stop := context.WithCancel(ctx)
			var watch sync.WaitGroup
			watch.Go(func() { r.watch(watching) })
			r.rounds()
			r.await(ctx, "everything is said to be there", func() bool {
				r.report(reportRounds * itemsPerRound)
				at, _, err := s.watermark(ctx)
				return err == nil && at.Int64 == r.at(reportRounds*itemsPerRound-1).Unix()
			})
			stop()
			watch.Wait()
		})
	}
}

type reporter struct {
	run
	began time.Time
}

// at is when an item happened.
func (r *reporter) at(n int) time.Time { return r.began.Add(time.Duration(n) * time.Second) }

// rounds delivers everything, and breaks things in between.
func (r *reporter) rounds() {
	for round := range reportRounds {
		switch round {
		case 8, 32:
			r.end(syscall.SIGKILL)
			r.start()
		case 16:
			r.store.down(r.ctx)
		case 24: // what was tried and failed is put behind what waits
			r.end(syscall.SIGKILL)
			r.start()
			r.store.up(r.ctx)
		case 4, 12, 28, 36:
			r.moves(round * itemsPerRound)
		}
		r.sender.deliver(r.ctx, r.round(round))
		r.report((round + 1) * itemsPerRound)
	}
}

// moves waits for the watermark to move on, with so many items sent.
func (r *reporter) moves(sent int) {
	r.t.Helper()
	before, _, err := r.store.watermark(r.ctx)
	r.await(r.ctx, "the watermark moves", func() bool {
		r.report(sent)
		at, _, now := r.store.watermark(r.ctx)
		return err == nil && now == nil && at.Int64 > before.Int64
	})
}

func (r *reporter) round(round int) [][]item {
	var all [][]item
	for n := round * itemsPerRound; n < (round+1)*itemsPerRound; n += perDelivery {
		var one []item
		for i := n; i < n+perDelivery; i++ {
			made := itemOf(i, r.at(i))
			one = append(one, made)
		}
		all = append(all, one)
	}
	return all
}

// report says that the first n items have been sent.
func (r *reporter) report(n int) {
	body, err := json.Marshal(map[string]string{"complete_to": r.at(n - 1).UTC().Format(time.RFC3339)})
	if err != nil {
		r.t.Error(err)
		return
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for r.ctx.Err() == nil && r.post(r.ctx, "/crm", body, http.Header{"X-Api-Key": {evidenceKey}}) != http.StatusOK {
		<-again.C // a sender waits
	}
}

// watch compares until ctx ends.
func (r *reporter) watch(ctx context.Context) {
	seen := map[int64]bool{}
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for ctx.Err() == nil {
		at, facts, err := r.store.watermark(ctx)
		if err == nil && at.Valid {
			seen[at.Int64] = true
			if want := at.Int64 - r.began.Unix() + 1; facts != want {
				r.t.Errorf("the watermark is %s, and %d of %d facts are there", time.Unix(at.Int64, 0).UTC(), facts, want)
				return
			}
		}
		<-look.C
	}
	if len(seen) < 5 {
		r.t.Errorf("the watermark stood at %d places: too few to see anything", len(seen))
	}
}

// tarry makes batches take from nothing to two seconds, so that they overtake
// each other and the queue fills. SQLite has one writer, and nothing that waits.
func (s *store) tarry(ctx context.Context) {
	if s.server == nil {
		return
	}
	s.exec(ctx, `CREATE FUNCTION tarry() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(2 * random()); RETURN NULL; END $$`,
		`CREATE TRIGGER tarry AFTER INSERT ON facts FOR EACH STATEMENT EXECUTE FUNCTION tarry()`)
}

// watermark is that of the CRM, with how many of its facts happened until then, in one snapshot.
func (s *store) watermark(ctx context.Context) (at sql.NullInt64, facts int64, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT w.at, (SELECT count(*) FROM facts WHERE source = 'crm' AND occurred_at <= w.at)
		FROM (SELECT max(watermark) AS at FROM sources WHERE source = 'crm') w`).Scan(&at, &facts)
	if err != nil {
		err = fmt.Errorf("the watermark: %w", err)
	}
	return at, facts, err
}
