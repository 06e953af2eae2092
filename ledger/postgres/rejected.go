package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	rejectFacts   = named("RejectFacts")
	rejectedFacts = named("RejectedFacts")
	countRejected = named("CountRejected")
	oldRejected   = named("OldRejected")
	dropRejected  = named("DropRejected")
)

// RejectFacts implements ledger.EvidenceSide.
func (t *tx) RejectFacts(ctx context.Context, tenant string, rejected []ledger.RejectedFact, now engine.Instant) error {
	if len(rejected) == 0 {
		return nil
	}
	if _, err := t.execute(ctx, ownTenant, tenant, now); err != nil {
		return err
	}
	ids, merged := ledger.MergeRejected(rejected)
	column := func(of func(*ledger.RejectedFact) string) []string {
		texts := make([]string, len(merged))
		for i := range merged {
			texts[i] = of(&merged[i])
		}
		return texts
	}
	times := make([]int, len(merged))
	for i := range merged {
		times[i] = merged[i].Times
	}
	_, err := t.execute(ctx, rejectFacts, tenant, int64(now), ids,
		column(func(r *ledger.RejectedFact) string { return r.Kind }),
		column(func(r *ledger.RejectedFact) string { return r.Source }),
		column(func(r *ledger.RejectedFact) string { return r.Connection }),
		column(func(r *ledger.RejectedFact) string { return r.Reason }),
		column(func(r *ledger.RejectedFact) string { return r.Error }),
		column(func(r *ledger.RejectedFact) string { return r.RawRef }),
		column(func(r *ledger.RejectedFact) string { return r.SubjectID }),
		column(func(r *ledger.RejectedFact) string { return r.Item }),
		times)
	return err
}

// RejectedFacts implements ledger.Reading.
func (t *tx) RejectedFacts(ctx context.Context, tenant string, filter ledger.RejectedFilter) ([]ledger.RejectedFact, error) {
	if unstorable(filter.Source) {
		return nil, nil
	}
	var since int64
	if filter.Since != nil {
		since = int64(*filter.Since)
	}
	return collect(ctx, t, rejectedFacts, func(row pgx.CollectableRow) (r ledger.RejectedFact, err error) {
		return r, row.Scan(&r.Kind, &r.Source, &r.Connection, &r.Reason, &r.Error, &r.RawRef, &r.SubjectID, &r.Item,
			(*int64)(&r.ReceivedAt), (*int64)(&r.LastAt), &r.Times)
	}, tenant, filter.Source, since, filter.Limit)
}

// CountRejected implements ledger.Reading.
func (t *tx) CountRejected(ctx context.Context, tenant string, since engine.Instant) ([]ledger.RejectedCount, error) {
	return collect(ctx, t, countRejected, func(row pgx.CollectableRow) (c ledger.RejectedCount, err error) {
		return c, row.Scan(&c.Source, &c.Items, &c.Times, (*int64)(&c.LastAt))
	}, tenant, int64(since))
}

// rejectedCursor is the place of a rejected fact in the index by which pages go.
type rejectedCursor struct {
	At int64  `json:"t"`
	ID string `json:"i"`
}

// ExpireRejected implements ledger.Retention.
func (t *tx) ExpireRejected(ctx context.Context, tenant string, page ledger.ExpiryPage) (ledger.Expired, error) {
	if err := t.takeRetention(ctx); err != nil {
		return ledger.Expired{}, err
	}
	var after rejectedCursor
	if err := readAfter(page.After, &after); err != nil {
		return ledger.Expired{}, err
	}
	rows, err := collect(ctx, t, oldRejected, pgx.RowToStructByPos[rejectedCursor], tenant, int64(page.Horizon), after.At, after.ID, page.Limit)
	if err != nil {
		return ledger.Expired{}, err
	}
	result := ledger.Expired{Looked: len(rows), Dropped: len(rows)}
	if len(rows) > 0 && len(rows) == page.Limit {
		if result.Next, err = writeAfter(rows[len(rows)-1]); err != nil {
			return ledger.Expired{}, err
		}
	}
	if len(rows) == 0 || page.Rehearse {
		return result, nil
	}
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	_, err = t.execute(ctx, dropRejected, tenant, ids, int64(page.Horizon))
	return result, err
}
