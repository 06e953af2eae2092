package sqlite

import (
	"context"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
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
	b := newFactRows(facts.Facts)
	if b.rows.rows == 0 {
		return ledger.Ingested{}, nil
	}
	inserted, err := t.execute(ctx, ingestFacts, tenant, b.rows.parameter(), facts.Connection, now)
	if err != nil {
		return ledger.Ingested{}, err
	}
	known := int64(b.rows.rows) - inserted
	counts := ledger.Ingested{Ingested: int(inserted), Duplicates: b.duplicates}
	conflicting := b.conflicting
	if known > 0 {
		stood, err := collect(ctx, t, conflictingFacts, column[string], tenant, b.hashes())
		if err != nil {
			return ledger.Ingested{}, err
		}
		counts.Duplicates += int(known) - len(stood)
		conflicting = append(stood, conflicting...)
	}
	counts.Conflicting = len(conflicting)
	counts.ConflictingRefs = conflicting[:min(len(conflicting), maxConflictingRefs)]
	return counts, nil
}

// factRows are the facts of a batch, the first one under each raw_ref.
type factRows struct {
	rows        batch
	sums        map[string][32]byte
	order       []string
	duplicates  int
	conflicting []string
}

func newFactRows(facts []engine.Fact) *factRows {
	b := &factRows{sums: make(map[string][32]byte, len(facts))}
	b.rows.json = make([]byte, 0, 256*len(facts))
	for i := range facts {
		f := &facts[i]
		sum := f.ContentHash()
		if first, twice := b.sums[f.RawRef]; twice {
			b.count(f.RawRef, first == sum)
			continue
		}
		b.sums[f.RawRef] = sum
		b.order = append(b.order, f.RawRef)
		b.rows.row().text(f.RawRef).text(f.Source).text(f.Type).text(f.SubjectID).text(f.SubjectKind).
			integer(int64(f.OccurredAt)).text(f.Attributes.Text()).hash(sum)
	}
	return b
}

func (b *factRows) count(ref string, same bool) {
	if same {
		b.duplicates++
		return
	}
	b.conflicting = append(b.conflicting, ref)
}

// hashes are the raw_refs with the content hashes, in order.
func (b *factRows) hashes() string {
	var rows batch
	for _, ref := range b.order {
		rows.row().text(ref).hash(b.sums[ref])
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
	f.Attributes, err = engine.ParseObject([]byte(attributes))
	return f, err
}
