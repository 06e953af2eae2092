package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-otel/countersign/ledger"
)

var (
	takeRetentionRole = named("TakeRetentionRole")
	expiredClaims     = named("ExpiredClaims")
	oldFacts          = named("OldFacts")
	dropFacts         = named("DropFacts")
	oldReports        = named("OldReports")
	dropReports       = named("DropReports")
	oldContexts       = named("OldContexts")
	dropContexts      = named("DropContexts")
	oldParkings       = named("OldParkings")
	dropParkings      = named("DropParkings")
	noteDropped       = named("NoteDropped")
)

// takeRetention changes to the one role that may remove anything, until the end
// of the transaction.
func (t *tx) takeRetention(ctx context.Context) error {
	_, err := t.db.Exec(ctx, takeRetentionRole.Text)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && (refused.Code == "42501" || refused.Code == "22023") { // may not, or no such role
		return fmt.Errorf("%w: only a member of the role countersign_retention may remove anything; let an owner of the database run GRANT countersign_retention TO this login (%w)", ledger.ErrReadOnly, err)
	}
	return fail(takeRetentionRole.Name, err)
}

// factsCursor is the place of a fact in the index by which pages go.
type factsCursor struct {
	Subject string `json:"s"`
	At      int64  `json:"t"`
	Ref     string `json:"r"`
}

// ExpireFacts implements ledger.Retention.
func (t *tx) ExpireFacts(ctx context.Context, tenant string, page ledger.ExpiryPage) (ledger.Expired, error) {
	if err := t.takeRetention(ctx); err != nil {
		return ledger.Expired{}, err
	}
	var after factsCursor
	if err := readAfter(page.After, &after); err != nil {
		return ledger.Expired{}, err
	}
	type old struct {
		factsCursor
		needed bool
	}
	rows, err := collect(ctx, t, oldFacts, func(row pgx.CollectableRow) (o old, err error) {
		return o, row.Scan(&o.Subject, &o.At, &o.Ref, &o.needed)
	}, tenant, int64(page.Horizon), after.Subject, after.At, after.Ref, page.Limit, int64(page.Reach))
	if err != nil {
		return ledger.Expired{}, err
	}
	result := ledger.Expired{Looked: len(rows)}
	var refs []string
	for _, o := range rows {
		if !o.needed {
			refs = append(refs, o.Ref)
		}
	}
	result.Dropped = len(refs)
	if len(rows) == page.Limit {
		if result.Next, err = writeAfter(rows[len(rows)-1].factsCursor); err != nil {
			return ledger.Expired{}, err
		}
	}
	if len(refs) == 0 || page.Rehearse {
		return result, nil
	}
	facts, err := t.execute(ctx, dropFacts, tenant, refs)
	if err != nil {
		return ledger.Expired{}, err
	}
	return result, t.noteDropped(ctx, tenant, page, facts, 0)
}

// ExpireReports implements ledger.Retention.
func (t *tx) ExpireReports(ctx context.Context, tenant string, page ledger.ExpiryPage) (ledger.Expired, error) {
	if err := t.takeRetention(ctx); err != nil {
		return ledger.Expired{}, err
	}
	var after int64
	if err := readAfter(page.After, &after); err != nil {
		return ledger.Expired{}, err
	}
	type old struct {
		Seq    int64
		Needed bool
	}
	rows, err := collect(ctx, t, oldReports, pgx.RowToStructByPos[old], tenant, int64(page.Horizon), after, page.Limit, ledger.DroppedReport)
	if err != nil {
		return ledger.Expired{}, err
	}
	result := ledger.Expired{Looked: len(rows)}
	var seqs []int64
	for _, o := range rows {
		if !o.Needed {
			seqs = append(seqs, o.Seq)
		}
	}
	result.Dropped = len(seqs)
	if len(rows) == page.Limit {
		if result.Next, err = writeAfter(rows[len(rows)-1].Seq); err != nil {
			return ledger.Expired{}, err
		}
	}
	if len(seqs) == 0 || page.Rehearse {
		return result, nil
	}
	reports, err := t.execute(ctx, dropReports, tenant, seqs, ledger.DroppedReport)
	if err != nil {
		return ledger.Expired{}, err
	}
	return result, t.noteDropped(ctx, tenant, page, 0, reports)
}

// contextCursor is a trace context, in the order of its key.
type contextCursor struct {
	Trace string `json:"t"`
	Span  string `json:"s"`
}

// ExpireTraceContexts implements ledger.Retention.
func (t *tx) ExpireTraceContexts(ctx context.Context, tenant string, page ledger.ExpiryPage) (ledger.Expired, error) {
	if err := t.takeRetention(ctx); err != nil {
		return ledger.Expired{}, err
	}
	var after contextCursor
	if err := readAfter(page.After, &after); err != nil {
		return ledger.Expired{}, err
	}
	type old struct {
		contextCursor
		needed bool
	}
	rows, err := collect(ctx, t, oldContexts, func(row pgx.CollectableRow) (o old, err error) {
		return o, row.Scan(&o.Trace, &o.Span, &o.needed)
	}, tenant, int64(page.Horizon), after.Trace, after.Span, page.Limit)
	if err != nil {
		return ledger.Expired{}, err
	}
	result := ledger.Expired{Looked: len(rows)}
	var traces, spans []string
	for _, o := range rows {
		if !o.needed {
			traces, spans = append(traces, o.Trace), append(spans, o.Span)
		}
	}
	result.Dropped = len(traces)
	if len(rows) == page.Limit {
		if result.Next, err = writeAfter(rows[len(rows)-1].contextCursor); err != nil {
			return ledger.Expired{}, err
		}
	}
	if len(traces) == 0 || page.Rehearse {
		return result, nil
	}
	if _, err := t.execute(ctx, dropContexts, tenant, traces, spans); err != nil {
		return ledger.Expired{}, err
	}
	return result, t.noteDropped(ctx, tenant, page, 0, 0)
}

// ExpireParkings implements ledger.Retention.
func (t *tx) ExpireParkings(ctx context.Context, tenant string, page ledger.ExpiryPage) (ledger.Expired, error) {
	if err := t.takeRetention(ctx); err != nil {
		return ledger.Expired{}, err
	}
	var after ledger.Position
	if err := readAfter(page.After, &after); err != nil {
		return ledger.Expired{}, err
	}
	type old struct {
		ledger.Position
		Needed bool
	}
	rows, err := collect(ctx, t, oldParkings, func(row pgx.CollectableRow) (o old, err error) {
		return o, row.Scan(&o.Seq, &o.N, &o.Needed)
	}, tenant, int64(page.Horizon), after.Seq, after.N, page.Limit)
	if err != nil {
		return ledger.Expired{}, err
	}
	result := ledger.Expired{Looked: len(rows)}
	var seqs []int64
	var places []int
	for _, o := range rows {
		if !o.Needed {
			seqs, places = append(seqs, o.Seq), append(places, o.N)
		}
	}
	result.Dropped = len(seqs)
	if len(rows) > 0 && len(rows) == page.Limit {
		if result.Next, err = writeAfter(rows[len(rows)-1].Position); err != nil {
			return ledger.Expired{}, err
		}
	}
	if len(seqs) == 0 || page.Rehearse {
		return result, nil
	}
	_, err = t.execute(ctx, dropParkings, tenant, seqs, places)
	return result, err
}

func (t *tx) noteDropped(ctx context.Context, tenant string, page ledger.ExpiryPage, facts, reports int64) error {
	_, err := t.execute(ctx, noteDropped, tenant, int64(page.Horizon), int64(page.Now), facts, reports)
	return err
}

func writeAfter(cursor any) (string, error) {
	text, err := json.Marshal(cursor)
	return string(text), err
}

func readAfter(text string, cursor any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), cursor); err != nil {
		return fmt.Errorf("%w: page after %q", ledger.ErrFilter, text)
	}
	return nil
}

// refuseExpired fails for actions that are older than what retention has kept:
// verifying them again would find less than there was.
func (t *tx) refuseExpired(ctx context.Context, tenant string, claimIDs []string) error {
	expired, err := collect(ctx, t, expiredClaims, pgx.RowTo[string], tenant, claimIDs)
	if err != nil || len(expired) == 0 {
		return err
	}
	return fmt.Errorf("%w: action %q; its last verdict stands", ledger.ErrExpired, expired[0])
}
