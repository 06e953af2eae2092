package sqlite

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	noteKeyEvents = fixed.Named("NoteKeyEvents")
	keyEvents     = fixed.Named("KeyEvents")
	oldKeyEvents  = fixed.Named("OldKeyEvents")
	dropKeyEvents = fixed.Named("DropKeyEvents")
)

// NoteKeyEvents implements ledger.Keys.
func (t *tx) NoteKeyEvents(ctx context.Context, events []ledger.KeyEvent) error {
	if len(events) == 0 {
		return nil
	}
	var rows batch
	for _, e := range ledger.MergeKeyEvents(events) {
		rows.row().text(e.Tenant).text(e.ID).text(e.Kind).text(e.KeyID).text(e.Prefix).text(e.Route).text(e.Status).
			text(e.Remote).text(e.Detail).integer(int64(e.FirstAt)).integer(int64(e.LastAt)).integer(int64(e.Times))
	}
	_, err := t.execute(ctx, noteKeyEvents, rows.parameter())
	return err
}

// KeyEvents implements ledger.Keys.
func (t *tx) KeyEvents(ctx context.Context, tenant string, filter ledger.KeyEventFilter) (ledger.KeyEventPage, error) {
	at, id, err := filter.KeyEventCursor()
	if err != nil {
		return ledger.KeyEventPage{}, err
	}
	began, since, until := filter.Span()
	found, err := collect(ctx, t, keyEvents, func(scan scan) (e ledger.MergedKeyEvent, err error) {
		e.Tenant = tenant
		return e, scan(&e.ID, &e.Kind, &e.KeyID, &e.Prefix, &e.Route, &e.Status, &e.Remote, &e.Detail, &e.FirstAt, &e.LastAt, &e.Times)
	}, tenant, at, id, began, since, until, filter.Key, filter.Kind, filter.Ask())
	return filter.PageOf(found), err
}

// ExpireKeyEvents implements ledger.Retention.
func (t *tx) ExpireKeyEvents(ctx context.Context, tenant string, page ledger.ExpiryPage) (ledger.Expired, error) {
	var after int64
	at, afterID, _ := strings.Cut(page.After, " ")
	if page.After != "" {
		var err error
		if after, err = strconv.ParseInt(at, 10, 64); err != nil {
			return ledger.Expired{}, fmt.Errorf("%w: page after %q", ledger.ErrFilter, page.After)
		}
	}
	var last engine.Instant
	ids, err := collect(ctx, t, oldKeyEvents, func(scan scan) (id string, err error) {
		return id, scan(&last, &id)
	}, tenant, page.Horizon, after, afterID, page.Limit)
	if err != nil {
		return ledger.Expired{}, err
	}
	result := ledger.Expired{Looked: len(ids), Dropped: len(ids)}
	if len(ids) > 0 && len(ids) == page.Limit {
		result.Next = strconv.FormatInt(int64(last), 10) + " " + ids[len(ids)-1]
	}
	if len(ids) == 0 || page.Rehearse {
		return result, nil
	}
	_, err = t.execute(ctx, dropKeyEvents, tenant, list(ids), page.Horizon)
	return result, err
}
