package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	addParkings = named("AddParkings")
	eventHead   = named("EventHead")
	readEvents  = named("ReadEvents")
)

// tellParked puts work that was parked into the sequence of events, under the
// lock that runs are stored under.
func (t *tx) tellParked(ctx context.Context, tenant string, parked []ledger.Parked, claimIDs []string, now engine.Instant) error {
	if len(claimIDs) == 0 {
		return nil
	}
	var none [32]byte
	if _, err := t.execute(ctx, startChain, tenant, none[:]); err != nil {
		return err
	}
	head, err := one(ctx, t, lockChainHead, func(row pgx.CollectableRow) (ledger.ChainHead, error) { return scanHead(row) }, tenant)
	if err != nil {
		return err
	}
	var ids, texts []string
	for _, p := range parked {
		if slices.Contains(claimIDs, p.Due.ClaimID) {
			ids, texts = append(ids, p.Due.ClaimID), append(texts, printable(p.Error))
		}
	}
	t.wake = true
	_, err = t.execute(ctx, addParkings, tenant, head.Seq, now, ids, texts)
	return err
}

// EventHead implements ledger.Events.
func (t *tx) EventHead(ctx context.Context, tenant string) (ledger.Position, error) {
	head, err := one(ctx, t, eventHead, pgx.RowToStructByPos[ledger.Position], tenant)
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.Position{}, nil
	}
	return head, err
}

// ReadEvents implements ledger.Events.
func (t *tx) ReadEvents(ctx context.Context, tenant string, after ledger.Position, limit int) (ledger.EventPage, error) {
	page := ledger.EventPage{Next: after}
	limit++ // the run of the position itself may come again
	rows := 0
	_, err := collect(ctx, t, readEvents, func(row pgx.CollectableRow) (struct{}, error) {
		rows++
		e, kinds, err := scanEvent(row)
		page.AddRow(after, e, kinds)
		return struct{}{}, err
	}, tenant, after.Seq, after.N, limit)
	page.More = rows == limit
	return page, err
}

func scanEvent(row pgx.CollectableRow) (e ledger.Event, kinds []string, err error) {
	var at int64
	var ref, pinned struct {
		id      *string
		version *int
	}
	var failure, agent, workflow, compensates, trace, span *string
	var outcome, policy eventVerdict
	err = row.Scan(&e.Seq, &e.N, &e.ClaimID, &ref.id, &ref.version, &at, &e.Status, &e.Headline, &kinds, &failure,
		&e.ActionID, &pinned.id, &pinned.version, &agent, &workflow, &e.SubjectID, &compensates, &trace, &span,
		&outcome.raw, &outcome.reasons, &outcome.hash, &policy.raw, &policy.reasons, &policy.hash)
	if err != nil {
		return e, nil, err
	}
	if ref.id == nil { // parked work has no run: the action's own version
		ref = pinned
		e.Kind, e.Error = ledger.ParkedEvent, text(failure)
	}
	e.Contract = ledger.ContractRef{ID: *ref.id, Version: *ref.version}
	e.At = engine.Instant(at)
	e.AgentID, e.WorkflowID, e.Compensates, e.TraceID, e.SpanID = text(agent), text(workflow), text(compensates), text(trace), text(span)
	e.Outcome, e.Policy = outcome.value(), policy.value()
	return e, kinds, nil
}

// eventVerdict is all NULL where there is no run.
type eventVerdict struct {
	raw     *string
	reasons []string
	hash    []byte
}

func (v eventVerdict) value() (told ledger.EventVerdict) {
	told.Raw, told.Reasons = engine.RawVerdict(text(v.raw)), v.reasons
	copy(told.Hash[:], v.hash)
	return told
}
