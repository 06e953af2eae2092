package ledgerexporter

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// share is what one tenant has in a batch.
type share struct {
	tenant   string
	actions  []ledger.RecordRequest
	contexts []ledger.TraceContext
	evidence map[path]*evidence
	// items is how many items the batch has: what most of them are made of comes one way.
	items int
	paths []path // of evidence, in the order met
}

// evidence is what came one way, with the items that it was made of.
type evidence struct {
	facts []engine.Fact
	links []engine.Link
	// factItems and linkItems stand beside facts and links.
	factItems, linkItems []*item
}

// shares groups items by tenant, both in the order met.
func shares(items []item) []*share {
	var all []*share
	byTenant := map[string]*share{}
	for i := range items {
		it := &items[i]
		s := byTenant[it.tenant]
		if s == nil {
			s = &share{tenant: it.tenant, evidence: map[path]*evidence{}, items: len(items) - i}
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
		s.actions = append(s.actions, *it.action)
	case kindContext:
		s.contexts = append(s.contexts, *it.context)
	case kindFact:
		came := s.came(it.path)
		if came.facts == nil && len(s.paths) == 1 {
			came.facts, came.factItems = make([]engine.Fact, 0, s.items), make([]*item, 0, s.items)
		}
		came.facts, came.factItems = append(came.facts, *it.fact), append(came.factItems, it)
	case kindLink:
		came := s.came(it.path)
		came.links, came.linkItems = append(came.links, it.link), append(came.linkItems, it)
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
func (s *sorter) write(ctx context.Context, tx ledger.Tx, items []item, now engine.Instant, t *tally) error {
	for _, share := range shares(items) {
		if err := share.write(ctx, tx, s, now, t); err != nil {
			return err
		}
	}
	return nil
}

func (s *share) write(ctx context.Context, tx ledger.Tx, sorter *sorter, now engine.Instant, t *tally) error {
	if len(s.actions) > 0 {
		results, err := ledger.Record(ctx, tx, s.tenant, s.actions, now)
		if err != nil {
			return err
		}
		if err := waitForContracts(ctx, tx, results); err != nil {
			return err
		}
		for i := range results {
			t.action(s.tenant, &results[i], s.actions[i].Action.ContractID)
		}
	}
	if len(s.contexts) > 0 {
		if err := tx.RecordTraceContexts(ctx, s.tenant, s.contexts, now); err != nil {
			return err
		}
		t.take(kindContext, outcomeStored, len(s.contexts))
	}
	for _, p := range s.paths {
		came := s.evidence[p]
		result, err := ledger.Ingest(ctx, tx, s.tenant, ledger.FactBatch{
			Facts: came.facts, Links: came.links, Connection: p.connection, Trust: p.trust,
		}, now)
		if err != nil {
			return err
		}
		sorter.evidence(came, &result, t)
	}
	return nil
}

// errNoContracts: a collector may start before anybody published a contract. That passes.
var errNoContracts = errors.New("the store holds no contract yet, and actions wait for one; run countersign contracts publish")

// waitForContracts tells a store that has no contract at all from an action
// that names a wrong one: the first is a matter of time, and no reason to lose what agents did.
func waitForContracts(ctx context.Context, tx ledger.Tx, results []ledger.RecordResult) error {
	unknown := func(r ledger.RecordResult) bool { return errors.Is(r.Err, ledger.ErrUnknownContract) }
	if !slices.ContainsFunc(results, unknown) {
		return nil
	}
	published, err := tx.ListContracts(ctx, "")
	if err == nil && len(published) == 0 {
		err = errNoContracts
	}
	return err
}

func (t *tally) action(tenant string, result *ledger.RecordResult, contract string) {
	switch {
	case errors.Is(result.Err, ledger.ErrUnknownContract):
		t.reject(kindAction, reasonUnknownContract)
		t.unknown(contract)
	case errors.Is(result.Err, ledger.ErrCycle):
		t.reject(kindAction, reasonCycle)
	case result.Err != nil:
		t.reject(kindAction, reasonInvalid)
	case len(result.Conflicting) > 0:
		t.take(kindAction, outcomeConflicting, 1)
		t.hold(1, heldAction{tenant, result.Action.ActionID, result.Conflicting})
	case result.Created:
		t.take(kindAction, outcomeCreated, 1)
	case result.Changed:
		t.take(kindAction, outcomeUpdated, 1)
	default:
		t.take(kindAction, outcomeUnchanged, 1)
	}
}

// evidence counts what became of facts and links of one path.
func (s *sorter) evidence(came *evidence, result *ledger.IngestResult, t *tally) {
	t.take(kindFact, outcomeIngested, result.Ingested.Ingested)
	t.take(kindFact, outcomeDuplicate, result.Duplicates)
	t.take(kindFact, outcomeConflicting, result.Conflicting)
	t.take(kindLink, outcomeStored, len(came.links)-len(result.RejectedLinks))
	for _, r := range result.RejectedFacts {
		s.refuse(came.factItems[r.Index], reasonInvalid, r.Err.Error(), t)
	}
	for _, r := range result.RejectedLinks {
		s.refuse(came.linkItems[r.Index], reasonInvalid, r.Err.Error(), t)
	}
	s.conflicting(came, result, t)
}

// conflicting keeps facts that stand in the store with other content (decision
// D8). Where a reference stands several times in the batch, the last one is kept.
func (s *sorter) conflicting(came *evidence, result *ledger.IngestResult, t *tally) {
	if result.Conflicting == 0 || s.role != Evidence {
		return
	}
	byRef := make(map[string]*item, len(came.factItems))
	for _, it := range came.factItems {
		byRef[it.fact.RawRef] = it
	}
	kept := 0
	for _, ref := range result.ConflictingRefs {
		if it := byRef[ref]; it != nil {
			t.keep(it.tenant, it.rejected(reasonConflicting, ledger.ConflictText))
			kept++
		}
	}
	// The store names some; the others count.
	if more := result.Conflicting - kept; more > 0 {
		first := came.factItems[0]
		t.keep(first.tenant, ledger.RejectedFact{
			Kind: string(kindFact), Source: first.fact.Source, Connection: first.path.connection, Reason: reasonConflicting,
			Error: ledger.ConflictText, Times: more,
		})
	}
}

// keep stores what was rejected, after all that was good.
func (w *writer) keep(ctx context.Context, store ledger.Ledger, t *tally, now engine.Instant) error {
	if len(t.kept) == 0 {
		return nil
	}
	bounded := make(map[string][]ledger.RejectedFact, len(t.kept))
	for tenant, kept := range t.kept {
		bounded[tenant] = w.budget.Bound(tenant, kept, now)
	}
	return store.Update(ctx, func(tx ledger.Tx) error {
		for _, tenant := range slices.Sorted(maps.Keys(bounded)) {
			if err := tx.RejectFacts(ctx, tenant, bounded[tenant], now); err != nil {
				return err
			}
		}
		return nil
	})
}
