package sqlite

import (
	"context"
	"strings"
	"sync"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/internal/statements"
)

var (
	lastFact         = fixed.Named("LastFact")
	ingestFacts      = fixed.Named("IngestFacts")
	conflictingFacts = fixed.Named("ConflictingFacts")
	touchedClaims    = fixed.Named("TouchedClaims")
	reversedClaims   = fixed.Named("ReversedClaims")
	linkSubjects     = fixed.Named("LinkSubjects")
)

// maxConflictingRefs bounds what Ingested names.
const maxConflictingRefs = 100

// IngestFacts implements ledger.EvidenceSide.
func (t *tx) IngestFacts(ctx context.Context, tenant string, facts ledger.FactBatch, now engine.Instant) (ledger.Ingested, error) {
	if _, err := t.execute(ctx, ownTenant, tenant, now); err != nil {
		return ledger.Ingested{}, err
	}
	last, err := one(ctx, t, lastFact, column[int64])
	if err != nil {
		return ledger.Ingested{}, err
	}
	counts, err := t.insertFacts(ctx, tenant, facts, now)
	if err != nil {
		return ledger.Ingested{}, err
	}
	links, err := t.insertLinks(ctx, tenant, facts.Links)
	if err != nil {
		return ledger.Ingested{}, err
	}
	moved, err := t.meetConnections(ctx, tenant, facts)
	if err != nil {
		return ledger.Ingested{}, err
	}
	wakes := wakeList{}
	if counts.Ingested > 0 || len(links) > 0 {
		if err := t.findTouched(ctx, tenant, last, links, wakes); err != nil {
			return ledger.Ingested{}, err
		}
	}
	if err := t.findAwaiting(ctx, tenant, moved, wakes); err != nil {
		return ledger.Ingested{}, err
	}
	counts.Woken = len(wakes)
	return counts, t.wakeAll(ctx, tenant, wakes, now)
}

// insertFacts stores the facts that are new, and counts the others (decision D8).
func (t *tx) insertFacts(ctx context.Context, tenant string, facts ledger.FactBatch, now engine.Instant) (ledger.Ingested, error) {
	if len(facts.Facts) == 0 {
		return ledger.Ingested{}, nil
	}
	b := newFactRows(facts.Facts)
	inserted, err := t.writeFacts(ctx, tenant, b, facts.Connection, now)
	if err != nil {
		return ledger.Ingested{}, err
	}
	known := len(b.rows) - inserted
	duplicates, conflicting := b.countRepeats()
	counts := ledger.Ingested{Ingested: inserted, Duplicates: duplicates}
	if known > 0 {
		stood, err := collect(ctx, t, conflictingFacts, column[string], tenant, b.hashed())
		if err != nil {
			return ledger.Ingested{}, err
		}
		counts.Duplicates += known - len(stood)
		conflicting = append(stood, conflicting...)
	}
	counts.Conflicting = len(conflicting)
	counts.ConflictingRefs = conflicting[:min(len(conflicting), maxConflictingRefs)]
	return counts, nil
}

// factsAtOnce are the numbers of rows that one statement inserts, the largest
// that fits first. Bound parameters cost a third of what JSON costs that SQLite
// has to take apart again, and a statement of its own a row costs more than either.
var factsAtOnce = [...]int{64, 8, 1}

// factInserts insert as many rows as factsAtOnce says.
var factInserts = func() (all [len(factsAtOnce)]statements.Statement) {
	for i, rows := range factsAtOnce {
		all[i] = withRows(ingestFacts, rows)
	}
	return all
}()

// Parameters of IngestFacts: those that all rows share, and those of one row.
const (
	sharedParameters = 3
	factParameters   = 8
)

// withRows repeats the tuple of a statement that inserts one row.
func withRows(s statements.Statement, rows int) statements.Statement {
	before, rest, _ := strings.Cut(s.Text, "VALUES ")
	tuple, after, _ := strings.Cut(rest, "\n")
	return statements.Statement{Name: s.Name, Text: before + "VALUES " + tuple + strings.Repeat(", "+tuple, rows-1) + "\n" + after}
}

// writeFacts inserts what is new and returns how many rows that were. Hashes are
// made a step ahead, on another processor.
func (t *tx) writeFacts(ctx context.Context, tenant string, b *factRows, connection string, now engine.Instant) (inserted int, err error) {
	made := make(chan int, len(b.rows)/factsAtOnce[0]+1)
	var hashing sync.WaitGroup
	defer hashing.Wait() // the facts are the caller's again when this returns
	hashing.Go(func() { b.hash(made) })
	hashed := 0
	arguments := make([]any, 0, sharedParameters+factsAtOnce[0]*factParameters)
	for from := 0; from < len(b.rows); {
		size := 0
		for factsAtOnce[size] > len(b.rows)-from {
			size++
		}
		to := from + factsAtOnce[size]
		for hashed < to {
			hashed = <-made
		}
		arguments = append(arguments[:0], tenant, connection, int64(now))
		for _, row := range b.rows[from:to] {
			f := &b.facts[row]
			arguments = append(arguments, f.RawRef, f.Source, f.Type, f.SubjectID, f.SubjectKind, int64(f.OccurredAt), f.Attributes.Text(), b.hashes[row][:])
		}
		n, err := t.execute(ctx, factInserts[size], arguments...)
		if err != nil {
			return 0, err
		}
		inserted += int(n)
		from = to
	}
	return inserted, nil
}

// factRows are the facts of a batch.
type factRows struct {
	facts []engine.Fact
	// rows are the places of the first fact under each raw_ref.
	rows []int
	// repeats are the places of the others, with those of the first ones.
	repeats [][2]int
	// hashes are content hashes by place.
	hashes [][32]byte
}

func newFactRows(facts []engine.Fact) *factRows {
	b := &factRows{facts: facts, rows: make([]int, 0, len(facts)), hashes: make([][32]byte, len(facts))}
	first := make(map[string]int, len(facts))
	for i := range facts {
		if at, twice := first[facts[i].RawRef]; twice {
			b.repeats = append(b.repeats, [2]int{i, at})
			continue
		}
		first[facts[i].RawRef] = i
		b.rows = append(b.rows, i)
	}
	return b
}

// hash makes the hashes of all rows and tells, step by step, how many are made.
func (b *factRows) hash(made chan<- int) {
	for i, row := range b.rows {
		b.hashes[row] = b.facts[row].ContentHash()
		if n := i + 1; n%factsAtOnce[0] == 0 || n == len(b.rows) {
			made <- n
		}
	}
}

// countRepeats counts what came again in the same batch.
func (b *factRows) countRepeats() (duplicates int, conflicting []string) {
	for _, repeat := range b.repeats {
		f := &b.facts[repeat[0]]
		if f.ContentHash() == b.hashes[repeat[1]] {
			duplicates++
		} else {
			conflicting = append(conflicting, f.RawRef)
		}
	}
	return duplicates, conflicting
}

// hashed are the raw_refs with the content hashes, in order.
func (b *factRows) hashed() string {
	var rows batch
	for _, row := range b.rows {
		rows.row().text(b.facts[row].RawRef).hash(b.hashes[row])
	}
	return rows.parameter()
}

// insertLinks stores both directions and returns those that are new (decision D7).
func (t *tx) insertLinks(ctx context.Context, tenant string, links []engine.Link) ([][2]string, error) {
	var rows batch
	for _, l := range links {
		if l.SubjectID == l.LinkedSubjectID {
			continue
		}
		rows.row().text(l.SubjectID).text(l.LinkedSubjectID)
		rows.row().text(l.LinkedSubjectID).text(l.SubjectID)
	}
	if rows.rows == 0 {
		return nil, nil
	}
	return collect(ctx, t, linkSubjects, readPair, tenant, rows.parameter())
}

func readPair(scan scan) (pair [2]string, err error) { return pair, scan(&pair[0], &pair[1]) }

// findTouched adds the actions that new facts and links concern (decision D16, AC "reversal_observed").
func (t *tx) findTouched(ctx context.Context, tenant string, last int64, links [][2]string, wakes wakeList) error {
	subjects := make([]string, len(links))
	var pairs batch
	for i, l := range links {
		subjects[i] = l[0]
		pairs.row().text(l[0]).text(l[1])
	}
	touched, err := collect(ctx, t, touchedClaims, readPair, tenant, last, list(subjects))
	if err != nil {
		return err
	}
	reversed, err := collect(ctx, t, reversedClaims, readPair, tenant, last, pairs.parameter())
	if err != nil {
		return err
	}
	for _, c := range append(touched, reversed...) {
		wakes.add(c[0], c[1])
	}
	return nil
}

func readFact(scan scan) (engine.Fact, error) {
	var f engine.Fact
	var attributes string
	if err := scan(&f.RawRef, &f.Source, &f.Type, &f.SubjectID, &f.SubjectKind, &f.OccurredAt, &attributes); err != nil {
		return engine.Fact{}, err
	}
	var err error
	f.Attributes, err = engine.ReadObject(attributes)
	return f, err
}
