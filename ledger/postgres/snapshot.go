package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

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
	seen := verified{tenant: tenant, among: claimIDs}
	batch.Queue(snapshotActions.Text, tenant, claimIDs).Query(into(snapshotActions, &s.Actions, seen.scanAction))
	batch.Queue(connections.Text, tenant).Query(into(connections, &providers, scanConnection))
	if before, after, ok := reach(c); ok {
		batch.Queue(peers.Text, tenant, claimIDs, c.ID, int64(before), int64(after)).Query(into(peers, &s.Peers, scanAction))
	}
	err := t.send(ctx, "Snapshot", batch)
	if err != nil {
		return nil, err
	}
	if t.readOnly {
		t.verified = &seen
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
	rows, err := t.db.Query(ctx, factsOfSubjects.Text, tenant, subjects)
	if err != nil {
		return nil, fail(factsOfSubjects.Name, err)
	}
	all, err := pgx.AppendRows(make([]engine.Fact, 0, likelyFacts*len(subjects)), rows, factScanner())
	if err != nil {
		return nil, fail(factsOfSubjects.Name, err)
	}
	facts := make(map[string][]engine.Fact, len(subjects))
	for len(all) > 0 { // they stand in the order of their subjects
		n := 1
		for n < len(all) && all[n].SubjectID == all[0].SubjectID {
			n++
		}
		facts[all[0].SubjectID], all = all[:n:n], all[n:]
	}
	return facts, nil
}

// likelyFacts is how many facts a subject has, as a first guess.
const likelyFacts = 6

// verified are the actions of a snapshot that were verified before.
type verified struct {
	tenant string
	among  []string
	claims []string
}

// scanAction is the function scanAction for SnapshotActions, which says so.
func (v *verified) scanAction(row pgx.CollectableRow) (engine.Action, error) {
	var c actionColumns
	var before bool
	if err := row.Scan(append(c.targets(), &before)...); err != nil {
		return engine.Action{}, err
	}
	a, err := c.value()
	if before {
		v.claims = append(v.claims, engine.ClaimID(v.tenant, a.ActionID))
	}
	return a, err
}

func scanAction(row pgx.CollectableRow) (engine.Action, error) {
	var c actionColumns
	if err := row.Scan(c.targets()...); err != nil {
		return engine.Action{}, err
	}
	return c.value()
}

// factScanner reads the facts of one result. Texts that come again and again, like
// the names of sources, are kept once.
func factScanner() pgx.RowToFunc[engine.Fact] {
	var rawRef, attributes string
	var source, kind, subject, subjectKind pgtype.DriverBytes
	var at int64
	targets := []any{&rawRef, &source, &kind, &subject, &subjectKind, &at, &attributes}
	known := map[string]string{}
	keep := func(text []byte) string {
		kept, ok := known[string(text)]
		if !ok {
			kept = string(text)
			known[kept] = kept
		}
		return kept
	}
	return func(row pgx.CollectableRow) (engine.Fact, error) {
		if err := row.Scan(targets...); err != nil {
			return engine.Fact{}, err
		}
		f := engine.Fact{
			RawRef: rawRef, Source: keep(source), Type: keep(kind), SubjectID: keep(subject), SubjectKind: keep(subjectKind), OccurredAt: engine.Instant(at),
		}
		var err error
		if f.Attributes, err = engine.ReadObject(attributes); err != nil {
			err = fmt.Errorf("%w: attributes of fact %s: %w", errStored, rawRef, err)
		}
		return f, err
	}
}
