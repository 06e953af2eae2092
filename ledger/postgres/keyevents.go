package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/ledger"
)

var (
	noteKeyEvents = named("NoteKeyEvents")
	keyEvents     = named("KeyEvents")
	oldKeyEvents  = named("OldKeyEvents")
	dropKeyEvents = named("DropKeyEvents")
)

// NoteKeyEvents implements ledger.Keys: one statement for each tenant, all in one round trip.
func (t *tx) NoteKeyEvents(ctx context.Context, events []ledger.KeyEvent) error {
	merged := ledger.MergeKeyEvents(events)
	if len(merged) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	for len(merged) > 0 { // sorted by tenant
		n := 1
		for n < len(merged) && merged[n].Tenant == merged[0].Tenant {
			n++
		}
		queueKeyEvents(batch, merged[:n])
		merged = merged[n:]
	}
	return fail(noteKeyEvents.Name, t.db.SendBatch(ctx, batch).Close())
}

// queueKeyEvents of one tenant.
func queueKeyEvents(batch *pgx.Batch, events []ledger.MergedKeyEvent) {
	texts := func(of func(*ledger.MergedKeyEvent) string) []string {
		column := make([]string, len(events))
		for i := range events {
			column[i] = of(&events[i])
		}
		return column
	}
	numbers := func(of func(*ledger.MergedKeyEvent) int64) []int64 {
		column := make([]int64, len(events))
		for i := range events {
			column[i] = of(&events[i])
		}
		return column
	}
	batch.Queue(noteKeyEvents.Text, events[0].Tenant,
		texts(func(e *ledger.MergedKeyEvent) string { return e.ID }),
		texts(func(e *ledger.MergedKeyEvent) string { return e.Kind }),
		texts(func(e *ledger.MergedKeyEvent) string { return e.KeyID }),
		texts(func(e *ledger.MergedKeyEvent) string { return e.Prefix }),
		texts(func(e *ledger.MergedKeyEvent) string { return e.Route }),
		texts(func(e *ledger.MergedKeyEvent) string { return e.Status }),
		texts(func(e *ledger.MergedKeyEvent) string { return e.Remote }),
		texts(func(e *ledger.MergedKeyEvent) string { return e.Detail }),
		numbers(func(e *ledger.MergedKeyEvent) int64 { return int64(e.FirstAt) }),
		numbers(func(e *ledger.MergedKeyEvent) int64 { return int64(e.LastAt) }),
		numbers(func(e *ledger.MergedKeyEvent) int64 { return int64(e.Times) }))
}

// KeyEvents implements ledger.Keys.
func (t *tx) KeyEvents(ctx context.Context, tenant string, filter ledger.KeyEventFilter) (ledger.KeyEventPage, error) {
	at, id, err := filter.KeyEventCursor()
	if err != nil {
		return ledger.KeyEventPage{}, err
	}
	if unstorable(id) || unstorable(filter.Key) || unstorable(filter.Kind) {
		return ledger.KeyEventPage{}, nil
	}
	began, since, until := filter.Span()
	found, err := collect(ctx, t, keyEvents, func(row pgx.CollectableRow) (e ledger.MergedKeyEvent, err error) {
		e.Tenant = tenant
		return e, row.Scan(&e.ID, &e.Kind, &e.KeyID, &e.Prefix, &e.Route, &e.Status, &e.Remote, &e.Detail,
			(*int64)(&e.FirstAt), (*int64)(&e.LastAt), &e.Times)
	}, tenant, at, id, int64(began), int64(since), int64(until), filter.Key, filter.Kind, filter.Ask())
	return filter.PageOf(found), err
}

// ExpireKeyEvents implements ledger.Retention.
func (t *tx) ExpireKeyEvents(ctx context.Context, tenant string, page ledger.ExpiryPage) (ledger.Expired, error) {
	if err := t.takeRetention(ctx); err != nil {
		return ledger.Expired{}, err
	}
	var after rejectedCursor
	if err := readAfter(page.After, &after); err != nil {
		return ledger.Expired{}, err
	}
	rows, err := collect(ctx, t, oldKeyEvents, pgx.RowToStructByPos[rejectedCursor], tenant, int64(page.Horizon), after.At, after.ID, page.Limit)
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
	_, err = t.execute(ctx, dropKeyEvents, tenant, ids, int64(page.Horizon))
	return result, err
}
