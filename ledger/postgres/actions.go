package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	ownTenant          = named("OwnTenant")
	knownClaims        = named("KnownClaims")
	updateClaims       = named("UpdateClaims")
	lockCompensations  = named("LockCompensations")
	compensationChains = named("CompensationChains")
	completeClaims     = named("CompleteClaims")
)

// claim is an action being recorded, as it will stand.
type claim struct {
	id      string
	action  engine.Action
	started int64
	// agentCompleted and sessionCompleted: the value came from trace context (decision D31).
	agentCompleted, sessionCompleted bool
	// status of the latest run, empty before the first.
	status string
	queued bool
	// held are the fields that no update changes any more, as ledger.Hold reads them.
	held string

	created, changed, verify bool
}

// RecordActions implements ledger.AgentSide.
func (t *tx) RecordActions(ctx context.Context, tenant string, actions []ledger.NewAction, now engine.Instant) ([]ledger.Recorded, error) {
	if len(actions) == 0 {
		return nil, nil
	}
	if err := t.enter(ctx, tenant, now); err != nil {
		return nil, err
	}
	claims, err := t.knownClaims(ctx, tenant, actions)
	if err != nil {
		return nil, err
	}
	results := make([]ledger.Recorded, len(actions))
	for i, action := range actions {
		results[i] = record(claims, engine.ClaimID(tenant, action.Action.ActionID), action)
	}
	if err := t.writeClaims(ctx, tenant, claims, now); err != nil {
		return nil, err
	}
	for i := range results {
		results[i].Action = claims[results[i].ClaimID].action
	}
	return results, nil
}

// knownClaims locks and reads those of the actions that are recorded, by claim id.
func (t *tx) knownClaims(ctx context.Context, tenant string, actions []ledger.NewAction) (map[string]*claim, error) {
	ids := make([]string, len(actions))
	for i, action := range actions {
		ids[i] = engine.ClaimID(tenant, action.Action.ActionID)
	}
	known, err := collect(ctx, t, knownClaims, scanKnownClaim, tenant, ids)
	if err != nil {
		return nil, err
	}
	claims := make(map[string]*claim, len(actions))
	for _, c := range known {
		claims[c.id] = c
	}
	return claims, nil
}

func scanKnownClaim(row pgx.CollectableRow) (*claim, error) {
	c := &claim{}
	action := actionColumns{}
	var status, held *string
	targets := append([]any{&c.id}, action.targets()...)
	targets = append(targets, &c.started, &c.agentCompleted, &c.sessionCompleted, &status, &c.queued, &held)
	if err := row.Scan(targets...); err != nil {
		return nil, err
	}
	c.status, c.held = text(status), text(held)
	var err error
	c.action, err = action.value()
	return c, err
}

// record folds one action into the claims of the batch (AC "Idempotency").
func record(claims map[string]*claim, id string, action ledger.NewAction) ledger.Recorded {
	c := claims[id]
	if c == nil {
		claims[id] = &claim{id: id, action: action.Action, started: action.StartedNanos, created: true, verify: action.Verify}
		return ledger.Recorded{ClaimID: id, Created: true, Changed: true}
	}
	changed, conflicting := c.update(action)
	c.changed = c.changed || changed
	c.verify = c.verify || action.Verify
	return ledger.Recorded{ClaimID: id, Changed: changed, Conflicting: conflicting}
}

// update changes what AC lets an update change, and fills gaps of what the
// action's span tells. It reports whether anything changed, and which fields are
// held and differed.
func (c *claim) update(n ledger.NewAction) (changed bool, conflicting []string) {
	before, a, sent := *c, &c.action, n.Action
	a.RequestedAt = sent.RequestedAt
	a.Params = sent.Params
	a.WorkflowID = sent.WorkflowID
	a.SubjectID = sent.SubjectID
	a.Channel = sent.Channel
	if sent.AgentID != "" {
		a.AgentID, c.agentCompleted = sent.AgentID, false
	}
	if sent.SessionID != "" && (a.SessionID == "" || c.sessionCompleted) {
		a.SessionID, c.sessionCompleted = sent.SessionID, false
	}
	for _, gap := range []struct {
		field *string
		sent  string
	}{
		{&a.TraceID, sent.TraceID}, {&a.SpanID, sent.SpanID}, {&a.ReferenceID, sent.ReferenceID},
		{&a.Tool, sent.Tool}, {&a.ReportedOutcome, sent.ReportedOutcome},
	} {
		if *gap.field == "" {
			*gap.field = gap.sent
		}
	}
	if c.started == 0 {
		c.started = n.StartedNanos
	}
	conflicting = c.hold(&before, n)
	return c.differs(&before), conflicting
}

// hold takes back what the update may not change any more.
func (c *claim) hold(before *claim, n ledger.NewAction) []string {
	conflicting := ledger.Hold(c.held, &before.action, n, &c.action)
	if slices.Contains(conflicting, engine.FieldAgentID) {
		c.agentCompleted = before.agentCompleted
	}
	if slices.Contains(conflicting, engine.FieldSessionID) {
		c.sessionCompleted = before.sessionCompleted
	}
	return conflicting
}

func (c *claim) differs(before *claim) bool {
	a, b := c.action, before.action
	sameParams := a.Params.Captured() == b.Params.Captured() && a.Params.Text() == b.Params.Text()
	return !sameParams || a.RequestedAt != b.RequestedAt || a.WorkflowID != b.WorkflowID || a.SubjectID != b.SubjectID ||
		a.Channel != b.Channel || a.AgentID != b.AgentID || a.SessionID != b.SessionID || a.TraceID != b.TraceID ||
		a.SpanID != b.SpanID || a.ReferenceID != b.ReferenceID || a.Tool != b.Tool || a.ReportedOutcome != b.ReportedOutcome ||
		c.started != before.started
}

// writeClaims stores what is new or changed, completes it from trace context, and queues it.
func (t *tx) writeClaims(ctx context.Context, tenant string, claims map[string]*claim, now engine.Instant) error {
	var created, updated, touched []*claim
	for _, c := range claims {
		switch {
		case c.created:
			created = append(created, c)
		case c.changed:
			updated = append(updated, c)
		default:
			continue
		}
		touched = append(touched, c)
	}
	if err := t.insertClaims(ctx, tenant, created, now); err != nil {
		return err
	}
	if err := t.updateClaims(ctx, tenant, updated); err != nil {
		return err
	}
	if err := t.completeRecorded(ctx, tenant, claims, touched); err != nil {
		return err
	}
	var due []string
	for _, c := range claims {
		if c.becomesDue() {
			due = append(due, c.id)
		}
	}
	return t.makeDue(ctx, tenant, due, now, "action")
}

// becomesDue queues the first verification of an action that asks for it
// (decision D15), and the next one of an unsettled action that changed. An action that
// nobody asked to verify stays so.
func (c *claim) becomesDue() bool {
	if c.created || (c.status == "" && !c.queued) {
		return c.verify
	}
	return c.changed && (c.queued || c.status == ledger.Pending)
}

var claimCopyColumns = []string{
	"tenant_id", "claim_id", "action_id", "contract_id", "contract_version", "workflow_id", "agent_id", "action_type",
	"subject_id", "subject_kind", "requested_at", "params", "channel", "compensates", "trace_id", "span_id",
	"session_id", "reference_id", "tool", "reported_outcome", "started_nanos", "recorded_at",
}

func (t *tx) insertClaims(ctx context.Context, tenant string, claims []*claim, now engine.Instant) error {
	if len(claims) == 0 {
		return nil
	}
	slices.SortFunc(claims, func(a, b *claim) int { return compareBytes(a.id, b.id) })
	_, err := t.db.CopyFrom(ctx, pgx.Identifier{"claims"}, claimCopyColumns, pgx.CopyFromSlice(len(claims), func(i int) ([]any, error) {
		c, a := claims[i], &claims[i].action
		return []any{
			tenant, c.id, a.ActionID, a.ContractID, a.ContractVersion, null(a.WorkflowID), null(a.AgentID), null(a.ActionType),
			a.SubjectID, null(a.SubjectKind), int64(a.RequestedAt), object(a.Params), null(a.Channel), null(a.Compensates), null(a.TraceID), null(a.SpanID),
			null(a.SessionID), null(a.ReferenceID), null(a.Tool), null(a.ReportedOutcome), nullNumber(c.started), int64(now),
		}, nil
	}))
	return overtaken("InsertClaims", err)
}

func (t *tx) updateClaims(ctx context.Context, tenant string, claims []*claim) error {
	if len(claims) == 0 {
		return nil
	}
	n := len(claims)
	var (
		ids, subjects                                        = make([]string, n), make([]string, n)
		workflows, agents, params, channels                  = make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n)
		traces, spans, sessions, references, tools, outcomes = make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n)
		requested, started                                   = make([]int64, n), make([]int64, n)
		agentCompleted, sessionCompleted                     = make([]bool, n), make([]bool, n)
	)
	for i, c := range claims {
		a := &c.action
		ids[i], subjects[i] = c.id, a.SubjectID
		workflows[i], agents[i], params[i], channels[i] = null(a.WorkflowID), null(a.AgentID), object(a.Params), null(a.Channel)
		traces[i], spans[i], sessions[i], references[i] = null(a.TraceID), null(a.SpanID), null(a.SessionID), null(a.ReferenceID)
		tools[i], outcomes[i] = null(a.Tool), null(a.ReportedOutcome)
		requested[i], started[i] = int64(a.RequestedAt), c.started
		agentCompleted[i], sessionCompleted[i] = c.agentCompleted, c.sessionCompleted
	}
	_, err := t.execute(ctx, updateClaims, tenant, ids, workflows, agents, subjects, requested, params, channels, traces, spans,
		sessions, references, tools, outcomes, started, agentCompleted, sessionCompleted)
	return err
}

// CompensationChains implements ledger.AgentSide. In a transaction that may
// write, other ones that record compensations wait until this one has ended.
func (t *tx) CompensationChains(ctx context.Context, tenant string, actionIDs []string) (map[string]string, error) {
	if !t.readOnly {
		if _, err := t.execute(ctx, lockCompensations, tenant); err != nil {
			return nil, err
		}
	}
	type link struct{ ActionID, Compensates string }
	links, err := collect(ctx, t, compensationChains, pgx.RowToStructByPos[link], tenant, actionIDs)
	if err != nil {
		return nil, err
	}
	leads := make(map[string]string, len(links))
	for _, l := range links {
		leads[l.ActionID] = l.Compensates
	}
	return leads, nil
}

// completeRecorded completes what this batch recorded and takes the result over.
func (t *tx) completeRecorded(ctx context.Context, tenant string, claims map[string]*claim, touched []*claim) error {
	var wanting []string
	for _, c := range touched {
		a := &c.action
		lacking := a.AgentID == "" || a.SessionID == "" || c.agentCompleted || c.sessionCompleted
		if lacking && a.TraceID != "" && c.started != 0 {
			wanting = append(wanting, c.id)
		}
	}
	if len(wanting) == 0 {
		return nil
	}
	completed, err := t.completeClaims(ctx, tenant, wanting, nil)
	if err != nil {
		return err
	}
	for _, done := range completed {
		c := claims[done.claimID]
		c.action.AgentID, c.action.SessionID = done.agent, done.session
		c.changed = true
	}
	return nil
}

type completion struct {
	claimID, agent, session string
	// wake: it has been verified or is due.
	wake bool
}

func (t *tx) completeClaims(ctx context.Context, tenant string, claimIDs, traces []string) ([]completion, error) {
	return collect(ctx, t, completeClaims, func(row pgx.CollectableRow) (completion, error) {
		var c completion
		var agent, session *string
		err := row.Scan(&c.claimID, &agent, &session, &c.wake)
		c.agent, c.session = text(agent), text(session)
		return c, err
	}, tenant, claimIDs, traces)
}
