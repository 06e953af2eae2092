package web

import (
	"context"

	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

// findNear works out hints at near misses, for the latest verification alone:
// those of earlier ones were overtaken. Who may sign in may look at facts.
func (f *found) findNear(ctx context.Context, tx ledger.Tx, tenant string) (err error) {
	if f.shown < 0 || f.shown < len(f.runs)-1 {
		return nil
	}
	f.near, err = view.NearMisses(ctx, tx, tenant, f.contract, f.stored)
	return err
}

// nearMiss is the hint at a check; nil for none.
func nearMiss(near []report.NearMiss, check int) *report.NearMiss {
	for i := range near {
		if near[i].Check == check {
			return &near[i]
		}
	}
	return nil
}
