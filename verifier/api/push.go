package api

import (
	"context"
	"fmt"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

// Push is POST /facts: facts, links and watermarks of the sources that the
// caller's key is bound to. What cannot be taken is rejected item by item.
func (s *Service) Push(ctx context.Context, caller Caller, body []byte) (Pushed, error) {
	if err := caller.need(keys.Push); err != nil {
		return Pushed{}, err
	}
	live, err := s.live(ctx, caller.Tenant)
	if err != nil {
		return Pushed{}, err
	}
	var faults []Fault
	o, err := parseBody(body, factsMembers, &faults)
	if err != nil {
		return Pushed{}, err
	}
	now := s.Now()
	evidence := o.evidence(pushing(caller.Key, live), now.Add(watermarkSkew))
	if len(faults) > 0 {
		return Pushed{}, invalid("the facts cannot be taken", faults...)
	}
	var ingested ledger.Ingested
	err = s.update(ctx, func(tx ledger.Tx) (err error) {
		ingested, err = ingest(ctx, tx, keeper{&s.rejected, caller}, &evidence, now)
		return err
	})
	if err != nil {
		return Pushed{}, err
	}
	pushed := pushedOf(ingested, evidence.rejected)
	if s.OnPushed != nil {
		s.OnPushed(caller, pushed)
	}
	return pushed, nil
}

func pushedOf(ingested ledger.Ingested, rejected []Rejected) Pushed {
	return Pushed{ingested.Ingested, ingested.Duplicates, ingested.Conflicting, rejected}
}

// ingest stores a batch as the facts API's. Its trust is shared: the operator's
// own pipeline pushes it with a credential (decision D10). What was not taken is kept.
func ingest(ctx context.Context, tx ledger.Tx, k keeper, b *batch, now engine.Instant) (ledger.Ingested, error) {
	result, err := ledger.Ingest(ctx, tx, k.caller.Tenant, ledger.FactBatch{
		Facts: b.facts, Links: b.links, Watermarks: b.watermarks,
		Connection: engine.FactsAPI, Trust: engine.Shared,
	}, now)
	if err != nil {
		return ledger.Ingested{}, err
	}
	// Everything was checked while it was parsed: a rejection here is a defect, not bad input.
	for _, r := range append(result.RejectedFacts, result.RejectedLinks...) {
		return ledger.Ingested{}, fmt.Errorf("a checked item was rejected: %w", r.Err)
	}
	for source, err := range result.RejectedWatermarks {
		return ledger.Ingested{}, fmt.Errorf("the checked watermark of %s was rejected: %w", source, err)
	}
	return result.Ingested, k.keep(ctx, tx, b, &result.Ingested, now)
}

// live maps sources that a live connection serves to the connection's name.
func (s *Service) live(ctx context.Context, tenant string) (map[string]string, error) {
	var live map[string]string
	err := s.view(ctx, func(tx ledger.Tx) error {
		connections, err := tx.Connections(ctx, tenant)
		live = liveConnections(connections)
		return err
	})
	return live, err
}
