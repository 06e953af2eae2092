package ledger

import (
	"context"
	"fmt"

	"github.com/countersign-otel/countersign/engine"
)

// IngestResult says what became of a batch as it was sent.
type IngestResult struct {
	Ingested
	// RejectedFacts and RejectedLinks name what could not be taken, in order.
	RejectedFacts, RejectedLinks []Rejected
	// RejectedWatermarks are errors by the source as it was sent.
	RejectedWatermarks map[string]error
}

// Rejected is one item that could not be taken.
type Rejected struct {
	Index int
	// Err wraps engine.ErrFact or engine.ErrOpaque.
	Err error
}

// Ingest normalizes facts, links and the sources of watermarks, and ingests
// the good ones in one call. Bad ones are named in the result and take no
// other one with them. The error is the store's.
func Ingest(ctx context.Context, tx Tx, tenant string, batch FactBatch, now engine.Instant) (IngestResult, error) {
	var result IngestResult
	good := FactBatch{Connection: batch.Connection, Trust: batch.Trust}
	good.Facts, result.RejectedFacts = normalFacts(batch.Facts)
	good.Links, result.RejectedLinks = normalLinks(batch.Links)
	good.Watermarks, result.RejectedWatermarks = normalWatermarks(batch.Watermarks)
	if len(good.Facts) == 0 && len(good.Links) == 0 && len(good.Watermarks) == 0 {
		return result, nil
	}
	var err error
	result.Ingested, err = tx.IngestFacts(ctx, tenant, good, now)
	return result, err
}

// normalFacts copies only where something has to change: most who call
// normalized what they send.
func normalFacts(facts []engine.Fact) (good []engine.Fact, bad []Rejected) {
	asTheyAre := true
	for i := range facts {
		fact, err := facts[i].Normalize()
		if asTheyAre && (err != nil || changed(&facts[i], &fact)) {
			asTheyAre = false
			good = append(make([]engine.Fact, 0, len(facts)), facts[:i]...)
		}
		switch {
		case err != nil:
			bad = append(bad, Rejected{i, err})
		case !asTheyAre:
			good = append(good, fact)
		}
	}
	if asTheyAre {
		return facts, nil
	}
	return good, bad
}

// changed says whether normalizing a fact made another one of it.
func changed(sent, normal *engine.Fact) bool {
	return sent.RawRef != normal.RawRef || sent.Source != normal.Source || sent.Type != normal.Type || sent.SubjectKind != normal.SubjectKind ||
		sent.Attributes.Captured() != normal.Attributes.Captured()
}

func normalLinks(links []engine.Link) (good []engine.Link, bad []Rejected) {
	for i, link := range links {
		if err := link.Check(); err != nil {
			bad = append(bad, Rejected{i, err})
			continue
		}
		good = append(good, link)
	}
	return good, bad
}

func normalWatermarks(watermarks map[string]engine.Instant) (good map[string]engine.Instant, bad map[string]error) {
	good, bad = map[string]engine.Instant{}, map[string]error{}
	for sent, at := range watermarks {
		source, err := engine.Identifier(sent)
		if err != nil {
			bad[sent] = fmt.Errorf("watermark: %w", err)
			continue
		}
		if at < 0 || at > engine.MaxInstant {
			bad[sent] = fmt.Errorf("watermark of %s: %w: outside the years 1970 to 9999", source, engine.ErrInstant)
			continue
		}
		if known, twice := good[source]; !twice || known < at {
			good[source] = at
		}
	}
	return good, bad
}
