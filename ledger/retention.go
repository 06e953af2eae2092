package ledger

import (
	"context"
	"fmt"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
)

// LeastRetention is the shortest time that Expire keeps: reversals, late facts
// and re-verification have to find what they need.
const LeastRetention = 30 * engine.Day

// DroppedReport stands in the place of a report that retention removed.
const DroppedReport = `{"checks":[],"dropped":"retention"}`

// expiryPage is how many rows are looked at in one transaction.
const expiryPage = 2000

// ExpiryPage is one bounded step of retention.
type ExpiryPage struct {
	// Horizon: only what is older goes.
	Horizon engine.Instant
	// Reach is how far the aggregate limits of any contract look, 0 for none.
	Reach engine.Duration
	// After is Expired.Next of the page before, empty for the first.
	After string
	// Limit is how many rows are looked at.
	Limit int
	// Rehearse counts and removes nothing.
	Rehearse bool
	// Now is noted with what was removed.
	Now engine.Instant
}

// Expired counts what became of one page.
type Expired struct {
	// Looked is how many old rows there were, Dropped how many of them went.
	Looked, Dropped int
	// Next is empty after the last page.
	Next string
}

// Expiry is what one call of Expire did, or would do.
type Expiry struct {
	Horizon engine.Instant
	// Facts, Reports and Contexts (of traces) count what was removed; Kept counts
	// those that are older than the horizon and still needed.
	Facts, Reports, Contexts             int
	KeptFacts, KeptReports, KeptContexts int
	// Rejected counts rejected facts that were removed, KeyEvents uses of keys in
	// the audit log, Webhooks deliveries; nothing needs them.
	Rejected, KeyEvents, Webhooks int
	// Parkings counts events of parked work that were removed, KeptParkings those
	// that are as old and whose action is still parked or is the last in the sequence.
	Parkings, KeptParkings int
}

// Expire removes the facts, the reports and the trace contexts of one tenant that are older than
// the horizon and that nothing needs, page by page, each in a transaction of
// its own: it can be stopped at any time and called again. Each page notes the
// horizon with what it removed (Audit.Dropped).
//
// A fact stays as long as an action about its subject, or about a linked one,
//
//   - was requested at the horizon or later,
//   - is not settled, or is due,
//   - had its lookahead for reversals open at the horizon,
//   - or lies within the reach of an aggregate limit from one of these, whose
//     evidence it is part of.
//
// A report stays until its run and its action are older than the horizon,
// the action is settled and not due, and no event about the run waits for delivery.
// A trace context stays while an action of its trace is younger than the horizon or not settled.
//
// Runs, verdicts, their documents and the chain always stay. Rejected facts go
// when they did not come again since the horizon, and so do uses of keys; what
// was done to keys stays in their audit log. Deliveries of webhooks go when they
// finished before the horizon, or have waited since without being due again, as
// those of endpoints do that were taken out of the settings. Events of parked work
// go once the action is parked no longer.
func Expire(ctx context.Context, store Ledger, tenant string, horizon, now engine.Instant, rehearse bool, progress func(Expiry)) (Expiry, error) {
	if horizon > now.Sub(LeastRetention) {
		return Expiry{}, fmt.Errorf("%w: less than 30 days would be kept; reversals and late facts need what is younger", engine.ErrDuration)
	}
	reach, err := longestReach(ctx, store)
	if err != nil {
		return Expiry{}, err
	}
	e := expiring{ctx: ctx, store: store, tenant: tenant, progress: progress, done: Expiry{Horizon: horizon}}
	page := ExpiryPage{Horizon: horizon, Reach: reach, Limit: expiryPage, Rehearse: rehearse, Now: now}
	err = e.pages(page, func(tx Tx, p ExpiryPage) (Expired, error) { return tx.ExpireFacts(ctx, tenant, p) }, &e.done.Facts, &e.done.KeptFacts)
	if err != nil {
		return e.done, err
	}
	err = e.pages(page, func(tx Tx, p ExpiryPage) (Expired, error) { return tx.ExpireReports(ctx, tenant, p) }, &e.done.Reports, &e.done.KeptReports)
	if err != nil {
		return e.done, err
	}
	err = e.pages(page, func(tx Tx, p ExpiryPage) (Expired, error) { return tx.ExpireTraceContexts(ctx, tenant, p) }, &e.done.Contexts, &e.done.KeptContexts)
	if err != nil {
		return e.done, err
	}
	var kept int
	err = e.pages(page, func(tx Tx, p ExpiryPage) (Expired, error) { return tx.ExpireRejected(ctx, tenant, p) }, &e.done.Rejected, &kept)
	if err != nil {
		return e.done, err
	}
	err = e.pages(page, func(tx Tx, p ExpiryPage) (Expired, error) { return tx.ExpireKeyEvents(ctx, tenant, p) }, &e.done.KeyEvents, &kept)
	if err != nil {
		return e.done, err
	}
	err = e.pages(page, func(tx Tx, p ExpiryPage) (Expired, error) { return tx.ExpireWebhooks(ctx, tenant, p) }, &e.done.Webhooks, &kept)
	if err != nil {
		return e.done, err
	}
	err = e.pages(page, func(tx Tx, p ExpiryPage) (Expired, error) { return tx.ExpireParkings(ctx, tenant, p) }, &e.done.Parkings, &e.done.KeptParkings)
	return e.done, err
}

type expiring struct {
	ctx      context.Context
	store    Ledger
	tenant   string
	progress func(Expiry)
	done     Expiry
}

func (e *expiring) pages(page ExpiryPage, step func(Tx, ExpiryPage) (Expired, error), dropped, kept *int) error {
	for {
		var result Expired
		if err := e.store.Update(e.ctx, func(tx Tx) (err error) {
			result, err = step(tx, page)
			return err
		}); err != nil {
			return err
		}
		*dropped += result.Dropped
		*kept += result.Looked - result.Dropped
		if e.progress != nil {
			e.progress(e.done)
		}
		if page.After = result.Next; page.After == "" {
			return nil
		}
	}
}

// longestReach of the aggregate limits of all published contracts.
func longestReach(ctx context.Context, store Ledger) (reach engine.Duration, err error) {
	var documents []ContractDocument
	if err := store.View(ctx, func(tx Tx) (err error) {
		documents, err = allVersions(ctx, tx)
		return err
	}); err != nil {
		return 0, err
	}
	for _, document := range documents {
		c, err := ParseDocument(document)
		if err != nil {
			return 0, err
		}
		reach = max(reach, aggregateReach(c))
	}
	return reach, nil
}

// allVersions of all contracts, with two statements: versions are numbered from 1 to the latest, with gaps at most.
func allVersions(ctx context.Context, tx Tx) ([]ContractDocument, error) {
	latest, err := tx.ListContracts(ctx, "")
	if err != nil {
		return nil, err
	}
	var refs []ContractRef
	for _, d := range latest {
		for version := 1; version <= d.Version; version++ {
			refs = append(refs, ContractRef{d.ID, version})
		}
	}
	if len(refs) == 0 {
		return nil, nil
	}
	return tx.ContractVersions(ctx, refs)
}

func aggregateReach(c *contract.Contract) (reach engine.Duration) {
	for _, call := range c.Calls {
		if aggregate, is := call.(primitive.Aggregate); is {
			before, after := aggregate.Reach()
			reach = max(reach, before, after)
		}
	}
	return reach
}
