package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/ledger"
)

var (
	expiredClaims   = fixed.Named("ExpiredClaims")
	oldFacts        = fixed.Named("OldFacts")
	dropFacts       = fixed.Named("DropFacts")
	oldReports      = fixed.Named("OldReports")
	dropReports     = fixed.Named("DropReports")
	declareDropping = fixed.Named("DeclareDropping")
	endDropping     = fixed.Named("EndDropping")
	noteDropped     = fixed.Named("NoteDropped")
	oldContexts     = fixed.Named("OldContexts")
	dropContexts    = fixed.Named("DropContexts")
	oldParkings     = fixed.Named("OldParkings")
	dropParkings    = fixed.Named("DropParkings")
)

// oldRow is a row that is older than the horizon.
type oldRow struct {
	id     int64
	next   string // where the next page begins after this row
	needed bool
}

// ExpireFacts implements ledger.Retention. Pages go by subject and rowid, as the index does.
func (t *tx) ExpireFacts(ctx context.Context, tenant string, page ledger.ExpiryPage) (ledger.Expired, error) {
	var after int64
	number, subject, _ := strings.Cut(page.After, " ")
	if page.After != "" {
		var err error
		if after, err = strconv.ParseInt(number, 10, 64); err != nil {
			return ledger.Expired{}, fmt.Errorf("%w: page after %q", ledger.ErrFilter, page.After)
		}
	}
	rows, err := collect(ctx, t, oldFacts, func(scan scan) (r oldRow, err error) {
		var subject string
		err = scan(&r.id, &subject, &r.needed)
		r.next = strconv.FormatInt(r.id, 10) + " " + subject
		return r, err
	}, tenant, page.Horizon, subject, after, page.Limit, int64(page.Reach))
	if err != nil {
		return ledger.Expired{}, err
	}
	return t.drop(ctx, tenant, page, rows, func(ids string) (facts, reports int64, err error) {
		facts, err = t.execute(ctx, dropFacts, tenant, ids)
		return facts, 0, err
	})
}

// ExpireReports implements ledger.Retention.
func (t *tx) ExpireReports(ctx context.Context, tenant string, page ledger.ExpiryPage) (ledger.Expired, error) {
	var after int64
	if page.After != "" {
		var err error
		if after, err = strconv.ParseInt(page.After, 10, 64); err != nil {
			return ledger.Expired{}, fmt.Errorf("%w: page after %q", ledger.ErrFilter, page.After)
		}
	}
	rows, err := collect(ctx, t, oldReports, func(scan scan) (r oldRow, err error) {
		err = scan(&r.id, &r.needed)
		r.next = strconv.FormatInt(r.id, 10)
		return r, err
	}, tenant, page.Horizon, after, page.Limit, ledger.DroppedReport)
	if err != nil {
		return ledger.Expired{}, err
	}
	return t.drop(ctx, tenant, page, rows, func(ids string) (facts, reports int64, err error) {
		reports, err = t.execute(ctx, dropReports, tenant, ids, ledger.DroppedReport)
		return 0, reports, err
	})
}

// ExpireTraceContexts implements ledger.Retention.
func (t *tx) ExpireTraceContexts(ctx context.Context, tenant string, page ledger.ExpiryPage) (ledger.Expired, error) {
	var after [2]string // trace and span, the order of the table
	if page.After != "" {
		if err := json.Unmarshal([]byte(page.After), &after); err != nil {
			return ledger.Expired{}, fmt.Errorf("%w: page after %q", ledger.ErrFilter, page.After)
		}
	}
	type old struct {
		key    [2]string
		needed bool
	}
	rows, err := collect(ctx, t, oldContexts, func(scan scan) (o old, err error) {
		return o, scan(&o.key[0], &o.key[1], &o.needed)
	}, tenant, page.Horizon, after[0], after[1], page.Limit)
	if err != nil {
		return ledger.Expired{}, err
	}
	result := ledger.Expired{Looked: len(rows)}
	var gone [][2]string
	for _, o := range rows {
		if !o.needed {
			gone = append(gone, o.key)
		}
	}
	result.Dropped = len(gone)
	if len(rows) == page.Limit {
		next, err := json.Marshal(rows[len(rows)-1].key)
		if err != nil {
			return ledger.Expired{}, err
		}
		result.Next = string(next)
	}
	if len(gone) == 0 || page.Rehearse {
		return result, nil
	}
	keys, err := json.Marshal(gone)
	if err != nil {
		return ledger.Expired{}, err
	}
	if _, err := t.execute(ctx, dropContexts, tenant, string(keys)); err != nil {
		return ledger.Expired{}, err
	}
	_, err = t.execute(ctx, noteDropped, tenant, page.Horizon, page.Now, 0, 0)
	return result, err
}

// ExpireParkings implements ledger.Retention.
func (t *tx) ExpireParkings(ctx context.Context, tenant string, page ledger.ExpiryPage) (ledger.Expired, error) {
	var after ledger.Position
	if page.After != "" {
		var err error
		if after, err = ledger.ParsePosition(page.After); err != nil {
			return ledger.Expired{}, fmt.Errorf("%w: page after %q", ledger.ErrFilter, page.After)
		}
	}
	type old struct {
		ledger.Position
		needed bool
	}
	rows, err := collect(ctx, t, oldParkings, func(scan scan) (o old, err error) {
		return o, scan(&o.Seq, &o.N, &o.needed)
	}, tenant, page.Horizon, after.Seq, after.N, page.Limit)
	if err != nil {
		return ledger.Expired{}, err
	}
	result := ledger.Expired{Looked: len(rows)}
	var gone [][2]int64
	for _, o := range rows {
		if !o.needed {
			gone = append(gone, [2]int64{o.Seq, int64(o.N)})
		}
	}
	result.Dropped = len(gone)
	if len(rows) > 0 && len(rows) == page.Limit {
		result.Next = rows[len(rows)-1].String()
	}
	if len(gone) == 0 || page.Rehearse {
		return result, nil
	}
	positions, err := json.Marshal(gone)
	if err != nil {
		return ledger.Expired{}, err
	}
	if _, err := t.execute(ctx, declareDropping, page.Now); err != nil {
		return ledger.Expired{}, err
	}
	_, err = t.execute(ctx, dropParkings, tenant, string(positions))
	_, endErr := t.execute(ctx, endDropping)
	return result, errors.Join(err, endErr)
}

// drop removes what is not needed inside a declared removal: the triggers let
// nobody else do it, and no other connection sees the declaration.
func (t *tx) drop(ctx context.Context, tenant string, page ledger.ExpiryPage, rows []oldRow, remove func(ids string) (facts, reports int64, err error)) (ledger.Expired, error) {
	result := ledger.Expired{Looked: len(rows)}
	ids := []byte{'['}
	for _, r := range rows {
		if r.needed {
			continue
		}
		if result.Dropped++; result.Dropped > 1 {
			ids = append(ids, ',')
		}
		ids = strconv.AppendInt(ids, r.id, 10)
	}
	ids = append(ids, ']')
	if len(rows) == page.Limit {
		result.Next = rows[len(rows)-1].next
	}
	if result.Dropped == 0 || page.Rehearse {
		return result, nil
	}
	if _, err := t.execute(ctx, declareDropping, page.Now); err != nil {
		return ledger.Expired{}, err
	}
	facts, reports, err := remove(string(ids))
	if err != nil {
		return ledger.Expired{}, err
	}
	_, noteErr := t.execute(ctx, noteDropped, tenant, page.Horizon, page.Now, facts, reports)
	_, endErr := t.execute(ctx, endDropping)
	return result, errors.Join(noteErr, endErr)
}

// refuseExpired fails for actions that are older than what retention has kept:
// verifying them again would find less than there was.
func (t *tx) refuseExpired(ctx context.Context, tenant, claimIDs string) error {
	expired, err := collect(ctx, t, expiredClaims, column[string], tenant, claimIDs)
	if err != nil || len(expired) == 0 {
		return err
	}
	return fmt.Errorf("%w: action %q; its last verdict stands", ledger.ErrExpired, expired[0])
}
