package view

import (
	"context"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
)

// nearFacts is how many facts of one type are looked at on each side of the request.
const nearFacts = 20

// NearMisses works out what came nearest to the facts that the checks of the
// latest verification of an action are missing, under the contract version of
// the action: with two statements, and none when nothing is missing or the
// verification is not about the action as it stands. It is no evidence. It tells
// of facts, so show it only to who may inspect sources.
func NearMisses(ctx context.Context, tx ledger.Reading, tenant string, c *contract.Contract, stored ledger.StoredAction) ([]report.NearMiss, error) {
	run, a := stored.Latest, stored.Action
	if run == nil || run.Policy.Raw == engine.Verified {
		return nil, nil
	}
	if changed, err := ActionChanged(a, run); err != nil || changed {
		return nil, err
	}
	r, err := ReportOf(run)
	if err != nil {
		return nil, err
	}
	search := report.NewSearch(c, a, r.Checks)
	types := search.Types()
	if len(types) == 0 {
		return nil, nil
	}
	filter := ledger.NearFilter{Subject: a.SubjectID, Alike: search.Spellings(), Types: types, At: a.RequestedAt, Limit: nearFacts}
	filter.Since, filter.Until = search.Span()
	near, err := tx.NearFacts(ctx, tenant, filter)
	if err != nil || len(near) == 0 {
		return nil, err
	}
	connections, err := tx.Connections(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var facts, alike []engine.Fact
	for _, f := range near {
		if f.Alike {
			alike = append(alike, f.Fact)
		} else {
			facts = append(facts, f.Fact)
		}
	}
	return search.Nearest(facts, alike, engine.Sources(connections, nil)), nil
}
