package sqlite

import (
	"context"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	recordContexts   = fixed.Named("RecordContexts")
	findContexts     = fixed.Named("FindContexts")
	incompleteClaims = fixed.Named("IncompleteClaims")
	completeClaims   = fixed.Named("CompleteClaims")
)

// RecordTraceContexts implements ledger.AgentSide.
func (t *tx) RecordTraceContexts(ctx context.Context, tenant string, contexts []ledger.TraceContext, now engine.Instant) error {
	if len(contexts) == 0 {
		return nil
	}
	if _, err := t.execute(ctx, ownTenant, tenant, now); err != nil {
		return err
	}
	var rows batch
	var traces []string
	for _, c := range contexts {
		rows.row().text(c.TraceID).text(c.SpanID).integer(c.StartNanos).integer(c.EndNanos).sent(c.Agent).sent(c.Session)
		traces = append(traces, c.TraceID)
	}
	if _, err := t.execute(ctx, recordContexts, tenant, rows.parameter(), now); err != nil {
		return err
	}
	incomplete, err := collect(ctx, t, incompleteClaims, readIncomplete, tenant, list(traces))
	if err != nil {
		return err
	}
	claims := make(map[string]*claim, len(incomplete))
	for _, c := range incomplete {
		claims[c.id] = c
	}
	if err := t.complete(ctx, tenant, claims); err != nil {
		return err
	}
	return t.storeCompleted(ctx, tenant, claims, now)
}

// readIncomplete reads as much of a claim as its completion needs; due stands for "verified or due" here.
func readIncomplete(scan scan) (*claim, error) {
	var c claim
	var agent, session *string
	err := scan(&c.id, &c.action.TraceID, &c.startedNanos, &agent, &session, &c.agentCompleted, &c.sessionCompleted, &c.due)
	c.action.AgentID, c.action.SessionID = orZero(agent), orZero(session)
	return &c, err
}

func (t *tx) storeCompleted(ctx context.Context, tenant string, claims map[string]*claim, now engine.Instant) error {
	var rows batch
	wakes := wakeList{}
	for _, c := range claims {
		if !c.changed {
			continue
		}
		rows.row().text(c.id).sent(c.action.AgentID).truth(c.agentCompleted).sent(c.action.SessionID).truth(c.sessionCompleted)
		if c.due {
			wakes.add(c.id, "action")
		}
	}
	if rows.rows == 0 {
		return nil
	}
	if _, err := t.execute(ctx, completeClaims, tenant, rows.parameter()); err != nil {
		return err
	}
	return t.wakeAll(ctx, tenant, wakes, now)
}

// complete fills agents and sessions that were not sent from trace context
// (decision D31), and marks the claims that this changes. Settled ones stay as
// they are: without an agent, the action is the vendor's.
func (t *tx) complete(ctx context.Context, tenant string, claims map[string]*claim) error {
	var rows batch
	for _, c := range claims {
		if c.incomplete() {
			rows.row().text(c.id).text(c.action.TraceID).integer(c.startedNanos)
		}
	}
	if rows.rows == 0 {
		return nil
	}
	found, err := collect(ctx, t, findContexts, func(scan scan) (f foundContext, err error) {
		return f, scan(&f.claim, &f.agent, &f.session)
	}, tenant, rows.parameter())
	if err != nil {
		return err
	}
	for _, f := range found {
		claims[f.claim].completeFrom(f)
	}
	return nil
}

type foundContext struct {
	claim          string
	agent, session *string
}

func (c *claim) incomplete() bool {
	lacks := c.action.AgentID == "" || c.agentCompleted || c.action.SessionID == "" || c.sessionCompleted
	return lacks && c.action.TraceID != "" && c.startedNanos != 0 && c.latestStatus != ledger.Settled && c.held == ""
}

func (c *claim) completeFrom(f foundContext) {
	agent := fillFromContext(&c.action.AgentID, &c.agentCompleted, f.agent)
	session := fillFromContext(&c.action.SessionID, &c.sessionCompleted, f.session)
	if !agent && !session {
		return
	}
	c.changed = true
	if c.unsettled() {
		c.wake = true
	}
}

func fillFromContext(field *string, completed *bool, found *string) (changed bool) {
	if found == nil || (*field != "" && !*completed) || *field == *found {
		return false
	}
	*field, *completed = *found, true
	return true
}
