package sqlite

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	latestRuns           = fixed.Named("LatestRuns")
	runsOfAction         = fixed.Named("Runs")
	actionsByRef         = fixed.Named("Actions")
	listActions          = fixed.Named("ListActions")
	listActionsOfSubject = fixed.Named("ListActionsOfSubject")
	listActionsOfTrace   = fixed.Named("ListActionsOfTrace")
	summary              = fixed.Named("Summary")
	compensations        = fixed.Named("Compensations")
	verdictByHash        = fixed.Named("VerdictByHash")
	orphans              = fixed.Named("Orphans")
	tenants              = fixed.Named("Tenants")
)

// LatestRuns implements ledger.Verification.
func (t *tx) LatestRuns(ctx context.Context, tenant string, claimIDs []string) (map[string]ledger.Run, error) {
	found, err := collect(ctx, t, latestRuns, readRun, tenant, list(claimIDs))
	latest := make(map[string]ledger.Run, len(found))
	for _, r := range found {
		latest[r.run.ClaimID] = r.run
	}
	return latest, err
}

// Runs implements ledger.Reading.
func (t *tx) Runs(ctx context.Context, tenant, claimID string) ([]ledger.Run, error) {
	found, err := collect(ctx, t, runsOfAction, readRun, tenant, claimID)
	runs := make([]ledger.Run, len(found))
	for i, r := range found {
		runs[i] = r.run
	}
	return runs, err
}

// tenantAction is an action with its tenant, for statements that look across tenants.
type tenantAction struct {
	tenant string
	action ledger.StoredAction
}

// readStoredAction reads a row of stored_actions, after any columns before it.
func readStoredAction(scan scan) (tenantAction, error) { return readStoredActionAfter(scan) }

func readStoredActionAfter(scan scan, before ...any) (tenantAction, error) {
	var found tenantAction
	var a actionRow
	var r runRow
	var latestSeq, latestStatus, latestPolicy, settledPolicy, parkedError, compensation any
	stored := &found.action
	row := append(before, &found.tenant, &stored.ClaimID)
	row = append(row, a.columns()...)
	row = append(row, &stored.RecordedAt, &latestSeq, &latestStatus, &latestPolicy, &settledPolicy, &stored.NextCheckAt, &parkedError, &compensation)
	row = append(row, r.columns()...)
	if err := scan(row...); err != nil {
		return found, err
	}
	if text, ok := parkedError.(string); ok {
		stored.ParkedError = text
	}
	var err error
	if stored.Action, err = a.action(); err != nil {
		return found, err
	}
	stored.Latest, err = r.run(stored.ClaimID)
	return found, err
}

// Actions implements ledger.Reading. An internal id wins over an action id, so
// that no agent can hide an action behind an id that it chose.
func (t *tx) Actions(ctx context.Context, tenant string, refs []string) ([]ledger.StoredAction, error) {
	found, err := collect(ctx, t, actionsByRef, readStoredAction, tenant, list(refs))
	if err != nil {
		return nil, err
	}
	byRef := make(map[string]ledger.StoredAction, 2*len(found))
	for _, a := range found {
		byRef[a.action.Action.ActionID] = a.action
	}
	for _, a := range found {
		byRef[a.action.ClaimID] = a.action
	}
	var actions []ledger.StoredAction
	seen := map[string]bool{}
	for _, ref := range refs {
		a, ok := byRef[ref]
		if ok && !seen[a.ClaimID] {
			seen[a.ClaimID] = true
			actions = append(actions, a)
		}
	}
	return actions, nil
}

const (
	defaultPage = 50
	maxPage     = 500
)

// ListActions implements ledger.Reading.
func (t *tx) ListActions(ctx context.Context, tenant string, filter ledger.ActionFilter) (ledger.ActionPage, error) {
	limit := filter.Limit
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, maxPage)
	at, claimID, err := readCursor(filter.Cursor)
	if err != nil {
		return ledger.ActionPage{}, err
	}
	c, err := conditionsOf(filter)
	if err != nil {
		return ledger.ActionPage{}, err
	}
	statement := listActions
	switch {
	case filter.SubjectID != "":
		statement = listActionsOfSubject
	case filter.TraceID != "":
		statement = listActionsOfTrace
	}
	c.until = min(c.until, at+1) // the index then begins where the page does
	found, err := collect(ctx, t, statement, readStoredAction, append(append([]any{tenant, c.since, c.until, at, claimID}, c.equal...), limit+1)...)
	if err != nil {
		return ledger.ActionPage{}, err
	}
	var page ledger.ActionPage
	for _, a := range found[:min(limit, len(found))] {
		page.Actions = append(page.Actions, a.action)
	}
	if len(found) > limit {
		last := page.Actions[limit-1]
		page.Next = writeCursor(last.Action.RequestedAt, last.ClaimID)
	}
	return page, nil
}

// conditions are the parameters of a filter.
type conditions struct {
	since, until int64
	// equal are policy verdict, status, compensation, contract, agent, workflow, subject and trace; nil for any.
	equal []any
}

func conditionsOf(filter ledger.ActionFilter) (conditions, error) {
	c := conditions{until: int64(engine.MaxInstant) + 1}
	if filter.Since != nil {
		c.since = int64(*filter.Since)
	}
	if filter.Until != nil {
		c.until = int64(*filter.Until)
	}
	var policy, status, compensation string
	switch filter.Verdict {
	case "":
	case "PASS":
		policy = string(engine.Verified)
	case "FAIL":
		policy = string(engine.NotVerified)
	case "UNKNOWN":
		policy = string(engine.Unverifiable)
	case "PENDING":
		status = ledger.Pending
	case "COMPENSATED":
		compensation = string(engine.Verified)
	default:
		return c, fmt.Errorf("%w: verdict %q is none of PASS, FAIL, UNKNOWN, PENDING, COMPENSATED", ledger.ErrFilter, filter.Verdict)
	}
	for _, value := range []string{policy, status, compensation, filter.ContractID, filter.AgentID, filter.WorkflowID, filter.SubjectID, filter.TraceID} {
		if value == "" {
			c.equal = append(c.equal, nil)
			continue
		}
		c.equal = append(c.equal, value)
	}
	return c, nil
}

// A cursor is the place of the last action of a page.
func writeCursor(at engine.Instant, claimID string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(int64(at), 10) + " " + claimID))
}

func readCursor(cursor string) (at int64, claimID string, err error) {
	if cursor == "" {
		return int64(engine.MaxInstant) + 1, "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		moment, id, ok := strings.Cut(string(text), " ")
		if at, err = strconv.ParseInt(moment, 10, 64); err == nil && ok {
			return at, id, nil
		}
	}
	return 0, "", fmt.Errorf("%w: cursor %q was not given by this server; begin without one", ledger.ErrFilter, cursor)
}

// Summary implements ledger.Reading.
func (t *tx) Summary(ctx context.Context, tenant string, filter ledger.ActionFilter) (ledger.Summary, error) {
	c, err := conditionsOf(filter)
	if err != nil {
		return ledger.Summary{}, err
	}
	return one(ctx, t, summary, func(scan scan) (s ledger.Summary, err error) {
		return s, scan(&s.Total, &s.Pass, &s.Fail, &s.Unknown, &s.Pending, &s.Compensated, &s.Unverified)
	}, append([]any{tenant, c.since, c.until}, c.equal...)...)
}

// Compensations implements ledger.Reading.
func (t *tx) Compensations(ctx context.Context, tenant string, actionIDs []string) (map[string]ledger.Compensation, error) {
	found := make(map[string]ledger.Compensation)
	_, err := collect(ctx, t, compensations, func(scan scan) (struct{}, error) {
		var corrected string
		var settled *engine.RawVerdict
		by, err := readStoredActionAfter(scan, &corrected, &settled)
		found[corrected] = ledger.Compensation{By: by.action, Settled: orZero(settled)}
		return struct{}{}, err
	}, tenant, list(actionIDs))
	return found, err
}

// VerdictByHash implements ledger.Reading.
func (t *tx) VerdictByHash(ctx context.Context, hash [32]byte) (ledger.PublicVerdict, error) {
	return one(ctx, t, verdictByHash, func(scan scan) (v ledger.PublicVerdict, err error) {
		return v, scan(&v.Document, &v.ComputedAt)
	}, hash[:])
}

// Orphans implements ledger.Reading.
func (t *tx) Orphans(ctx context.Context, tenant string, filter ledger.OrphanFilter) ([]engine.Fact, error) {
	since, until := int64(0), int64(engine.MaxInstant)+1
	if filter.Since != nil {
		since = int64(*filter.Since)
	}
	if filter.Until != nil {
		until = int64(*filter.Until)
	}
	return collect(ctx, t, orphans, readFact, tenant, effectRows(filter.Effects), since, until, filter.Limit)
}

func effectRows(types []ledger.EffectType) string {
	var effects batch
	for _, e := range types {
		effects.row().sent(e.Source).text(e.Type)
	}
	return effects.parameter()
}

// Tenants implements ledger.Reading.
func (t *tx) Tenants(ctx context.Context) ([]string, error) {
	return collect(ctx, t, tenants, column[string])
}
