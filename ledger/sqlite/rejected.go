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
	rejectFacts   = fixed.Named("RejectFacts")
	rejectedFacts = fixed.Named("RejectedFacts")
	countRejected = fixed.Named("CountRejected")
	oldRejected   = fixed.Named("OldRejected")
	dropRejected  = fixed.Named("DropRejected")
)

// RejectFacts implements ledger.EvidenceSide.
func (t *tx) RejectFacts(ctx context.Context, tenant string, rejected []ledger.RejectedFact, now engine.Instant) error {
	if len(rejected) == 0 {
		return nil
	}
	if _, err := t.execute(ctx, ownTenant, tenant, now); err != nil {
		return err
	}
	var rows batch
	ids, merged := ledger.MergeRejected(rejected)
	for i := range merged {
		r := &merged[i]
		rows.row().text(ids[i]).text(r.Kind).text(r.Source).text(r.Connection).text(r.Reason).text(r.Error).
			text(r.RawRef).text(r.SubjectID).text(r.Item).integer(int64(r.Times))
	}
	_, err := t.execute(ctx, rejectFacts, tenant, rows.parameter(), now)
	return err
}

// RejectedFacts implements ledger.Reading.
func (t *tx) RejectedFacts(ctx context.Context, tenant string, filter ledger.RejectedFilter) ([]ledger.RejectedFact, error) {
	var since engine.Instant
	if filter.Since != nil {
		since = *filter.Since
	}
	return collect(ctx, t, rejectedFacts, func(scan scan) (r ledger.RejectedFact, err error) {
		return r, scan(&r.Kind, &r.Source, &r.Connection, &r.Reason, &r.Error, &r.RawRef, &r.SubjectID, &r.Item,
			&r.ReceivedAt, &r.LastAt, &r.Times)
	}, tenant, filter.Source, since, filter.Limit)
}

// CountRejected implements ledger.Reading.
func (t *tx) CountRejected(ctx context.Context, tenant string, since engine.Instant) ([]ledger.RejectedCount, error) {
	return collect(ctx, t, countRejected, func(scan scan) (c ledger.RejectedCount, err error) {
		return c, scan(&c.Source, &c.Items, &c.Times, &c.LastAt)
	}, tenant, since)
}

// ExpireRejected implements ledger.Retention.
func (t *tx) ExpireRejected(ctx context.Context, tenant string, page ledger.ExpiryPage) (ledger.Expired, error) {
	var after int64
	at, afterID, _ := strings.Cut(page.After, " ")
	if page.After != "" {
		var err error
		if after, err = strconv.ParseInt(at, 10, 64); err != nil {
			return ledger.Expired{}, fmt.Errorf("%w: page after %q", ledger.ErrFilter, page.After)
		}
	}
	var last engine.Instant
	ids, err := collect(ctx, t, oldRejected, func(scan scan) (id string, err error) {
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
	_, err = t.execute(ctx, dropRejected, tenant, list(ids), page.Horizon)
	return result, err
}
