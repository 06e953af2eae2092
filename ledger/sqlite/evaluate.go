package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
	"github.com/countersign-otel/countersign/engine/sqleval"
	"github.com/countersign-otel/countersign/ledger/internal/statements"
)

var (
	snapshotActions = fixed.Named("SnapshotActions")
	peers           = fixed.Named("Peers")
	linksOfSubjects = fixed.Named("LinksOfSubjects")
	factsOfSubjects = fixed.Named("FactsOfSubjects")
)

// Evaluate implements ledger.Verification.
func (t *tx) Evaluate(ctx context.Context, tenant string, c *contract.Contract, claimIDs, unavailable []string) ([]engine.Evaluation, error) {
	compiled := t.store.compile(c)
	statement := statements.Statement{Name: fmt.Sprintf("evaluation of %s version %d", c.ID, c.Version), Text: compiled.Text}
	width := compiled.Columns()
	return collect(ctx, t, statement, func(scan scan) (engine.Evaluation, error) {
		row := make([]*string, width)
		into := make([]any, width)
		for i := range row {
			into[i] = &row[i]
		}
		if err := scan(into...); err != nil {
			return engine.Evaluation{}, err
		}
		return compiled.Evaluation(row)
	}, tenant, list(claimIDs), list(unavailable))
}

// compile keeps what it composed, by content.
func (s *Store) compile(c *contract.Contract) *sqleval.Statement {
	key := fmt.Sprintf("%s@%d#%s", c.ID, c.Version, c.Hash)
	if compiled, ok := s.compiled.Get(key); ok {
		return compiled
	}
	compiled := sqleval.Compile(c, primitive.SQLite)
	s.compiled.Add(key, compiled)
	return compiled
}

// Snapshot implements ledger.Verification.
func (t *tx) Snapshot(ctx context.Context, tenant string, c *contract.Contract, claimIDs, unavailable []string) (*engine.Snapshot, error) {
	s := &engine.Snapshot{Tenant: tenant, Links: map[string][]string{}, Facts: map[string][]engine.Fact{}}
	var err error
	if s.Actions, err = collect(ctx, t, snapshotActions, readAction, tenant, list(claimIDs)); err != nil {
		return nil, err
	}
	if s.Peers, err = t.peers(ctx, tenant, c, s.Actions); err != nil {
		return nil, err
	}
	subjects := subjectsOf(s.Actions, s.Peers)
	if err := t.loadLinks(ctx, tenant, s, subjects); err != nil {
		return nil, err
	}
	if err := t.loadFacts(ctx, tenant, s, subjects); err != nil {
		return nil, err
	}
	connections, err := t.Connections(ctx, tenant)
	s.Sources = engine.Sources(connections, unavailable)
	return s, err
}

func readAction(scan scan) (engine.Action, error) {
	var r actionRow
	if err := scan(r.columns()...); err != nil {
		return engine.Action{}, err
	}
	return r.action()
}

// peers are the actions that the contract's aggregate limits may reach from any action of the batch.
func (t *tx) peers(ctx context.Context, tenant string, c *contract.Contract, actions []engine.Action) ([]engine.Action, error) {
	before, after, ok := reach(c)
	if !ok || len(actions) == 0 {
		return nil, nil
	}
	var rows batch
	for _, interval := range intervals(actions, before, after) {
		rows.row().integer(interval[0]).integer(interval[1])
	}
	return collect(ctx, t, peers, readAction, tenant, c.ID, rows.parameter())
}

// reach is the widest reach of the contract's aggregates; ok is false without any.
func reach(c *contract.Contract) (before, after engine.Duration, ok bool) {
	for _, call := range c.Calls {
		if aggregate, is := call.(primitive.Aggregate); is {
			b, a := aggregate.Reach()
			before, after, ok = max(before, b), max(after, a), true
		}
	}
	return before, after, ok
}

// intervals joins what the actions reach into intervals that do not overlap.
func intervals(actions []engine.Action, before, after engine.Duration) [][2]int64 {
	times := make([]int64, len(actions))
	for i := range actions {
		times[i] = int64(actions[i].RequestedAt)
	}
	slices.Sort(times)
	var joined [][2]int64
	for _, at := range times {
		from, to := at-int64(before), at+int64(after)
		if n := len(joined); n > 0 && from <= joined[n-1][1] {
			joined[n-1][1] = to
			continue
		}
		joined = append(joined, [2]int64{from, to})
	}
	return joined
}

// subjectsOf lists the actions' own subjects, each once.
func subjectsOf(groups ...[]engine.Action) []string {
	var subjects []string
	seen := map[string]bool{}
	for _, actions := range groups {
		for i := range actions {
			if subject := actions[i].SubjectID; !seen[subject] {
				seen[subject] = true
				subjects = append(subjects, subject)
			}
		}
	}
	return subjects
}

func (t *tx) loadLinks(ctx context.Context, tenant string, s *engine.Snapshot, subjects []string) error {
	links, err := collect(ctx, t, linksOfSubjects, readPair, tenant, list(subjects))
	for _, l := range links {
		s.Links[l[0]] = append(s.Links[l[0]], l[1])
	}
	return err
}

// loadFacts loads the facts of the subjects and of those linked to them.
func (t *tx) loadFacts(ctx context.Context, tenant string, s *engine.Snapshot, subjects []string) error {
	wanted := slices.Clone(subjects)
	for _, subject := range subjects {
		wanted = append(wanted, s.Links[subject]...)
	}
	facts, err := collect(ctx, t, factsOfSubjects, readFact, tenant, list(wanted))
	for _, f := range facts {
		s.Facts[f.SubjectID] = append(s.Facts[f.SubjectID], f)
	}
	return err
}
