package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	tallyContracts = named("TallyContracts")
	tallyAgents    = named("TallyAgents")
	newestFailures = named("NewestFailures")
	countReasons   = named("CountReasons")
	actionsByHash  = named("ActionsByHash")
	linkedSubjects = named("LinkedSubjects")
	caseFacts      = named("CaseFacts")
	recentFacts    = named("RecentFacts")
)

func scanTally(row pgx.CollectableRow) (t ledger.Tally, err error) {
	var at int64
	err = row.Scan(&t.Key, &at, &t.Total, &t.Pass, &t.Fail, &t.Unknown, &t.Pending, &t.Unverified, &t.Compensated, &t.Contradicted)
	t.At = engine.Instant(at)
	return t, err
}

// TallyContracts implements ledger.Overview.
func (t *tx) TallyContracts(ctx context.Context, tenant string, filter ledger.TallyFilter) ([]ledger.Tally, error) {
	return collect(ctx, t, tallyContracts, scanTally, pgx.QueryExecModeCacheDescribe,
		tenant, int64(filter.Since), int64(filter.Until), filter.ContractID, filter.AgentID, int64(max(filter.Step, 1)))
}

// TallyAgents implements ledger.Overview.
func (t *tx) TallyAgents(ctx context.Context, tenant string, filter ledger.TallyFilter) ([]ledger.Tally, error) {
	return collect(ctx, t, tallyAgents, scanTally, pgx.QueryExecModeCacheDescribe,
		tenant, int64(filter.Since), int64(filter.Until), filter.ContractID, filter.AgentID, filter.Limit)
}

// NewestFailures implements ledger.Overview.
func (t *tx) NewestFailures(ctx context.Context, tenant string, newestRuns, limit int) ([]ledger.StoredAction, error) {
	return collect(ctx, t, newestFailures, scanStored, tenant, newestRuns, limit)
}

// CountReasons implements ledger.Overview.
func (t *tx) CountReasons(ctx context.Context, tenant, contractID string, newestActions int) ([]ledger.ReasonCount, error) {
	return collect(ctx, t, countReasons, pgx.RowToStructByPos[ledger.ReasonCount], tenant, contractID, newestActions)
}

// ActionsByHash implements ledger.Overview.
func (t *tx) ActionsByHash(ctx context.Context, tenant string, hash [32]byte, limit int) ([]string, error) {
	return collect(ctx, t, actionsByHash, pgx.RowTo[string], tenant, hash[:], limit)
}

// LinkedSubjects implements ledger.Overview.
func (t *tx) LinkedSubjects(ctx context.Context, tenant, subject string, limit int) ([]string, error) {
	return collect(ctx, t, linkedSubjects, pgx.RowTo[string], tenant, subject, limit)
}

// CaseFacts implements ledger.Overview.
func (t *tx) CaseFacts(ctx context.Context, tenant, subject string, since, until engine.Instant, limit int) ([]engine.Fact, error) {
	return collect(ctx, t, caseFacts, factScanner(), tenant, subject, int64(since), int64(until), limit)
}

// RecentFacts implements ledger.Overview.
func (t *tx) RecentFacts(ctx context.Context, tenant string, since engine.Instant, limit int) ([]engine.Fact, error) {
	return collect(ctx, t, recentFacts, factScanner(), tenant, int64(since), limit)
}
