package sqlite

import (
	"context"
	"errors"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	addParkings = fixed.Named("AddParkings")
	eventHead   = fixed.Named("EventHead")
	readEvents  = fixed.Named("ReadEvents")
)

// tellParked puts work that was parked into the sequence of events.
func (t *tx) tellParked(ctx context.Context, tenant string, parked []ledger.Parked, claimIDs map[string]bool, now engine.Instant) error {
	if len(claimIDs) == 0 {
		return nil
	}
	head, err := t.ChainHead(ctx, tenant)
	if err != nil {
		return err
	}
	if head.Seq == 0 { // the sequence of a tenant without runs begins here
		if _, err := t.execute(ctx, setChainHead, tenant, head.Seq, head.Hash[:], head.RunHash[:]); err != nil {
			return err
		}
	}
	var rows batch
	place := int64(0)
	for _, p := range parked {
		if claimIDs[p.Due.ClaimID] {
			place++
			rows.row().integer(place).text(p.Due.ClaimID).text(strings.ToValidUTF8(p.Error, "\uFFFD"))
		}
	}
	t.wake = true
	_, err = t.execute(ctx, addParkings, tenant, head.Seq, now, rows.parameter())
	return err
}

// EventHead implements ledger.Events.
func (t *tx) EventHead(ctx context.Context, tenant string) (ledger.Position, error) {
	head, err := one(ctx, t, eventHead, func(scan scan) (p ledger.Position, err error) {
		return p, scan(&p.Seq, &p.N)
	}, tenant)
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
	_, err := collect(ctx, t, readEvents, func(scan scan) (struct{}, error) {
		rows++
		e, kinds, err := readEvent(scan)
		page.AddRow(after, e, kinds)
		return struct{}{}, err
	}, tenant, after.Seq, after.N, limit)
	page.More = rows == limit
	return page, err
}

func readEvent(scan scan) (e ledger.Event, kinds []string, err error) {
	var ref, pinned struct {
		id      *string
		version *int
	}
	var events, failure, agent, workflow, compensates, trace, span *string
	var outcome, policy eventVerdict
	err = scan(&e.Seq, &e.N, &e.ClaimID, &ref.id, &ref.version, &e.At, &e.Status, &e.Headline, &events, &failure,
		&e.ActionID, &pinned.id, &pinned.version, &agent, &workflow, &e.SubjectID, &compensates, &trace, &span,
		&outcome.raw, &outcome.reasons, &outcome.hash, &policy.raw, &policy.reasons, &policy.hash)
	if err != nil {
		return e, nil, err
	}
	if ref.id == nil { // parked work has no run: the action's own version
		ref = pinned
		e.Kind, e.Error = ledger.ParkedEvent, orZero(failure)
	}
	e.Contract = ledger.ContractRef{ID: orZero(ref.id), Version: orZero(ref.version)}
	e.AgentID, e.WorkflowID, e.Compensates, e.TraceID, e.SpanID = orZero(agent), orZero(workflow), orZero(compensates), orZero(trace), orZero(span)
	kinds, kindsErr := listOrNone(events)
	var outcomeErr, policyErr error
	e.Outcome, outcomeErr = outcome.value()
	e.Policy, policyErr = policy.value()
	return e, kinds, errors.Join(kindsErr, outcomeErr, policyErr)
}

// eventVerdict is all NULL where there is no run.
type eventVerdict struct {
	raw, reasons *string
	hash         []byte
}

func (v eventVerdict) value() (told ledger.EventVerdict, err error) {
	told.Raw = engine.RawVerdict(orZero(v.raw))
	told.Reasons, err = listOrNone(v.reasons)
	copy(told.Hash[:], v.hash)
	return told, err
}

// listOrNone is a list, or none for NULL.
func listOrNone(text *string) ([]string, error) {
	if text == nil {
		return nil, nil
	}
	return readList(*text)
}
