package sqlite

import (
	"context"
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	ownTenant          = fixed.Named("OwnTenant")
	knownClaims        = fixed.Named("KnownClaims")
	recordClaims       = fixed.Named("RecordClaims")
	compensationChains = fixed.Named("CompensationChains")
)

// claim is an action as it stands in the store, or is going to.
type claim struct {
	id                               string
	action                           engine.Action
	startedNanos                     int64
	agentCompleted, sessionCompleted bool
	latestStatus                     string
	// due: there is a due row, leased and parked ones included.
	due bool
	// held are the fields that no update changes any more, as ledger.Hold reads them.
	held string
	// changed and wake say what this transaction must write.
	changed, wake bool
}

func (c *claim) unsettled() bool { return c.due || c.latestStatus == ledger.Pending }

// RecordActions implements ledger.AgentSide.
func (t *tx) RecordActions(ctx context.Context, tenant string, actions []ledger.NewAction, now engine.Instant) ([]ledger.Recorded, error) {
	if len(actions) == 0 {
		return nil, nil
	}
	if _, err := t.execute(ctx, ownTenant, tenant, now); err != nil {
		return nil, err
	}
	claims, err := t.knownClaims(ctx, tenant, actions)
	if err != nil {
		return nil, err
	}
	recorded := make([]ledger.Recorded, len(actions))
	touched := make([]*claim, len(actions))
	for i, action := range actions {
		id := engine.ClaimID(tenant, action.Action.ActionID)
		recorded[i].ClaimID = id
		if claims[id] == nil {
			claims[id] = newClaim(id, action)
			recorded[i].Created, recorded[i].Changed = true, true
		} else {
			recorded[i].Changed, recorded[i].Conflicting = claims[id].update(action)
		}
		touched[i] = claims[id]
	}
	if err := t.complete(ctx, tenant, claims); err != nil {
		return nil, err
	}
	for i, c := range touched {
		recorded[i].Action = c.action
	}
	return recorded, t.storeClaims(ctx, tenant, claims, now)
}

func newClaim(id string, n ledger.NewAction) *claim {
	return &claim{id: id, action: n.Action, startedNanos: n.StartedNanos, changed: true, wake: n.Verify, due: n.Verify}
}

// update is AC "Idempotency": what an update may change, and nothing else. It
// also reports which fields are held and differed.
func (c *claim) update(n ledger.NewAction) (changed bool, conflicting []string) {
	before, startedBefore, completedBefore := c.action, c.startedNanos, [2]bool{c.agentCompleted, c.sessionCompleted}
	a := &c.action
	a.RequestedAt, a.Params, a.WorkflowID = n.Action.RequestedAt, n.Action.Params, n.Action.WorkflowID
	a.SubjectID, a.Channel = n.Action.SubjectID, n.Action.Channel
	if n.Action.AgentID != "" {
		a.AgentID, c.agentCompleted = n.Action.AgentID, false
	}
	if n.Action.SessionID != "" && (a.SessionID == "" || c.sessionCompleted) {
		a.SessionID, c.sessionCompleted = n.Action.SessionID, false
	}
	fillGap(&a.TraceID, n.Action.TraceID)
	fillGap(&a.SpanID, n.Action.SpanID)
	fillGap(&a.ReferenceID, n.Action.ReferenceID)
	fillGap(&a.Tool, n.Action.Tool)
	fillGap(&a.ReportedOutcome, n.Action.ReportedOutcome)
	if c.startedNanos == 0 {
		c.startedNanos = n.StartedNanos
	}
	conflicting = ledger.Hold(c.held, &before, n, a)
	if slices.Contains(conflicting, engine.FieldAgentID) {
		c.agentCompleted = completedBefore[0]
	}
	if slices.Contains(conflicting, engine.FieldSessionID) {
		c.sessionCompleted = completedBefore[1]
	}
	changed = !sameAction(before, c.action) || startedBefore != c.startedNanos || completedBefore != [2]bool{c.agentCompleted, c.sessionCompleted}
	c.changed = c.changed || changed
	if (changed && c.unsettled()) || (n.Verify && !c.due && c.latestStatus == "") {
		c.wake, c.due = true, true
	}
	return changed, conflicting
}

func fillGap(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// sameAction compares what an update may change.
func sameAction(a, b engine.Action) bool {
	if a.Params.Captured() != b.Params.Captured() || a.Params.Text() != b.Params.Text() {
		return false
	}
	a.Params, b.Params = engine.Object{}, engine.Object{}
	return fields(a) == fields(b)
}

// fields are the members of an action that compare as they are.
func fields(a engine.Action) [17]any {
	return [17]any{
		a.ActionID, a.ContractID, a.ContractVersion, a.WorkflowID, a.AgentID, a.ActionType, a.SubjectID, a.SubjectKind, a.RequestedAt,
		a.Channel, a.Compensates, a.TraceID, a.SpanID, a.SessionID, a.ReferenceID, a.Tool, a.ReportedOutcome,
	}
}

func (t *tx) knownClaims(ctx context.Context, tenant string, actions []ledger.NewAction) (map[string]*claim, error) {
	ids := make([]string, len(actions))
	for i, action := range actions {
		ids[i] = engine.ClaimID(tenant, action.Action.ActionID)
	}
	known, err := collect(ctx, t, knownClaims, readClaim, tenant, list(ids))
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*claim, len(actions))
	for _, c := range known {
		byID[c.id] = c
	}
	return byID, nil
}

func readClaim(scan scan) (*claim, error) {
	var c claim
	var a actionRow
	var started *int64
	var status, held *string
	if err := scan(append(append([]any{&c.id}, a.columns()...), &started, &c.agentCompleted, &c.sessionCompleted, &status, &c.due, &held)...); err != nil {
		return nil, err
	}
	c.startedNanos, c.latestStatus, c.held = orZero(started), orZero(status), orZero(held)
	var err error
	c.action, err = a.action()
	return &c, err
}

func (t *tx) storeClaims(ctx context.Context, tenant string, claims map[string]*claim, now engine.Instant) error {
	var rows batch
	wakes := wakeList{}
	for _, c := range claims {
		if c.changed {
			c.write(&rows)
		}
		if c.wake {
			wakes.add(c.id, "action")
		}
	}
	if rows.rows > 0 {
		if _, err := t.execute(ctx, recordClaims, tenant, rows.parameter(), now); err != nil {
			return err
		}
	}
	return t.wakeAll(ctx, tenant, wakes, now)
}

// write adds the row that RecordClaims reads.
func (c *claim) write(rows *batch) {
	a := &c.action
	rows.row().text(c.id).text(a.ActionID).text(a.ContractID).integer(int64(a.ContractVersion)).
		sent(a.WorkflowID).sent(a.AgentID).sent(a.ActionType).text(a.SubjectID).sent(a.SubjectKind).
		integer(int64(a.RequestedAt)).object(a.Params).sent(a.Channel).sent(a.Compensates).
		sent(a.TraceID).sent(a.SpanID).sent(a.SessionID).sent(a.ReferenceID).sent(a.Tool).sent(a.ReportedOutcome).
		positive(c.startedNanos).truth(c.agentCompleted).truth(c.sessionCompleted)
}

// CompensationChains implements ledger.AgentSide.
func (t *tx) CompensationChains(ctx context.Context, tenant string, actionIDs []string) (map[string]string, error) {
	pairs, err := collect(ctx, t, compensationChains, func(scan scan) (pair [2]string, err error) {
		return pair, scan(&pair[0], &pair[1])
	}, tenant, list(actionIDs))
	leads := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		leads[pair[0]] = pair[1]
	}
	return leads, err
}
