package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	actionsByRef  = named("Actions")
	listActions   = named("ListActions")
	summary       = named("Summary")
	compensations = named("Compensations")
	orphans       = named("Orphans")
	tenants       = named("Tenants")
)

// Bounds of a page (ledger.ActionFilter).
const (
	defaultPage = 50
	largestPage = 500
)

// storedColumns are a ledger.StoredAction as statements name it.
type storedColumns struct {
	claimID     string
	action      actionColumns
	recordedAt  int64
	dueAt       *int64
	parkedError *string
	run         runColumns
}

func (c *storedColumns) targets() []any {
	targets := append([]any{&c.claimID}, c.action.targets()...)
	targets = append(targets, &c.recordedAt, &c.dueAt, &c.parkedError)
	return append(targets, c.run.targets()...)
}

func (c *storedColumns) value() (ledger.StoredAction, error) {
	action, err := c.action.value()
	if err != nil {
		return ledger.StoredAction{}, err
	}
	run, err := c.run.value()
	if err != nil {
		return ledger.StoredAction{}, err
	}
	return ledger.StoredAction{
		ClaimID: c.claimID, Action: action, RecordedAt: engine.Instant(c.recordedAt), Latest: run,
		NextCheckAt: instant(c.dueAt), ParkedError: text(c.parkedError),
	}, nil
}

func scanStored(row pgx.CollectableRow) (ledger.StoredAction, error) {
	var c storedColumns
	if err := row.Scan(c.targets()...); err != nil {
		return ledger.StoredAction{}, err
	}
	return c.value()
}

// Actions implements ledger.Reading. They come in the order of the references, each once.
func (t *tx) Actions(ctx context.Context, tenant string, refs []string) ([]ledger.StoredAction, error) {
	refs = slices.DeleteFunc(slices.Clone(refs), unstorable)
	found, err := collect(ctx, t, actionsByRef, scanStored, tenant, refs)
	if err != nil {
		return nil, err
	}
	byRef := make(map[string]int, 2*len(found))
	for i := range found {
		byRef[found[i].Action.ActionID] = i
	}
	for i := range found {
		byRef[found[i].ClaimID] = i // an internal id comes before an action's own id that looks the same
	}
	var ordered []ledger.StoredAction
	seen := make([]bool, len(found))
	for _, ref := range refs {
		if i, ok := byRef[ref]; ok && !seen[i] {
			seen[i] = true
			ordered = append(ordered, found[i])
		}
	}
	return ordered, nil
}

// ListActions implements ledger.Reading. The statement is planned for the
// filter that it gets, because most of its conditions fall away.
func (t *tx) ListActions(ctx context.Context, tenant string, filter ledger.ActionFilter) (ledger.ActionPage, error) {
	after, err := parseCursor(filter.Cursor)
	if err != nil {
		return ledger.ActionPage{}, err
	}
	raw, err := rawVerdict(filter.Verdict)
	if err != nil || findsNothing(filter) {
		return ledger.ActionPage{}, err
	}
	limit := filter.Limit
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, largestPage)
	actions, err := collect(ctx, t, listActions, scanStored, pgx.QueryExecModeCacheDescribe,
		tenant, filter.Verdict, filter.ContractID, filter.AgentID, filter.SubjectID, filter.TraceID, filter.WorkflowID,
		limit+1, after.at, after.claimID, string(raw), nullInstant(filter.Since), nullInstant(filter.Until))
	if err != nil || len(actions) <= limit {
		return ledger.ActionPage{Actions: actions}, err
	}
	last := actions[limit-1]
	return ledger.ActionPage{Actions: actions[:limit], Next: cursorAfter(last)}, nil
}

// findsNothing says that a filter asks for a text that cannot be in the store.
func findsNothing(filter ledger.ActionFilter) bool {
	return slices.ContainsFunc([]string{filter.ContractID, filter.AgentID, filter.SubjectID, filter.TraceID, filter.WorkflowID}, unstorable)
}

// rawVerdict is the stored word for a label, empty for filters that are no label.
func rawVerdict(filter string) (engine.RawVerdict, error) {
	switch filter {
	case "", "PENDING", "COMPENSATED":
		return "", nil
	}
	for _, raw := range []engine.RawVerdict{engine.Verified, engine.NotVerified, engine.Unverifiable} {
		if raw.Label() == filter {
			return raw, nil
		}
	}
	return "", fmt.Errorf("%w: verdict %q is none of PASS, FAIL, UNKNOWN, PENDING, COMPENSATED", ledger.ErrFilter, filter)
}

// cursor is where a page ended.
type cursor struct {
	at      *int64
	claimID string
}

func cursorAfter(last ledger.StoredAction) string {
	return strconv.FormatInt(int64(last.Action.RequestedAt), 10) + "." + last.ClaimID
}

func parseCursor(text string) (cursor, error) {
	if text == "" {
		return cursor{}, nil
	}
	seconds, claimID, ok := strings.Cut(text, ".")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if !ok || err != nil || unstorable(claimID) {
		return cursor{}, fmt.Errorf("%w: cursor %q was not given by this server; begin without one", ledger.ErrFilter, text)
	}
	return cursor{&at, claimID}, nil
}

// Summary implements ledger.Reading.
func (t *tx) Summary(ctx context.Context, tenant string, filter ledger.ActionFilter) (ledger.Summary, error) {
	raw, err := rawVerdict(filter.Verdict)
	if err != nil || findsNothing(filter) {
		return ledger.Summary{}, err
	}
	return one(ctx, t, summary, pgx.RowToStructByPos[ledger.Summary], pgx.QueryExecModeCacheDescribe,
		tenant, filter.Verdict, filter.ContractID, filter.AgentID, filter.SubjectID, filter.TraceID, filter.WorkflowID,
		string(raw), nullInstant(filter.Since), nullInstant(filter.Until))
}

// Compensations implements ledger.Reading.
func (t *tx) Compensations(ctx context.Context, tenant string, actionIDs []string) (map[string]ledger.Compensation, error) {
	type pair struct {
		corrected string
		ledger.Compensation
	}
	pairs, err := collect(ctx, t, compensations, func(row pgx.CollectableRow) (pair, error) {
		var p pair
		var settled *string
		var c storedColumns
		if err := row.Scan(append([]any{&p.corrected, &settled}, c.targets()...)...); err != nil {
			return p, err
		}
		var err error
		p.By, err = c.value()
		p.Settled = engine.RawVerdict(text(settled))
		return p, err
	}, tenant, actionIDs)
	if err != nil {
		return nil, err
	}
	found := make(map[string]ledger.Compensation, len(pairs))
	for _, p := range pairs {
		found[p.corrected] = p.Compensation
	}
	return found, nil
}

// Orphans implements ledger.Reading.
func (t *tx) Orphans(ctx context.Context, tenant string, filter ledger.OrphanFilter) ([]engine.Fact, error) {
	sources, types := effectArrays(filter.Effects)
	return collect(ctx, t, orphans, factScanner(), pgx.QueryExecModeCacheDescribe,
		tenant, nullInstant(filter.Since), nullInstant(filter.Until), sources, types, filter.Limit)
}

func effectArrays(effects []ledger.EffectType) (sources, types []string) {
	sources, types = make([]string, len(effects)), make([]string, len(effects))
	for i, effect := range effects {
		sources[i], types[i] = effect.Source, effect.Type
	}
	return sources, types
}

// Tenants implements ledger.Reading.
func (t *tx) Tenants(ctx context.Context) ([]string, error) {
	return collect(ctx, t, tenants, pgx.RowTo[string])
}
