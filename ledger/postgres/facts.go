package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	standingFacts    = named("StandingFacts")
	ingestAgentFacts = named("IngestAgentFacts")
	insertLinks      = named("LinkSubjects")
)

// maxConflictingRefs bounds what a batch full of conflicts says about itself.
const maxConflictingRefs = 100

// IngestFacts implements ledger.EvidenceSide.
func (t *tx) IngestFacts(ctx context.Context, tenant string, batch ledger.FactBatch, now engine.Instant) (ledger.Ingested, error) {
	if err := t.enter(ctx, tenant, now); err != nil {
		return ledger.Ingested{}, err
	}
	fresh, result, err := t.sift(ctx, tenant, batch.Facts)
	if err != nil {
		return ledger.Ingested{}, err
	}
	store := t.copyFacts
	if ofAgents(batch) {
		store = t.ingestAgentFacts
	}
	if err := store(ctx, tenant, fresh, batch.Connection, now); err != nil {
		return ledger.Ingested{}, err
	}
	linked, err := t.insertLinks(ctx, tenant, batch.Links)
	if err != nil {
		return ledger.Ingested{}, err
	}
	if err := t.noteLinks(ctx, tenant, linked); err != nil {
		return ledger.Ingested{}, err
	}
	moved, err := t.deliver(ctx, tenant, batch)
	if err != nil {
		return ledger.Ingested{}, err
	}
	result.Woken, err = t.wakeFor(ctx, tenant, evidence{fresh, linked, moved}, now)
	return result, err
}

// newFact is a fact with its content hash.
type newFact struct {
	*engine.Fact
	hash [32]byte
}

// sift tells new facts from known ones (decision D8): the first under a raw_ref
// stands, whether in the store or in this batch. New facts come in the order of
// raw_ref, in which writers that meet do not deadlock.
func (t *tx) sift(ctx context.Context, tenant string, facts []engine.Fact) ([]newFact, ledger.Ingested, error) {
	var result ledger.Ingested
	if len(facts) == 0 {
		return nil, result, nil
	}
	// The server looks up while we hash; each takes about as long as the other.
	hashes := make([][32]byte, len(facts))
	var hashing sync.WaitGroup
	hashing.Go(func() {
		for i := range facts {
			hashes[i] = facts[i].ContentHash()
		}
	})
	standing, err := t.standingFacts(ctx, tenant, facts)
	hashing.Wait()
	if err != nil {
		return nil, result, err
	}
	var fresh []newFact
	for i := range facts {
		fact, hash := &facts[i], hashes[i]
		stands, known := standing[fact.RawRef]
		switch {
		case !known:
			standing[fact.RawRef] = hash
			fresh = append(fresh, newFact{fact, hash})
		case stands == hash:
			result.Duplicates++
		default:
			result.Conflicting++
			if len(result.ConflictingRefs) < maxConflictingRefs {
				result.ConflictingRefs = append(result.ConflictingRefs, fact.RawRef)
			}
		}
	}
	result.Ingested = len(fresh)
	slices.SortFunc(fresh, func(a, b newFact) int { return compareBytes(a.RawRef, b.RawRef) })
	return fresh, result, nil
}

// standingFacts are the content hashes of those that are stored, by raw_ref.
func (t *tx) standingFacts(ctx context.Context, tenant string, facts []engine.Fact) (map[string][32]byte, error) {
	refs := make([]string, len(facts))
	for i := range facts {
		refs[i] = facts[i].RawRef
	}
	rows, err := t.db.Query(ctx, standingFacts.Text, tenant, refs)
	if err != nil {
		return nil, fail(standingFacts.Name, err)
	}
	standing := make(map[string][32]byte, len(facts))
	var ref string
	var stored []byte
	_, err = pgx.ForEachRow(rows, []any{&ref, &stored}, func() error {
		hash, err := hashOf("content_hash of "+ref, stored)
		standing[ref] = hash
		return err
	})
	return standing, fail(standingFacts.Name, err)
}

var factColumns = []string{
	"tenant_id", "raw_ref", "source", "fact_type", "subject_id", "subject_kind",
	"occurred_at", "attributes", "content_hash", "connection", "ingested_at",
}

// copyFacts stores facts that were not there a moment ago. Where another writer
// was faster, the transaction runs again and meets them as known.
func (t *tx) copyFacts(ctx context.Context, tenant string, facts []newFact, connection string, now engine.Instant) error {
	if len(facts) == 0 {
		return nil
	}
	_, err := t.db.CopyFrom(ctx, pgx.Identifier{"facts"}, factColumns, pgx.CopyFromSlice(len(facts), func(i int) ([]any, error) {
		f := &facts[i]
		return []any{
			tenant, f.RawRef, f.Source, f.Type, f.SubjectID, f.SubjectKind,
			int64(f.OccurredAt), f.Attributes.Text(), f.hash[:], connection, int64(now),
		}, nil
	}))
	return overtaken("CopyFacts", err)
}

// ofAgents says that a batch is of the agent's side alone. The role of the
// recorder side may write such a batch, and no other.
func ofAgents(batch ledger.FactBatch) bool {
	for i := range batch.Facts {
		if batch.Facts[i].Source != engine.AgentSource {
			return false
		}
	}
	return len(batch.Facts) > 0 && len(batch.Watermarks) == 0
}

// ingestAgentFacts is copyFacts for the agent's side.
func (t *tx) ingestAgentFacts(ctx context.Context, tenant string, facts []newFact, connection string, now engine.Instant) error {
	n := len(facts)
	if n == 0 {
		return nil
	}
	refs, types, subjects, kinds := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	times, attributes, hashes := make([]int64, n), make([]string, n), make([][]byte, n)
	for i := range facts {
		f := &facts[i]
		refs[i], types[i], subjects[i], kinds[i] = f.RawRef, f.Type, f.SubjectID, f.SubjectKind
		times[i], attributes[i], hashes[i] = int64(f.OccurredAt), f.Attributes.Text(), f.hash[:]
	}
	stored, err := one(ctx, t, ingestAgentFacts, pgx.RowTo[int64], tenant, refs, types, subjects, kinds, times, attributes, hashes, connection, now)
	if err == nil && stored < int64(n) {
		return fmt.Errorf("%w: %s: %w", ledger.ErrUnavailable, ingestAgentFacts.Name, errOvertaken)
	}
	return err
}

// overtaken makes Update run again after a unique violation on rows that were looked up before.
func overtaken(doing string, err error) error {
	if isUniqueViolation(err) {
		return fail(doing, errors.Join(errOvertaken, err))
	}
	return fail(doing, err)
}

// insertLinks stores both directions of each link (decision D7) and returns those that are new.
func (t *tx) insertLinks(ctx context.Context, tenant string, links []engine.Link) ([]engine.Link, error) {
	from, to := make([]string, 0, 2*len(links)), make([]string, 0, 2*len(links))
	for _, link := range links {
		if link.SubjectID == link.LinkedSubjectID {
			continue
		}
		from = append(from, link.SubjectID, link.LinkedSubjectID)
		to = append(to, link.LinkedSubjectID, link.SubjectID)
	}
	if len(from) == 0 {
		return nil, nil
	}
	return collect(ctx, t, insertLinks, pgx.RowToStructByPos[engine.Link], tenant, from, to)
}
