package ledger

import (
	"context"
	"fmt"

	"github.com/countersign-otel/countersign/engine"
)

// RecordRequest is an action as it was sent.
type RecordRequest struct {
	// Action need not be normalized. ContractVersion 0 pins the latest version
	// (AC "Idempotency", Contract version); ActionType and SubjectKind are the
	// contract's when empty. RequestedAt is never absent: 0 is 1970.
	Action engine.Action
	// StartedNanos is the start of the action's span in OTLP nanoseconds; 0 when unknown.
	StartedNanos int64
	// Verify queues the first verification with the record (decision D15).
	Verify bool
	// Untimed: no requested_at was sent, and Action.RequestedAt is the time of recording.
	Untimed bool
}

// RecordResult says what became of one request: Err, or Recorded.
type RecordResult struct {
	Recorded
	// Err wraps engine.ErrAction, ErrUnknownContract or ErrCycle; ErrExpired comes with engine.ErrAction.
	Err error
}

// Record normalizes actions, resolves their contracts and records the good
// ones, with one batch of statements. Results stand in the order of items; a
// bad item takes no other one with it. The error is the store's.
func Record(ctx context.Context, tx Tx, tenant string, items []RecordRequest, now engine.Instant) ([]RecordResult, error) {
	r := recording{results: make([]RecordResult, len(items)), actions: make([]engine.Action, len(items))}
	for i, item := range items {
		r.actions[i], r.results[i].Err = item.Action.Normalize()
	}
	if err := r.resolve(ctx, tx); err != nil {
		return nil, err
	}
	if err := r.rejectCycles(ctx, tx, tenant); err != nil {
		return nil, err
	}
	if err := r.rejectExpired(ctx, tx, tenant, now); err != nil {
		return nil, err
	}
	return r.store(ctx, tx, tenant, items, now)
}

// recording is one call of Record. What has an error in results is left out of the next step.
type recording struct {
	actions []engine.Action
	results []RecordResult
}

// good yields the indexes of the items that are still good.
func (r *recording) good(yield func(int) bool) {
	for i := range r.results {
		if r.results[i].Err == nil && !yield(i) {
			return
		}
	}
}

// resolve pins the contract version and fills in what the contract says of its actions.
func (r *recording) resolve(ctx context.Context, tx Tx) error {
	var refs []ContractRef
	seen := map[ContractRef]bool{}
	for i := range r.good {
		ref := refOf(r.actions[i])
		if !seen[ref] {
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	found, err := resolve(ctx, tx, refs)
	if err != nil {
		return err
	}
	for i := range r.good {
		a := &r.actions[i]
		contract := found[refOf(*a)]
		if contract.err != nil {
			r.results[i].Err = contract.err
			continue
		}
		a.ContractVersion = contract.contract.Version
		if a.ActionType == "" {
			a.ActionType = contract.contract.ActionType
		}
		if a.SubjectKind == "" {
			a.SubjectKind = contract.contract.SubjectKind
		}
	}
	return nil
}

func refOf(a engine.Action) ContractRef { return ContractRef{a.ContractID, a.ContractVersion} }

// rejectCycles refuses an action whose compensation leads back to itself
// (decision D18). Of a known action the recorded compensation stands, whatever
// the request says.
func (r *recording) rejectCycles(ctx context.Context, tx Tx, tenant string) error {
	var roots []string
	compensating := false
	for i := range r.good {
		roots = append(roots, r.actions[i].ActionID)
		if to := r.actions[i].Compensates; to != "" {
			roots = append(roots, to)
			compensating = true
		}
	}
	if !compensating {
		return nil
	}
	leads, err := tx.CompensationChains(ctx, tenant, roots)
	if err != nil {
		return err
	}
	for i := range r.good {
		a := r.actions[i]
		if _, known := leads[a.ActionID]; known {
			continue
		}
		if leadsTo(leads, a.Compensates, a.ActionID) {
			r.results[i].Err = fmt.Errorf("%w: action %q compensates %q, which compensates it in turn; name the action that is corrected", ErrCycle, a.ActionID, a.Compensates)
			continue
		}
		leads[a.ActionID] = a.Compensates
	}
	return nil
}

// leadsTo follows compensations from an action. What is recorded has no cycle,
// but a bound costs nothing.
func leadsTo(leads map[string]string, from, to string) bool {
	for range len(leads) + 1 {
		if from == to {
			return true
		}
		if from = leads[from]; from == "" {
			return false
		}
	}
	return true
}

// rejectExpired refuses new actions that are older than what retention has
// kept: their facts are gone, and a verdict would be a wrong one. Nothing is
// looked up while all actions are younger than any horizon can be.
func (r *recording) rejectExpired(ctx context.Context, tx Tx, tenant string, now engine.Instant) error {
	var old []string
	for i := range r.good {
		if r.actions[i].RequestedAt < now.Sub(LeastRetention) {
			old = append(old, r.actions[i].ActionID)
		}
	}
	if len(old) == 0 {
		return nil
	}
	dropped, err := tx.Dropped(ctx, tenant)
	if err != nil || dropped.Horizon == 0 {
		return err
	}
	known, err := tx.CompensationChains(ctx, tenant, old)
	if err != nil {
		return err
	}
	for i := range r.good {
		a := &r.actions[i]
		if _, is := known[a.ActionID]; !is && a.RequestedAt < dropped.Horizon {
			r.results[i].Err = fmt.Errorf("%w: requested_at %s of action %q is %w: facts before %s were dropped; record actions sooner", engine.ErrAction, a.RequestedAt, a.ActionID, ErrExpired, dropped.Horizon)
		}
	}
	return nil
}

func (r *recording) store(ctx context.Context, tx Tx, tenant string, items []RecordRequest, now engine.Instant) ([]RecordResult, error) {
	var batch []NewAction
	var places []int
	for i := range r.good {
		batch = append(batch, NewAction{Action: r.actions[i], StartedNanos: items[i].StartedNanos, Verify: items[i].Verify, Untimed: items[i].Untimed})
		places = append(places, i)
	}
	if len(batch) == 0 {
		return r.results, nil
	}
	recorded, err := tx.RecordActions(ctx, tenant, batch, now)
	if err != nil {
		return nil, err
	}
	for n, i := range places {
		r.results[i].Recorded = recorded[n]
	}
	return r.results, nil
}
