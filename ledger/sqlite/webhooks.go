package sqlite

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	startWebhook       = fixed.Named("StartWebhook")
	lockWebhook        = fixed.Named("LockWebhook")
	moveWebhook        = fixed.Named("MoveWebhook")
	addDeliveries      = fixed.Named("AddDeliveries")
	leaseDeliveries    = fixed.Named("LeaseDeliveries")
	completeDeliveries = fixed.Named("CompleteDeliveries")
	deadLetters        = fixed.Named("DeadLetters")
	replayDeliveries   = fixed.Named("ReplayDeliveries")
	expireDeliveries   = fixed.Named("ExpireDeliveries")
	oldDeliveries      = fixed.Named("OldDeliveries")
	dropDeliveries     = fixed.Named("DropDeliveries")
)

// LockWebhook implements ledger.Webhooks: who writes has the whole file to itself.
func (t *tx) LockWebhook(ctx context.Context, tenant, endpoint string) (ledger.Position, error) {
	if _, err := t.execute(ctx, startWebhook, tenant, endpoint); err != nil {
		return ledger.Position{}, err
	}
	return one(ctx, t, lockWebhook, func(scan scan) (p ledger.Position, err error) {
		return p, scan(&p.Seq, &p.N)
	}, tenant, endpoint)
}

// EnqueueDeliveries implements ledger.Webhooks.
func (t *tx) EnqueueDeliveries(ctx context.Context, tenant, endpoint string, upTo ledger.Position, deliveries []ledger.NewDelivery, now engine.Instant) error {
	if _, err := t.execute(ctx, moveWebhook, tenant, endpoint, upTo.Seq, upTo.N); err != nil || len(deliveries) == 0 {
		return err
	}
	var rows batch
	for _, d := range deliveries {
		rows.row().text(d.ID).integer(d.Event.Seq).integer(int64(d.Event.N)).text(d.Kind).text(d.Payload)
	}
	_, err := t.execute(ctx, addDeliveries, tenant, endpoint, now, rows.parameter())
	return err
}

// LeaseDeliveries implements ledger.Webhooks.
func (t *tx) LeaseDeliveries(ctx context.Context, tenant, endpoint string, lease ledger.Lease, limit int) ([]ledger.Delivery, error) {
	leased, err := collect(ctx, t, leaseDeliveries, readDelivery, tenant, endpoint, lease.Now, lease.Owner, lease.Until, limit)
	slices.SortFunc(leased, func(a, b ledger.Delivery) int { // RETURNING promises no order
		return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), a.Event.Compare(b.Event))
	})
	return leased, err
}

func readDelivery(scan scan) (d ledger.Delivery, err error) {
	var status *int
	var failure *string
	err = scan(&d.ID, &d.Event.Seq, &d.Event.N, &d.Kind, &d.Payload, &d.Endpoint, &d.State, &d.CreatedAt, &d.Attempts,
		&status, &failure, &d.DueAt, &d.FinishedAt)
	d.Status, d.Error = orZero(status), orZero(failure)
	return d, err
}

// CompleteDeliveries implements ledger.Webhooks.
func (t *tx) CompleteDeliveries(ctx context.Context, tenant, owner string, results []ledger.DeliveryResult, now engine.Instant) error {
	var rows batch
	for _, r := range results {
		rows.row().text(r.ID).text(r.State).integer(int64(r.DueAt)).positive(int64(r.Status)).sent(strings.ToValidUTF8(r.Error, "\uFFFD"))
	}
	_, err := t.execute(ctx, completeDeliveries, tenant, owner, now, rows.parameter())
	return err
}

// DeadLetters implements ledger.Webhooks.
func (t *tx) DeadLetters(ctx context.Context, tenant string, filter ledger.DeadLetterFilter) (ledger.DeadLetterPage, error) {
	at, id, err := filter.DeadLetterCursor()
	if err != nil {
		return ledger.DeadLetterPage{}, err
	}
	found, err := collect(ctx, t, deadLetters, readDelivery, tenant, at, id, filter.Endpoint, filter.Ask())
	return filter.PageOf(found), err
}

// ReplayDeliveries implements ledger.Webhooks.
func (t *tx) ReplayDeliveries(ctx context.Context, tenant string, ids []string, now engine.Instant) ([]string, error) {
	replayed, err := collect(ctx, t, replayDeliveries, column[string], tenant, now, list(ids))
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
	ids, err := collect(ctx, t, oldDeliveries, column[string], tenant, page.Horizon, page.After, page.Limit)
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
	_, err = t.execute(ctx, dropDeliveries, tenant, list(ids), page.Horizon)
	return result, err
}
