package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	lockClaims       = named("LockClaims")
	heldLeases       = named("LeasesOf")
	startChain       = named("StartChain")
	lockChainHead    = named("LockChainHead")
	setChainHead     = named("SetChainHead")
	setLatest        = named("SetLatest")
	addEvents        = named("AddEvents")
	scheduleDue      = named("ScheduleDue")
	finishDue        = named("FinishDue")
	scheduleUnleased = named("ScheduleUnleased")
	finishUnleased   = named("FinishUnleased")
	latestRuns       = named("LatestRuns")
	settledClaims    = named("SettledClaims")
	runsOf           = named("Runs")
)

// StoreRuns implements ledger.Verification. Locks are taken in one order by
// all: actions, due rows, and last the head of the chain, which is held
// shortest because all verifiers of a tenant meet there.
func (t *tx) StoreRuns(ctx context.Context, tenant string, runs []ledger.Run) ([]ledger.Run, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	runs, err := t.current(ctx, tenant, runs)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	ends := leaseEndsOf(latestOf(runs))
	head, err := t.lockForRuns(ctx, tenant, runs, &ends)
	if err != nil {
		return nil, err
	}
	sealed, hashes, head := head.Append(runs)
	if err := t.copyVerdicts(ctx, tenant, sealed); err != nil {
		return nil, err
	}
	if err := t.copyRuns(ctx, tenant, sealed, hashes); err != nil {
		return nil, err
	}
	batch := &pgx.Batch{}
	batch.Queue(setChainHead.Text, tenant, head.Seq, head.Hash[:], head.RunHash[:])
	queueLatest(batch, tenant, latestOf(sealed))
	t.queueEvents(batch, tenant, sealed)
	ends.queueWoken(batch, tenant)
	if t.wake {
		batch.Queue(notify.Text)
		t.wake = false
	}
	return sealed, t.send(ctx, "StoreRuns", batch)
}

// current leaves runs out whose action was changed meanwhile and may not be. Where
// that can be, it costs a round trip more; all actions and due rows are locked in
// it, so that the order of locks stays that of all: who gives back what is left
// out then waits for nobody.
func (t *tx) current(ctx context.Context, tenant string, runs []ledger.Run) ([]ledger.Run, error) {
	judged := ledger.Judged(runs)
	if len(judged) == 0 {
		return runs, nil
	}
	claims, leased, owners := leasesOf(runs)
	var recorded []engine.Action
	batch := &pgx.Batch{}
	batch.Queue(lockClaims.Text, tenant, claims)
	batch.Queue(heldLeases.Text, tenant, leased, owners)
	batch.Queue(snapshotActions.Text, tenant, judged).Query(into(snapshotActions, &recorded, (&verified{}).scanAction))
	err := t.send(ctx, "JudgedActions", batch)
	return ledger.Current(tenant, runs, recorded), err
}

// lockForRuns locks the actions and the due rows of runs, ends their leases, and
// locks the head of the chain, which it returns, in one round trip. It refuses
// all runs when one lease is not held any more.
func (t *tx) lockForRuns(ctx context.Context, tenant string, runs []ledger.Run, ends *leaseEnds) (head ledger.ChainHead, err error) {
	claims, leased, owners := leasesOf(runs)
	var known, held []string
	batch := &pgx.Batch{}
	batch.Queue(lockClaims.Text, tenant, claims).Query(into(lockClaims, &known, pgx.RowTo[string]))
	batch.Queue(heldLeases.Text, tenant, leased, owners).Query(into(heldLeases, &held, pgx.RowTo[string]))
	ends.queue(batch, tenant)
	batch.Queue(startChain.Text, tenant, make([]byte, 32))
	batch.Queue(lockChainHead.Text, tenant).QueryRow(func(row pgx.Row) (err error) {
		head, err = scanHead(row)
		return err
	})
	if err := t.send(ctx, "LockForRuns", batch); err != nil {
		return head, err
	}
	return head, refuseUnheld(tenant, runs, known, held)
}

// leasesOf are the actions of runs, and those that were leased, with whom they were leased to.
func leasesOf(runs []ledger.Run) (claims, leased, owners []string) {
	claims, leased, owners = make([]string, len(runs)), []string{}, []string{}
	for i := range runs {
		run := &runs[i]
		claims[i] = run.ClaimID
		if run.Lease != nil {
			leased, owners = append(leased, run.ClaimID), append(owners, run.Owner)
		}
	}
	return claims, leased, owners
}

// refuseUnheld compares runs with the actions that are known and the leases that are held, both sorted.
func refuseUnheld(tenant string, runs []ledger.Run, known, held []string) error {
	for i := range runs {
		run := &runs[i]
		// A lease on an action that is not there is a lost one.
		if _, ok := slices.BinarySearch(known, run.ClaimID); !ok && run.Lease == nil {
			return fmt.Errorf("%w: no action %s in tenant %s to store a run for", ledger.ErrNotFound, run.ClaimID, tenant)
		}
	}
	for i := range runs {
		run := &runs[i]
		if _, ok := slices.BinarySearch(held, run.ClaimID); !ok && run.Lease != nil {
			return fmt.Errorf("%w: action %s is no longer leased to %s", ledger.ErrLeaseLost, run.ClaimID, run.Owner)
		}
	}
	return nil
}

// latest is the last run of an action in a batch, and its last settled policy verdict.
type latest struct {
	*ledger.Run
	settled engine.RawVerdict
}

func latestOf(runs []ledger.Run) []latest {
	place := make(map[string]int, len(runs))
	var all []latest
	for i := range runs {
		run := &runs[i]
		at, known := place[run.ClaimID]
		if !known {
			at = len(all)
			place[run.ClaimID] = at
			all = append(all, latest{})
		}
		all[at].Run = run
		if run.Status == ledger.Settled {
			all[at].settled = run.Policy.Raw
		}
	}
	return all
}

func queueLatest(batch *pgx.Batch, tenant string, runs []latest) {
	var ids, statuses, outcomes, policies []string
	var seqs []int64
	var settled []*string
	for _, run := range runs {
		ids, seqs, settled = append(ids, run.ClaimID), append(seqs, run.Seq), append(settled, null(string(run.settled)))
		statuses, outcomes, policies = append(statuses, run.Status), append(outcomes, string(run.Outcome.Raw)), append(policies, string(run.Policy.Raw))
	}
	batch.Queue(setLatest.Text, tenant, ids, seqs, statuses, outcomes, policies, settled)
}

func (t *tx) queueEvents(batch *pgx.Batch, tenant string, runs []ledger.Run) {
	var kinds, ids []string
	var seqs, times []int64
	for i := range runs {
		for _, kind := range runs[i].Events {
			kinds, ids = append(kinds, kind), append(ids, runs[i].ClaimID)
			seqs, times = append(seqs, runs[i].Seq), append(times, int64(runs[i].ComputedAt))
		}
	}
	if len(kinds) > 0 {
		t.wake = true
		batch.Queue(addEvents.Text, tenant, kinds, ids, seqs, times)
	}
}

// leaseEnds are what becomes of the due rows of runs.
type leaseEnds struct {
	// done have nothing left to check, rechecks have: of both the lease ends.
	// unleased were not leased for their runs.
	done, rechecks, unleased dueRows
	// removed counts those of done that nothing woke meanwhile.
	removed int
}

type dueRows struct {
	claims      []string
	generations []int64
	next        []*int64
}

func (d *dueRows) add(run latest) {
	d.claims, d.next = append(d.claims, run.ClaimID), append(d.next, nullInstant(run.NextCheckAt))
	if run.Lease != nil {
		d.generations = append(d.generations, run.Lease.Generation)
	}
}

func leaseEndsOf(runs []latest) (e leaseEnds) {
	for _, run := range runs {
		switch {
		case run.Lease == nil:
			e.unleased.add(run)
		case run.NextCheckAt == nil:
			e.done.add(run)
		default:
			e.rechecks.add(run)
		}
	}
	return e
}

func (e *leaseEnds) queue(batch *pgx.Batch, tenant string) {
	if d := &e.done; len(d.claims) > 0 {
		batch.Queue(finishDue.Text, tenant, d.claims, d.generations).Exec(func(tag pgconn.CommandTag) error {
			e.removed = int(tag.RowsAffected())
			return nil
		})
	}
	if d := &e.rechecks; len(d.claims) > 0 {
		batch.Queue(scheduleDue.Text, tenant, d.claims, d.generations, d.next)
	}
	if d := &e.unleased; len(d.claims) > 0 {
		batch.Queue(finishUnleased.Text, tenant, d.claims, d.next)
		batch.Queue(scheduleUnleased.Text, tenant, d.claims, d.next)
	}
}

// queueWoken is for what was woken while it was being judged: it stays due.
func (e *leaseEnds) queueWoken(batch *pgx.Batch, tenant string) {
	if d := &e.done; e.removed < len(d.claims) {
		batch.Queue(scheduleDue.Text, tenant, d.claims, d.generations, d.next)
	}
}

// LatestRuns implements ledger.Verification.
func (t *tx) LatestRuns(ctx context.Context, tenant string, claimIDs []string) (map[string]ledger.Run, error) {
	if seen := t.verified; seen != nil && seen.tenant == tenant && slices.Equal(seen.among, claimIDs) {
		claimIDs = seen.claims // most are verified for the first time
	}
	if len(claimIDs) == 0 {
		return map[string]ledger.Run{}, nil
	}
	runs, err := collect(ctx, t, latestRuns, scanRun, tenant, claimIDs)
	if err != nil {
		return nil, err
	}
	byClaim := make(map[string]ledger.Run, len(runs))
	for _, run := range runs {
		byClaim[run.ClaimID] = run
	}
	return byClaim, nil
}

// RunsAt implements ledger.Reading.
func (t *tx) RunsAt(ctx context.Context, tenant string, seqs []int64) ([]ledger.Run, error) {
	return collect(ctx, t, runsBySeq, scanRun, tenant, seqs)
}

// SettledClaims implements ledger.Reading.
func (t *tx) SettledClaims(ctx context.Context, tenant string, claimIDs []string) ([]string, error) {
	return collect(ctx, t, settledClaims, pgx.RowTo[string], tenant, claimIDs)
}

// Runs implements ledger.Reading.
func (t *tx) Runs(ctx context.Context, tenant, claimID string) ([]ledger.Run, error) {
	if unstorable(claimID) {
		return nil, nil
	}
	return collect(ctx, t, runsOf, scanRun, tenant, claimID)
}

func scanRun(row pgx.CollectableRow) (ledger.Run, error) {
	var c runColumns
	if err := row.Scan(c.targets()...); err != nil {
		return ledger.Run{}, err
	}
	run, err := c.value()
	if err != nil {
		return ledger.Run{}, err
	}
	return *run, nil
}

// runColumns are a run and its two verdicts as statements name them. All are
// NULL where an outer join found no run.
type runColumns struct {
	seq, computedAt, nextCheckAt, previousSeq, outcomeSeq  *int64
	version                                                *int
	id, claimID, contractID, triggeredBy, status, headline *string
	report                                                 *string
	events                                                 []string
	changed                                                *bool
	outcome, policy                                        verdictColumns
}

type verdictColumns struct {
	raw, document *string
	reasons       []string
	hash, chain   []byte
}

func (c *runColumns) targets() []any {
	targets := []any{
		&c.seq, &c.id, &c.claimID, &c.contractID, &c.version, &c.computedAt, &c.triggeredBy, &c.status, &c.headline,
		&c.report, &c.nextCheckAt, &c.events, &c.previousSeq, &c.changed, &c.outcomeSeq,
	}
	return append(append(targets, c.outcome.targets()...), c.policy.targets()...)
}

func (c *verdictColumns) targets() []any {
	return []any{&c.raw, &c.reasons, &c.hash, &c.chain, &c.document}
}

// value is nil when there is no run.
func (c *runColumns) value() (*ledger.Run, error) {
	if c.seq == nil {
		return nil, nil
	}
	outcome, err := c.outcome.value(*c.outcomeSeq)
	if err != nil {
		return nil, err
	}
	policy, err := c.policy.value(*c.seq)
	if err != nil {
		return nil, err
	}
	run := &ledger.Run{
		ID: *c.id, Seq: *c.seq, ClaimID: *c.claimID, Contract: ledger.ContractRef{ID: *c.contractID, Version: *c.version},
		ComputedAt: engine.Instant(*c.computedAt), TriggeredBy: *c.triggeredBy, Status: *c.status, Headline: *c.headline,
		Outcome: outcome, Policy: policy, NextCheckAt: instant(c.nextCheckAt), PreviousSeq: *c.previousSeq, Changed: *c.changed,
	}
	if c.report != nil {
		run.Report = json.RawMessage(*c.report)
	}
	if len(c.events) > 0 {
		run.Events = c.events
	}
	return run, nil
}

func (c *verdictColumns) value(seq int64) (ledger.StoredVerdict, error) {
	hash, err := hashOf("verdict_hash", c.hash)
	if err != nil {
		return ledger.StoredVerdict{}, fmt.Errorf("verdict %d: %w", seq, err)
	}
	chain, err := hashOf("chain_hash", c.chain)
	if err != nil {
		return ledger.StoredVerdict{}, fmt.Errorf("verdict %d: %w", seq, err)
	}
	return ledger.StoredVerdict{
		Verdict: engine.Verdict{Raw: engine.RawVerdict(text(c.raw)), Reasons: c.reasons},
		Hash:    hash, Document: text(c.document), Seq: seq, ChainHash: chain,
	}, nil
}
