package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var nearFacts = named("NearFacts")

// NearFacts implements ledger.Reading.
func (t *tx) NearFacts(ctx context.Context, tenant string, filter ledger.NearFilter) ([]ledger.NearFact, error) {
	return collect(ctx, t, nearFacts, scanNearFact, tenant, filter.Subject, storableOf(filter.Alike), filter.Types,
		int64(filter.At), int64(filter.Since), int64(filter.Until), filter.Limit)
}

func scanNearFact(row pgx.CollectableRow) (ledger.NearFact, error) {
	var near ledger.NearFact
	var attributes string
	f := &near.Fact
	err := row.Scan(&f.RawRef, &f.Source, &f.Type, &f.SubjectID, &f.SubjectKind, (*int64)(&f.OccurredAt), &attributes, &near.Alike)
	if err != nil {
		return near, err
	}
	f.Attributes, err = engine.ReadObject(attributes)
	return near, err
}
