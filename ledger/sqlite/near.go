package sqlite

import (
	"context"

	"github.com/countersign-otel/countersign/ledger"
)

var nearFacts = fixed.Named("NearFacts")

// NearFacts implements ledger.Reading.
func (t *tx) NearFacts(ctx context.Context, tenant string, filter ledger.NearFilter) ([]ledger.NearFact, error) {
	return collect(ctx, t, nearFacts, readNearFact, tenant, filter.Subject, list(filter.Alike), list(filter.Types),
		int64(filter.At), int64(filter.Since), int64(filter.Until), filter.Limit)
}

func readNearFact(scan scan) (near ledger.NearFact, err error) {
	near.Fact, err = readFact(func(columns ...any) error { return scan(append(columns, &near.Alike)...) })
	return near, err
}
