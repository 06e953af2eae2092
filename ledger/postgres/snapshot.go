package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
)

var (
	snapshotActions = named("SnapshotActions")
	peers           = named("Peers")
	linksOfSubjects = named("LinksOfSubjects")
	factsOfSubjects = named("FactsOfSubjects")
)

// Snapshot implements ledger.Verification: four statements, five with aggregate limits, in three round trips.
func (t *tx) Snapshot(ctx context.Context, tenant string, c *contract.Contract, claimIDs, unavailable []string) (*engine.Snapshot, error) {
	s := &engine.Snapshot{Tenant: tenant}
	var providers []engine.Connection
	batch := &pgx.Batch{}
	batch.Queue(snapshotActions.Text, tenant, claimIDs).Query(into(snapshotActions, &s.Actions, scanAction))
	batch.Queue(connections.Text, tenant).Query(into(connections, &providers, scanConnection))
	if before, after, ok := reach(c); ok {
		batch.Queue(peers.Text, tenant, claimIDs, c.ID, int64(before), int64(after)).Query(into(peers, &s.Peers, scanAction))
	}
	err := t.send(ctx, "Snapshot", batch)
	if err != nil {
		return nil, err
	}
	subjects := subjectsOf(s.Actions, s.Peers)
	if s.Links, err = t.links(ctx, tenant, subjects); err != nil {
		return nil, err
	}
	if s.Facts, err = t.facts(ctx, tenant, withLinked(subjects, s.Links)); err != nil {
		return nil, err
	}
	s.Sources = engine.Sources(providers, unavailable)
	return s, nil
}

// reach is how far the aggregate limits of a contract look; ok is false when it has none.
func reach(c *contract.Contract) (before, after engine.Duration, ok bool) {
	for _, call := range c.Calls {
		aggregate, is := call.(primitive.Aggregate)
		if !is {
			continue
		}
		ok = true
		b, a := aggregate.Reach()
		before, after = max(before, b), max(after, a)
	}
	return before, after, ok
}

func subjectsOf(lists ...[]engine.Action) []string {
	var subjects []string
	seen := map[string]bool{}
	for _, actions := range lists {
		for i := range actions {
			if id := actions[i].SubjectID; !seen[id] {
				seen[id] = true
				subjects = append(subjects, id)
			}
		}
	}
	return subjects
}

func withLinked(subjects []string, links map[string][]string) []string {
	all := make([]string, 0, len(subjects))
	seen := map[string]bool{}
	add := func(subject string) {
		if !seen[subject] {
			seen[subject] = true
			all = append(all, subject)
		}
	}
	for _, subject := range subjects {
		add(subject)
		for _, linked := range links[subject] {
			add(linked)
		}
	}
	return all
}

func (t *tx) links(ctx context.Context, tenant string, subjects []string) (map[string][]string, error) {
	type pair struct{ Subject, Linked string }
	pairs, err := collect(ctx, t, linksOfSubjects, pgx.RowToStructByPos[pair], tenant, subjects)
	links := map[string][]string{}
	for _, p := range pairs {
		links[p.Subject] = append(links[p.Subject], p.Linked)
	}
	return links, err
}

func (t *tx) facts(ctx context.Context, tenant string, subjects []string) (map[string][]engine.Fact, error) {
	all, err := collect(ctx, t, factsOfSubjects, scanFact, tenant, subjects)
	facts := map[string][]engine.Fact{}
	for _, f := range all {
		facts[f.SubjectID] = append(facts[f.SubjectID], f)
	}
	return facts, err
}

func scanAction(row pgx.CollectableRow) (engine.Action, error) {
	var c actionColumns
	if err := row.Scan(c.targets()...); err != nil {
		return engine.Action{}, err
	}
	return c.value()
}

func scanFact(row pgx.CollectableRow) (engine.Fact, error) {
	var f engine.Fact
	var at int64
	var attributes *string
	if err := row.Scan(&f.RawRef, &f.Source, &f.Type, &f.SubjectID, &f.SubjectKind, &at, &attributes); err != nil {
		return f, err
	}
	f.OccurredAt = engine.Instant(at)
	var err error
	f.Attributes, err = parseObject("attributes of fact "+f.RawRef, attributes)
	return f, err
}
