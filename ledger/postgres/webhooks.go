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
	startWebhook       = named("StartWebhook")
	lockWebhook        = named("LockWebhook")
	moveWebhook        = named("MoveWebhook")
	addDeliveries      = named("AddDeliveries")
	leaseDeliveries    = named("LeaseDeliveries")
	completeDeliveries = named("CompleteDeliveries")
	deadLetters        = named("DeadLetters")
	replayDeliveries   = named("ReplayDeliveries")
	expireDeliveries   = named("ExpireDeliveries")
	oldDeliveries      = named("OldDeliveries")
	dropDeliveries     = named("DropDeliveries")
)

// LockWebhook implements ledger.Webhooks.
func (t *tx) LockWebhook(ctx context.Context, tenant, endpoint string) (ledger.Position, error) {
	if _, err := t.execute(ctx, startWebhook, tenant, endpoint); err != nil {
		return ledger.Position{}, err
	}
	return one(ctx, t, lockWebhook, pgx.RowToStructByPos[ledger.Position], tenant, endpoint)
}

// EnqueueDeliveries implements ledger.Webhooks.
func (t *tx) EnqueueDeliveries(ctx context.Context, tenant, endpoint string, upTo ledger.Position, deliveries []ledger.NewDelivery, now engine.Instant) error {
	if _, err := t.execute(ctx, moveWebhook, tenant, endpoint, upTo.Seq, upTo.N); err != nil || len(deliveries) == 0 {
		return err
	}
	var ids, kinds, payloads []string
	var seqs []int64
	var ns []int
	for _, d := range deliveries {
		ids, kinds, payloads = append(ids, d.ID), append(kinds, d.Kind), append(payloads, d.Payload)
		seqs, ns = append(seqs, d.Event.Seq), append(ns, d.Event.N)
	}
	_, err := t.execute(ctx, addDeliveries, tenant, endpoint, now, ids, seqs, ns, kinds, payloads)
	return err
}

// LeaseDeliveries implements ledger.Webhooks.
func (t *tx) LeaseDeliveries(ctx context.Context, tenant, endpoint string, lease ledger.Lease, limit int) ([]ledger.Delivery, error) {
	leased, err := collect(ctx, t, leaseDeliveries, scanDelivery, tenant, endpoint, lease.Now, lease.Owner, lease.Until, limit)
	slices.SortFunc(leased, func(a, b ledger.Delivery) int { // RETURNING promises no order
		return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), a.Event.Compare(b.Event))
	})
	return leased, err
}

func scanDelivery(row pgx.CollectableRow) (ledger.Delivery, error) {
	var d ledger.Delivery
	var status *int
	var failure *string
	var finished *int64
	err := row.Scan(&d.ID, &d.Event.Seq, &d.Event.N, &d.Kind, &d.Payload, &d.Endpoint, &d.State, (*int64)(&d.CreatedAt), &d.Attempts,
		&status, &failure, (*int64)(&d.DueAt), &finished)
	if status != nil {
		d.Status = *status
	}
	d.Error, d.FinishedAt = text(failure), instant(finished)
	return d, err
}

// CompleteDeliveries implements ledger.Webhooks.
func (t *tx) CompleteDeliveries(ctx context.Context, tenant, owner string, results []ledger.DeliveryResult, now engine.Instant) error {
	var ids, states []string
	var due []int64
	var statuses []*int64
	var failures []*string
	for _, r := range results {
		ids, states, due = append(ids, r.ID), append(states, r.State), append(due, int64(r.DueAt))
		statuses, failures = append(statuses, nullNumber(int64(r.Status))), append(failures, null(printable(r.Error)))
	}
	_, err := t.execute(ctx, completeDeliveries, tenant, owner, now, ids, states, due, statuses, failures)
	return err
}

// DeadLetters implements ledger.Webhooks.
func (t *tx) DeadLetters(ctx context.Context, tenant string, filter ledger.DeadLetterFilter) (ledger.DeadLetterPage, error) {
	at, id, err := filter.DeadLetterCursor()
	if err != nil {
		return ledger.DeadLetterPage{}, err
	}
	if unstorable(id) || unstorable(filter.Endpoint) {
		return ledger.DeadLetterPage{}, nil
	}
	found, err := collect(ctx, t, deadLetters, scanDelivery, tenant, at, id, filter.Endpoint, filter.Ask())
	return filter.PageOf(found), err
}

// ReplayDeliveries implements ledger.Webhooks.
func (t *tx) ReplayDeliveries(ctx context.Context, tenant string, ids []string, now engine.Instant) ([]string, error) {
	ids = slices.DeleteFunc(slices.Clone(ids), unstorable)
	replayed, err := collect(ctx, t, replayDeliveries, pgx.RowTo[string], tenant, now, ids)
	t.wake = t.wake || len(replayed) > 0
	return replayed, err
}

// ExpireDeliveries implements ledger.Webhooks.
func (t *tx) ExpireDeliveries(ctx context.Context, tenant, endpoint, state string, before engine.Instant, limit int) (int, error) {
	n, err := t.execute(ctx, expireDeliveries, tenant, endpoint, state, before, limit)
	return int(n), err
}

// ExpireWebhooks implements ledger.Retention.
func (t *tx) ExpireWebhooks(ctx context.Context, tenant string, page ledger.ExpiryPage) (ledger.Expired, error) {
	if err := t.takeRetention(ctx); err != nil {
		return ledger.Expired{}, err
	}
	ids, err := collect(ctx, t, oldDeliveries, pgx.RowTo[string], tenant, int64(page.Horizon), page.After, page.Limit)
	if err != nil {
		return ledger.Expired{}, err
	}
	result := ledger.Expired{Looked: len(ids), Dropped: len(ids)}
	if len(ids) > 0 && len(ids) == page.Limit {
		result.Next = ids[len(ids)-1]
	}
	if len(ids) == 0 || page.Rehearse {
		return result, nil
	}
	_, err = t.execute(ctx, dropDeliveries, tenant, ids, int64(page.Horizon))
	return result, err
}
