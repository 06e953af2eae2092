package ledgerexporter

import (
	"context"
	"errors"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// share is what one tenant has in a batch.
type share struct {
	tenant   string
	actions  []ledger.RecordRequest
	contexts []ledger.TraceContext
	evidence map[path]*evidence
	paths    []path // of evidence, in the order met
}

// evidence is what came one way.
type evidence struct {
	facts []engine.Fact
	links []engine.Link
}

// shares groups items by tenant, both in the order met.
func shares(items []item) []*share {
	var all []*share
	byTenant := map[string]*share{}
	for i := range items {
		it := &items[i]
		s := byTenant[it.tenant]
		if s == nil {
			s = &share{tenant: it.tenant, evidence: map[path]*evidence{}}
			byTenant[it.tenant] = s
			all = append(all, s)
		}
		s.take(it)
	}
	return all
}

func (s *share) take(it *item) {
	switch it.kind {
	case kindAction:
		s.actions = append(s.actions, it.action)
	case kindContext:
		s.contexts = append(s.contexts, it.context)
	case kindFact:
		came := s.came(it.path)
		came.facts = append(came.facts, it.fact)
	case kindLink:
		came := s.came(it.path)
		came.links = append(came.links, it.link)
	}
}

func (s *share) came(p path) *evidence {
	if s.evidence[p] == nil {
		s.evidence[p] = &evidence{}
		s.paths = append(s.paths, p)
	}
	return s.evidence[p]
}

// write does everything of a batch with a fixed number of calls for a tenant.
// Actions come first: what facts and contexts wake or complete may stand beside them.
func write(ctx context.Context, tx ledger.Tx, items []item, now engine.Instant, t *tally) error {
	for _, s := range shares(items) {
		if err := s.write(ctx, tx, now, t); err != nil {
			return err
		}
	}
	return nil
}

func (s *share) write(ctx context.Context, tx ledger.Tx, now engine.Instant, t *tally) error {
	if len(s.actions) > 0 {
		results, err := ledger.Record(ctx, tx, s.tenant, s.actions, now)
		if err != nil {
			return err
		}
		for i := range results {
			t.action(&results[i], s.actions[i].Action.ContractID)
		}
	}
	if len(s.contexts) > 0 {
		if err := tx.RecordTraceContexts(ctx, s.tenant, s.contexts, now); err != nil {
			return err
		}
		t.take(kindContext, outcomeStored, len(s.contexts))
	}
	for _, p := range s.paths {
		result, err := ledger.Ingest(ctx, tx, s.tenant, ledger.FactBatch{
			Facts: s.evidence[p].facts, Links: s.evidence[p].links, Connection: p.connection, Trust: p.trust,
		}, now)
		if err != nil {
			return err
		}
		t.evidence(&result, len(s.evidence[p].links))
	}
	return nil
}

func (t *tally) action(result *ledger.RecordResult, contract string) {
	switch {
	case errors.Is(result.Err, ledger.ErrUnknownContract):
		t.reject(kindAction, reasonUnknownContract)
		t.unknown(contract)
	case errors.Is(result.Err, ledger.ErrCycle):
		t.reject(kindAction, reasonCycle)
	case result.Err != nil:
		t.reject(kindAction, reasonInvalid)
	case result.Created:
		t.take(kindAction, outcomeCreated, 1)
	case result.Changed:
		t.take(kindAction, outcomeUpdated, 1)
	default:
		t.take(kindAction, outcomeUnchanged, 1)
	}
}

func (t *tally) evidence(result *ledger.IngestResult, links int) {
	t.take(kindFact, outcomeIngested, result.Ingested.Ingested)
	t.take(kindFact, outcomeDuplicate, result.Duplicates)
	t.take(kindFact, outcomeConflicting, result.Conflicting)
	for range result.RejectedFacts {
		t.reject(kindFact, reasonInvalid)
	}
	t.take(kindLink, outcomeStored, links-len(result.RejectedLinks))
	for range result.RejectedLinks {
		t.reject(kindLink, reasonInvalid)
	}
}
