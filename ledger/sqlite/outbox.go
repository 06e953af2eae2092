package sqlite

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/ledger"
)

var (
	leaseOutbox     = fixed.Named("LeaseOutbox")
	runsOfEvents    = fixed.Named("RunsOfEvents")
	actionsOfEvents = fixed.Named("ActionsOfEvents")
	removeEvents    = fixed.Named("RemoveEvents")
	retryEvents     = fixed.Named("RetryEvents")
)

// LeaseOutbox implements ledger.Verification.
func (t *tx) LeaseOutbox(ctx context.Context, lease ledger.Lease, limit int) ([]ledger.OutboxEvent, error) {
	var runs, actions batch
	events, err := collect(ctx, t, leaseOutbox, func(scan scan) (e ledger.OutboxEvent, err error) {
		err = scan(&e.Tenant, &e.ID, &e.Kind, &e.Action.ClaimID, &e.Run.Seq, &e.CreatedAt, &e.Attempts)
		runs.row().text(e.Tenant).integer(e.Run.Seq)
		actions.row().text(e.Tenant).text(e.Action.ClaimID)
		return e, err
	}, lease.Owner, lease.Now, lease.Until, limit)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	foundRuns, err := collect(ctx, t, runsOfEvents, readRun, runs.parameter())
	if err != nil {
		return nil, err
	}
	var previous batch
	for _, found := range foundRuns {
		if found.run.PreviousSeq != 0 {
			previous.row().text(found.tenant).integer(found.run.PreviousSeq)
		}
	}
	replaced, err := collect(ctx, t, runsOfEvents, readRun, previous.parameter())
	if err != nil {
		return nil, err
	}
	foundActions, err := collect(ctx, t, actionsOfEvents, readStoredAction, actions.parameter())
	if err != nil {
		return nil, err
	}
	fillEvents(events, append(foundRuns, replaced...), foundActions)
	slices.SortFunc(events, func(a, b ledger.OutboxEvent) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), strings.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
	})
	return events, nil
}

func fillEvents(events []ledger.OutboxEvent, runs []tenantRun, actions []tenantAction) {
	type runKey struct {
		tenant string
		seq    int64
	}
	bySeq := make(map[runKey]ledger.Run, len(runs))
	for _, r := range runs {
		bySeq[runKey{r.tenant, r.run.Seq}] = r.run
	}
	byClaim := make(map[[2]string]ledger.StoredAction, len(actions))
	for _, a := range actions {
		byClaim[[2]string{a.tenant, a.action.ClaimID}] = a.action
	}
	for i := range events {
		e := &events[i]
		e.Run = bySeq[runKey{e.Tenant, e.Run.Seq}]
		if previous, ok := bySeq[runKey{e.Tenant, e.Run.PreviousSeq}]; ok {
			e.Previous = &previous
		}
		e.Action = byClaim[[2]string{e.Tenant, e.Action.ClaimID}]
	}
}

// CompleteOutbox implements ledger.Verification.
func (t *tx) CompleteOutbox(ctx context.Context, owner string, delivered []ledger.OutboxEvent, retry []ledger.OutboxRetry) error {
	var gone, kept batch
	for _, e := range delivered {
		gone.row().text(e.Tenant).integer(e.ID)
	}
	for _, r := range retry {
		kept.row().text(r.Tenant).integer(r.ID).integer(int64(r.RetryAt)).text(strings.ToValidUTF8(r.Error, "\uFFFD"))
	}
	if _, err := t.execute(ctx, removeEvents, owner, gone.parameter()); err != nil {
		return err
	}
	_, err := t.execute(ctx, retryEvents, owner, kept.parameter())
	return err
}
