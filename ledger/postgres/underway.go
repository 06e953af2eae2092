package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// Evidence wakes the actions that it sees, and an action is judged by the
// evidence that it sees. Two transactions that overlap see nothing of each
// other, so one of both has to wait, and it is not the writer:
//
//   - Who writes evidence (facts, links, watermarks, trace contexts, and actions, which
//     are evidence in the aggregates of their peers, decision D17) announces itself with a shared advisory lock before it looks whom to wake, and holds
//     it until its commit can be seen.
//   - Who has leased work waits, after the commit of the lease and holding
//     nothing, until all that were announced at that moment have ended. Only then does
//     it take the snapshot in which it judges.
//
// Evidence that was announced before is in that snapshot; evidence announced
// later sees the leased row and changes its generation, so that the work stays
// due. An action announced later does not: it is judged on its own lookback, and
// "an earlier action that passed stays PASS when a later one pushes the total over"
// (specification, aggregate_exceeds). Nobody waits for the lock itself, so nothing can deadlock, and writers never wait.
//
// Links and undoing facts also have to meet where the action settled long ago and
// nobody leases it. A batch with new links leaves a note (new_links); before a verifier
// leases, it waits in the same way and looks at those links again.
var (
	announceEvidence = named("AnnounceEvidence")
	evidenceUnderWay = named("EvidenceUnderWay")
	noteLinks        = named("NoteLinks")
	takeLinks        = named("TakeLinks")
	commitSoon       = named("CommitSoon")
)

const (
	// evidencePatience is how long a verifier waits for evidence that is under
	// way; a writer that hangs is ended by the server's idle_in_transaction_session_timeout.
	evidencePatience = 10 * time.Second
	longestGlance    = 20 * time.Millisecond
	// linksAtOnce bounds how many batches of links are looked at again in one transaction.
	linksAtOnce = 100
)

// leasing is work that a transaction has leased.
type leasing struct {
	tenant, owner string
	due           []ledger.Due
	// incomplete are actions that a trace context may complete.
	incomplete []string
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// enter announces evidence for a tenant and makes the tenant known.
func (t *tx) enter(ctx context.Context, tenant string, now engine.Instant) error {
	batch := &pgx.Batch{}
	queueEnter(batch, tenant, now)
	return fail("announce evidence", t.db.SendBatch(ctx, batch).Close())
}

func queueEnter(batch *pgx.Batch, tenant string, now engine.Instant) {
	batch.Queue(announceEvidence.Text, tenant)
	batch.Queue(ownTenant.Text, tenant, now)
}

// awaitEvidence is called after leases were committed. When it fails they are given back.
func (s *Store) awaitEvidence(ctx context.Context, leases []leasing) error {
	for _, l := range leases {
		err := s.quiet(ctx, s.pool, l.tenant)
		if err == nil {
			err = s.completeLeased(ctx, l)
		}
		if err != nil {
			return errors.Join(err, s.giveBack(ctx, leases))
		}
	}
	return nil
}

// quiet waits until all evidence of the tenant that is under way now has ended.
func (s *Store) quiet(ctx context.Context, db querier, tenant string) error {
	waited, pause := time.Duration(0), time.Millisecond
	open, err := underWay(ctx, db, tenant, nil)
	for err == nil && len(open) > 0 {
		if waited >= s.patience {
			return fmt.Errorf("%w: %d transactions that write evidence of tenant %s have been under way for more than %s; nothing is judged without it (look at pg_stat_activity)",
				ledger.ErrUnavailable, len(open), tenant, s.patience)
		}
		if err = rest(ctx, pause); err != nil {
			return err
		}
		waited += pause
		pause = min(2*pause, longestGlance)
		open, err = underWay(ctx, db, tenant, open)
	}
	return err
}

// underWay are the transactions that write evidence now; of those in among only, unless it is nil.
func underWay(ctx context.Context, db querier, tenant string, among []string) ([]string, error) {
	rows, err := db.Query(ctx, evidenceUnderWay.Text, tenant, among)
	if err != nil {
		return nil, fail(evidenceUnderWay.Name, err)
	}
	open, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return open, fail(evidenceUnderWay.Name, err)
}

// completeLeased gives leased actions the agent and the session of trace
// contexts that were recorded while they were (decision D31).
func (s *Store) completeLeased(ctx context.Context, l leasing) error {
	if len(l.incomplete) == 0 {
		return nil
	}
	return s.again(ctx, func() error {
		_, err := s.pool.Exec(ctx, completeClaims.Text, l.tenant, l.incomplete, []string{})
		return fail(completeClaims.Name, err)
	})
}

// giveBack also works when ctx is over.
func (s *Store) giveBack(ctx context.Context, leases []leasing) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	return s.Update(ctx, func(tx ledger.Tx) error {
		for _, l := range leases {
			if err := tx.ReleaseDue(ctx, l.tenant, l.owner, l.due); err != nil {
				return err
			}
		}
		return nil
	})
}

// noteLinks leaves new links for a second look.
func (t *tx) noteLinks(ctx context.Context, tenant string, links []engine.Link) error {
	if len(links) == 0 {
		return nil
	}
	from, to := ends(links)
	t.wake = true
	_, err := t.execute(ctx, noteLinks, tenant, from, to)
	return err
}

// lookAgain wakes settled actions that new links bring near an undoing fact,
// once all facts that were under way with these links have ended. It holds
// only the notes that it takes, which nobody waits for. With it a transaction
// begins that leases work, and need not be on disk.
func (t *tx) lookAgain(ctx context.Context, tenant string, now engine.Instant) error {
	type note struct{ From, To []string }
	var notes []note
	batch := &pgx.Batch{}
	batch.Queue(commitSoon.Text)
	batch.Queue(takeLinks.Text, tenant, linksAtOnce).Query(into(takeLinks, &notes, pgx.RowToStructByPos[note]))
	if err := t.send(ctx, "LookAgain", batch); err != nil || len(notes) == 0 {
		return err
	}
	if err := t.store.quiet(ctx, t.db, tenant); err != nil {
		return err
	}
	var links []engine.Link
	for _, n := range notes {
		for i := range min(len(n.From), len(n.To)) {
			links = append(links, engine.Link{SubjectID: n.From[i], LinkedSubjectID: n.To[i]})
		}
	}
	woken := map[string]bool{}
	err := t.wakeUndone(ctx, tenant, evidence{links: links}, now, woken)
	t.wake = t.wake || len(woken) > 0 || len(notes) == linksAtOnce
	return err
}
