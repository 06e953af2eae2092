package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	waitingEvents = named("WaitingEvents")
	leaseEvents   = named("LeaseOutbox")
	removeEvents  = named("RemoveEvents")
	retryEvents   = named("RetryEvents")
	runsBySeq     = named("RunsBySeq")
)

// eventKey is the key of an outbox row.
type eventKey struct {
	Tenant string
	ID     int64
}

// LeaseOutbox implements ledger.Verification: candidates across tenants, then
// one pipelined statement per tenant, because rows are locked within a tenant.
func (t *tx) LeaseOutbox(ctx context.Context, lease ledger.Lease, limit int) ([]ledger.OutboxEvent, error) {
	waiting, err := collect(ctx, t, waitingEvents, pgx.RowToStructByPos[eventKey], lease.Now, limit)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	var leased []leasedEvent
	err = t.perTenant(ctx, leaseEvents, byTenant(waiting), func(tenant string, ids []int64) []any {
		return []any{tenant, lease.Now, lease.Owner, lease.Until, ids}
	}, func(rows pgx.Rows) error {
		some, err := pgx.CollectRows(rows, scanLeasedEvent)
		leased = append(leased, some...)
		return err
	})
	if err != nil || len(leased) == 0 {
		return nil, err
	}
	return t.fillEvents(ctx, leased)
}

type leasedEvent struct {
	ledger.OutboxEvent
	claimID string
	seq     int64
}

func scanLeasedEvent(row pgx.CollectableRow) (leasedEvent, error) {
	var e leasedEvent
	var at int64
	err := row.Scan(&e.Tenant, &e.ID, &e.Kind, &e.claimID, &e.seq, &at, &e.Attempts)
	e.CreatedAt = engine.Instant(at)
	return e, err
}

// fillEvents reads the actions and the runs that events are about.
func (t *tx) fillEvents(ctx context.Context, leased []leasedEvent) ([]ledger.OutboxEvent, error) {
	seqs, refs := map[string][]int64{}, map[string][]string{}
	for _, e := range leased {
		seqs[e.Tenant], refs[e.Tenant] = append(seqs[e.Tenant], e.seq), append(refs[e.Tenant], e.claimID)
	}
	runs, actions := map[eventKey]ledger.Run{}, map[string]ledger.StoredAction{}
	batch := &pgx.Batch{}
	for tenant := range seqs {
		readRuns(batch, tenant, seqs[tenant], runs)
		batch.Queue(actionsByRef.Text, tenant, refs[tenant]).Query(func(rows pgx.Rows) error {
			some, err := pgx.CollectRows(rows, scanStored)
			for _, action := range some {
				actions[tenant+"\x00"+action.ClaimID] = action
			}
			return err
		})
	}
	if err := t.db.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fail("LeaseOutbox", err)
	}
	if err := t.addReplaced(ctx, runs); err != nil {
		return nil, err
	}
	events := make([]ledger.OutboxEvent, len(leased))
	for i, e := range leased {
		e.Run, e.Action = runs[eventKey{e.Tenant, e.seq}], actions[e.Tenant+"\x00"+e.claimID]
		if previous, ok := runs[eventKey{e.Tenant, e.Run.PreviousSeq}]; ok {
			e.Previous = &previous
		}
		events[i] = e.OutboxEvent
	}
	slices.SortFunc(events, func(a, b ledger.OutboxEvent) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
	})
	return events, nil
}

// readRuns adds to a batch the reading of a tenant's runs.
func readRuns(batch *pgx.Batch, tenant string, seqs []int64, into map[eventKey]ledger.Run) {
	batch.Queue(runsBySeq.Text, tenant, seqs).Query(func(rows pgx.Rows) error {
		some, err := pgx.CollectRows(rows, scanRun)
		for _, run := range some {
			into[eventKey{tenant, run.Seq}] = run
		}
		return err
	})
}

// addReplaced adds the runs that others replace.
func (t *tx) addReplaced(ctx context.Context, runs map[eventKey]ledger.Run) error {
	seqs := map[string][]int64{}
	for key, run := range runs {
		if run.PreviousSeq != 0 {
			seqs[key.Tenant] = append(seqs[key.Tenant], run.PreviousSeq)
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	for tenant := range seqs {
		readRuns(batch, tenant, seqs[tenant], runs)
	}
	if err := t.db.SendBatch(ctx, batch).Close(); err != nil {
		return fail("LeaseOutbox", err)
	}
	return nil
}

// CompleteOutbox implements ledger.Verification.
func (t *tx) CompleteOutbox(ctx context.Context, owner string, delivered []ledger.OutboxEvent, retry []ledger.OutboxRetry) error {
	done := make([]eventKey, len(delivered))
	for i, e := range delivered {
		done[i] = eventKey{e.Tenant, e.ID}
	}
	ignore := func(rows pgx.Rows) error { rows.Close(); return rows.Err() }
	if err := t.perTenant(ctx, removeEvents, byTenant(done), func(tenant string, ids []int64) []any {
		return []any{tenant, owner, ids}
	}, ignore); err != nil {
		return err
	}
	again := make([]eventKey, len(retry))
	reasons := make(map[eventKey]ledger.OutboxRetry, len(retry))
	for i, r := range retry {
		again[i] = eventKey{r.Tenant, r.ID}
		reasons[again[i]] = r
	}
	return t.perTenant(ctx, retryEvents, byTenant(again), func(tenant string, ids []int64) []any {
		times, texts := make([]int64, len(ids)), make([]string, len(ids))
		for i, id := range ids {
			r := reasons[eventKey{tenant, id}]
			times[i], texts[i] = int64(r.RetryAt), printable(r.Error)
		}
		return []any{tenant, owner, ids, times, texts}
	}, ignore)
}

func byTenant(keys []eventKey) map[string][]int64 {
	ids := map[string][]int64{}
	for _, k := range keys {
		ids[k.Tenant] = append(ids[k.Tenant], k.ID)
	}
	return ids
}

// perTenant sends one statement per tenant in one round trip, in the order of tenants.
func (t *tx) perTenant(ctx context.Context, s statement, ids map[string][]int64, arguments func(string, []int64) []any, read func(pgx.Rows) error) error {
	if len(ids) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	for _, tenant := range sortedKeys(ids) {
		slices.Sort(ids[tenant])
		batch.Queue(s.Text, arguments(tenant, ids[tenant])...).Query(read)
	}
	return fail(s.Name, t.db.SendBatch(ctx, batch).Close())
}
