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
	fresh, result, err := t.storeFacts(ctx, tenant, batch, now)
	if err != nil {
		return ledger.Ingested{}, err
	}
	linked, err := t.insertLinks(ctx, tenant, batch.Links)
	if err != nil {
		return ledger.Ingested{}, err
	}
	if err := t.noteLinks(ctx, tenant, linked); err != nil {
		return ledger.Ingested{}, err
	}
	delivery, moved, err := t.delivery(ctx, tenant, batch)
	if err != nil {
		return ledger.Ingested{}, err
	}
	result.Woken, err = t.deliverAndWake(ctx, tenant, delivery, evidence{fresh, linked, moved}, now)
	return result, err
}

// newFact is a fact with its content hash, which copyFacts makes where it is zero.
type newFact struct {
	*engine.Fact
	hash [32]byte
}

// storeFacts stores the facts that are new and returns them, with what the others are.
func (t *tx) storeFacts(ctx context.Context, tenant string, batch ledger.FactBatch, now engine.Instant) ([]newFact, ledger.Ingested, error) {
	agents := ofAgents(batch)
	if agents || len(batch.Facts) < leastGuess || t.store.lookFirst.Add(-1) >= 0 {
		if err := t.enter(ctx, tenant, now); err != nil {
			return nil, ledger.Ingested{}, err
		}
	} else if fresh, result, stored, err := t.guessNew(ctx, tenant, batch, now); stored || err != nil {
		return fresh, result, err
	}
	fresh, result, err := t.sift(ctx, tenant, batch.Facts)
	if err != nil {
		return nil, result, err
	}
	if known := result.Duplicates + result.Conflicting; known > 0 && len(fresh) > 0 {
		t.store.lookFirst.Store(lookFirst)
	}
	store := t.copyFacts
	if agents {
		store = t.ingestAgentFacts
	}
	return fresh, result, store(ctx, tenant, fresh, batch.Connection, now)
}

// Most batches hold nothing that is known, and looking that up costs a quarter of
// writing them. A batch is written at once when some samples of it are new; where
// that was wrong nothing of it stands, and it is looked up. After a batch that
// held both, what was written in vain is dead weight, so that the next ones are looked up first.
const (
	// leastGuess facts are worth it.
	leastGuess = 32
	// lookFirst is how many batches are looked up after a mixed one.
	lookFirst = 64
	// samples are looked up in the round trip that begins every batch.
	samples = 8
)

const savepoint = "SAVEPOINT facts"

// guessNew stores a batch of which nothing seems to be known. Not stored says
// that some of it is; the transaction is as before then.
func (t *tx) guessNew(ctx context.Context, tenant string, batch ledger.FactBatch, now engine.Instant) (fresh []newFact, result ledger.Ingested, stored bool, err error) {
	sample := make([]string, 0, samples)
	for i := range samples {
		sample = append(sample, batch.Facts[i*(len(batch.Facts)-1)/(samples-1)].RawRef)
	}
	known, err := t.enterLooking(ctx, tenant, sample, now)
	if err != nil || known {
		return nil, result, false, err
	}
	fresh, repeats := firstOfEach(batch.Facts)
	err = t.copyFacts(ctx, tenant, fresh, batch.Connection, now)
	if err == nil {
		return fresh, countRepeats(fresh, repeats), true, nil
	}
	if !errors.Is(err, errOvertaken) {
		return nil, result, false, err
	}
	t.store.lookFirst.Store(lookFirst)
	_, err = t.db.Exec(ctx, "ROLLBACK TO "+savepoint)
	return nil, ledger.Ingested{}, false, fail("rollback to savepoint", err)
}

// enterLooking is enter, with a savepoint and a look for some facts, in one round trip.
func (t *tx) enterLooking(ctx context.Context, tenant string, refs []string, now engine.Instant) (known bool, err error) {
	batch := &pgx.Batch{}
	queueEnter(batch, tenant, now)
	batch.Queue(savepoint)
	batch.Queue(standingFacts.Text, tenant, refs).Query(func(rows pgx.Rows) error {
		known = rows.Next()
		rows.Close()
		return rows.Err()
	})
	return known, fail("announce evidence", t.db.SendBatch(ctx, batch).Close())
}

// firstOfEach are the first facts under each raw_ref, in its order and without
// their hashes, and those that come again, in the order of the batch.
func firstOfEach(facts []engine.Fact) (fresh []newFact, repeats []*engine.Fact) {
	byRef := func(a, b newFact) int { return compareBytes(a.RawRef, b.RawRef) }
	fresh = make([]newFact, len(facts))
	for i := range facts {
		fresh[i].Fact = &facts[i]
	}
	if !slices.IsSortedFunc(fresh, byRef) { // as the events of a source that counts them are
		slices.SortFunc(fresh, byRef)
	}
	for i := 1; i < len(fresh); i++ {
		if fresh[i].RawRef == fresh[i-1].RawRef {
			return firstOfSome(facts)
		}
	}
	return fresh, nil
}

// firstOfSome is firstOfEach where some come again.
func firstOfSome(facts []engine.Fact) (fresh []newFact, repeats []*engine.Fact) {
	seen := make(map[string]bool, len(facts))
	for i := range facts {
		if ref := facts[i].RawRef; !seen[ref] {
			seen[ref] = true
			fresh = append(fresh, newFact{Fact: &facts[i]})
		} else {
			repeats = append(repeats, &facts[i])
		}
	}
	slices.SortFunc(fresh, func(a, b newFact) int { return compareBytes(a.RawRef, b.RawRef) })
	return fresh, repeats
}

// countRepeats compares what came again in a batch with what was stored of it.
func countRepeats(stored []newFact, repeats []*engine.Fact) ledger.Ingested {
	result := ledger.Ingested{Ingested: len(stored)}
	for _, f := range repeats {
		at, _ := slices.BinarySearchFunc(stored, f.RawRef, func(s newFact, ref string) int { return compareBytes(s.RawRef, ref) })
		count(&result, f, stored[at].hash == f.ContentHash())
	}
	return result
}

func contentHashes(facts []engine.Fact) [][32]byte {
	hashes := make([][32]byte, len(facts))
	for i := range facts {
		hashes[i] = facts[i].ContentHash()
	}
	return hashes
}

// sift tells new facts from known ones (decision D8): the first under a raw_ref
// stands, whether in the store or in this batch. New facts come in the order of
// raw_ref, in which writers that meet do not deadlock.
func (t *tx) sift(ctx context.Context, tenant string, facts []engine.Fact) ([]newFact, ledger.Ingested, error) {
	if len(facts) == 0 {
		return nil, ledger.Ingested{}, nil
	}
	// The server looks up while we hash; each takes about as long as the other.
	var hashes [][32]byte
	var hashing sync.WaitGroup
	hashing.Go(func() { hashes = contentHashes(facts) })
	standing, err := t.standingFacts(ctx, tenant, facts)
	hashing.Wait()
	if err != nil {
		return nil, ledger.Ingested{}, err
	}
	fresh, result := sifted(facts, hashes, standing)
	return fresh, result, nil
}

// sifted adds the new ones to standing.
func sifted(facts []engine.Fact, hashes [][32]byte, standing map[string][32]byte) (fresh []newFact, result ledger.Ingested) {
	for i := range facts {
		fact, hash := &facts[i], hashes[i]
		stands, known := standing[fact.RawRef]
		if known {
			count(&result, fact, stands == hash)
			continue
		}
		standing[fact.RawRef] = hash
		fresh = append(fresh, newFact{fact, hash})
	}
	result.Ingested = len(fresh)
	slices.SortFunc(fresh, func(a, b newFact) int { return compareBytes(a.RawRef, b.RawRef) })
	return fresh, result
}

// count counts a fact that is known already (decision D8).
func count(result *ledger.Ingested, f *engine.Fact, same bool) {
	if same {
		result.Duplicates++
		return
	}
	result.Conflicting++
	if len(result.ConflictingRefs) < maxConflictingRefs {
		result.ConflictingRefs = append(result.ConflictingRefs, f.RawRef)
	}
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
