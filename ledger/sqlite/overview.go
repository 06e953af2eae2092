package sqlite

import (
	"context"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	tallyContracts = fixed.Named("TallyContracts")
	tallyAgents    = fixed.Named("TallyAgents")
	newestFailures = fixed.Named("NewestFailures")
	countReasons   = fixed.Named("CountReasons")
	actionsByHash  = fixed.Named("ActionsByHash")
	linkedSubjects = fixed.Named("LinkedSubjects")
	caseFacts      = fixed.Named("CaseFacts")
	recentFacts    = fixed.Named("RecentFacts")
)

func readTally(scan scan) (t ledger.Tally, err error) {
	err = scan(&t.Key, &t.At, &t.Total, &t.Pass, &t.Fail, &t.Unknown, &t.Pending, &t.Unverified, &t.Compensated, &t.Contradicted)
	return t, err
}

// orNull is NULL for an empty text: any.
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// TallyContracts implements ledger.Overview.
func (t *tx) TallyContracts(ctx context.Context, tenant string, filter ledger.TallyFilter) ([]ledger.Tally, error) {
	return collect(ctx, t, tallyContracts, readTally, tenant, int64(filter.Since), int64(filter.Until),
		orNull(filter.ContractID), orNull(filter.AgentID), int64(max(filter.Step, 1)))
}

// TallyAgents implements ledger.Overview.
func (t *tx) TallyAgents(ctx context.Context, tenant string, filter ledger.TallyFilter) ([]ledger.Tally, error) {
	return collect(ctx, t, tallyAgents, readTally, tenant, int64(filter.Since), int64(filter.Until),
		orNull(filter.ContractID), orNull(filter.AgentID), filter.Limit)
}

// NewestFailures implements ledger.Overview.
func (t *tx) NewestFailures(ctx context.Context, tenant string, newestRuns, limit int) ([]ledger.StoredAction, error) {
	return collect(ctx, t, newestFailures, func(scan scan) (ledger.StoredAction, error) {
		found, err := readStoredAction(scan)
		return found.action, err
	}, tenant, newestRuns, limit)
}

// CountReasons implements ledger.Overview.
func (t *tx) CountReasons(ctx context.Context, tenant, contractID string, newestActions int) ([]ledger.ReasonCount, error) {
	return collect(ctx, t, countReasons, func(scan scan) (r ledger.ReasonCount, err error) {
		err = scan(&r.Code, &r.Actions)
		return r, err
	}, tenant, contractID, newestActions)
}

// ActionsByHash implements ledger.Overview.
func (t *tx) ActionsByHash(ctx context.Context, tenant string, hash [32]byte, limit int) ([]string, error) {
	return collect(ctx, t, actionsByHash, column[string], tenant, hash[:], limit)
}

// LinkedSubjects implements ledger.Overview.
func (t *tx) LinkedSubjects(ctx context.Context, tenant, subject string, limit int) ([]string, error) {
	return collect(ctx, t, linkedSubjects, column[string], tenant, subject, limit)
}

// CaseFacts implements ledger.Overview.
func (t *tx) CaseFacts(ctx context.Context, tenant, subject string, since, until engine.Instant, limit int) ([]engine.Fact, error) {
	return collect(ctx, t, caseFacts, readFact, tenant, subject, int64(since), int64(until), limit)
}

// RecentFacts implements ledger.Overview.
func (t *tx) RecentFacts(ctx context.Context, tenant string, since engine.Instant, limit int) ([]engine.Fact, error) {
	return collect(ctx, t, recentFacts, readFact, tenant, int64(since), limit)
}
