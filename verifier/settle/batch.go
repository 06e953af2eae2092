package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/engine/seal"
	"github.com/countersign-otel/countersign/ledger"
)

// settleLeased settles leased work, one contract version after the other, and
// returns the stored runs. After a failure, which is mostly that of a store that
// is away, the rest is given back and does not wait for its lease to end.
func (v *Verifier) settleLeased(ctx context.Context, started time.Time, tenant string, due []ledger.Due, unavailable []string) ([]ledger.Run, error) {
	var stored []ledger.Run
	groups := byContract(due)
	for i, group := range groups {
		runs, err := v.settleGroup(ctx, started, tenant, group, unavailable)
		stored = append(stored, runs...)
		if err == nil {
			continue
		}
		if rest := slices.Concat(groups[i+1:]...); len(rest) > 0 {
			err = errors.Join(err, v.release(ctx, tenant, rest))
		}
		return stored, err
	}
	return stored, nil
}

func byContract(due []ledger.Due) [][]ledger.Due {
	var groups [][]ledger.Due
	index := map[ledger.ContractRef]int{}
	for _, d := range due {
		i, known := index[d.Contract]
		if !known {
			i = len(groups)
			index[d.Contract] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], d)
	}
	return groups
}

// settleGroup evaluates and stores work of one contract version. When the
// batch as a whole cannot be done for a reason that trying again does not
// mend, it is halved until the action that cannot be done stands alone and is parked.
func (v *Verifier) settleGroup(ctx context.Context, started time.Time, tenant string, due []ledger.Due, unavailable []string) ([]ledger.Run, error) {
	stored, err := v.settleOnce(ctx, started, tenant, due, unavailable)
	switch {
	case err == nil:
		return stored, nil
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrReadOnly), ctx.Err() != nil:
		return nil, errors.Join(err, v.release(ctx, tenant, due))
	case errors.Is(err, ledger.ErrLeaseLost) && len(due) == 1:
		return nil, nil // another verifier has it
	case len(due) == 1:
		return nil, v.park(ctx, tenant, []ledger.Parked{{Due: due[0], Error: err.Error()}})
	}
	half := len(due) / 2
	first, err := v.settleGroup(ctx, started, tenant, due[:half], unavailable)
	if err != nil {
		return first, errors.Join(err, v.release(ctx, tenant, due[half:]))
	}
	second, err := v.settleGroup(ctx, started, tenant, due[half:], unavailable)
	return append(first, second...), err
}

func (v *Verifier) settleOnce(ctx context.Context, started time.Time, tenant string, due []ledger.Due, unavailable []string) ([]ledger.Run, error) {
	var done outcome
	now := v.Now()
	err := v.Ledger.View(ctx, func(tx ledger.Tx) (err error) {
		done, err = v.evaluate(ctx, tx, tenant, due[0].Contract, claimIDs(due), unavailable, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	done.lease(v.Owner, due)
	var stored []ledger.Run
	err = v.Ledger.Update(ctx, func(tx ledger.Tx) (err error) {
		if stored, err = tx.StoreRuns(ctx, tenant, done.runs); err != nil {
			return err
		}
		if err := v.releaseOutdated(ctx, tx, tenant, done.runs, stored); err != nil {
			return err
		}
		if len(done.parked) == 0 {
			return nil
		}
		return tx.Park(ctx, tenant, v.Owner, done.parked, now)
	})
	if err != nil {
		return nil, err
	}
	v.observe(started, tenant, stored, done.actionsOf(stored))
	v.notify(tenant, stored, done.parked)
	return stored, nil
}

// releaseOutdated gives back what was recorded anew while it was judged: that
// made it due again.
func (v *Verifier) releaseOutdated(ctx context.Context, tx ledger.Tx, tenant string, judged, stored []ledger.Run) error {
	if len(stored) == len(judged) {
		return nil
	}
	kept := make(map[string]bool, len(stored))
	for i := range stored {
		kept[stored[i].ClaimID] = true
	}
	var outdated []ledger.Due
	for i := range judged {
		if run := &judged[i]; !kept[run.ClaimID] && run.Lease != nil {
			outdated = append(outdated, *run.Lease)
		}
	}
	return tx.ReleaseDue(ctx, tenant, v.Owner, outdated)
}

// observe pairs runs with their actions, which stand in the same order.
func (v *Verifier) observe(started time.Time, tenant string, stored []ledger.Run, actions []*engine.Action) {
	if v.Observe == nil || len(stored) == 0 {
		return
	}
	took := time.Since(started)
	observed := make([]Observation, len(stored))
	for i := range stored {
		observed[i] = Observation{&stored[i], actions[i], took}
	}
	v.Observe(tenant, observed)
}

func (v *Verifier) notify(tenant string, stored []ledger.Run, parked []ledger.Parked) {
	if v.OnStored != nil && len(stored) > 0 {
		v.OnStored(tenant, stored)
	}
	for _, p := range parked {
		v.Logger.Error("action parked", "tenant", tenant, "action_id", p.ActionID, "claim_id", p.Due.ClaimID, "error", p.Error)
	}
	if v.OnParked != nil && len(parked) > 0 {
		v.OnParked(tenant, parked)
	}
}

func (v *Verifier) park(ctx context.Context, tenant string, parked []ledger.Parked) error {
	now := v.Now()
	err := v.Ledger.Update(ctx, func(tx ledger.Tx) error { return tx.Park(ctx, tenant, v.Owner, parked, now) })
	if err == nil {
		v.notify(tenant, nil, parked)
	}
	return err
}

func (v *Verifier) release(ctx context.Context, tenant string, due []ledger.Due) error {
	return v.Ledger.Update(ctx, func(tx ledger.Tx) error { return tx.ReleaseDue(ctx, tenant, v.Owner, due) })
}

func claimIDs(due []ledger.Due) []string {
	ids := make([]string, len(due))
	for i, d := range due {
		ids[i] = d.ClaimID
	}
	return ids
}

// outcome of one evaluated batch.
type outcome struct {
	runs []ledger.Run
	// actions are those of runs, in the same order.
	actions []*engine.Action
	parked  []ledger.Parked
}

// actionsOf are the actions of the runs that were stored, in the same order.
func (o *outcome) actionsOf(stored []ledger.Run) []*engine.Action {
	if len(stored) == len(o.runs) {
		return o.actions
	}
	actions := make([]*engine.Action, 0, len(stored))
	for i := range o.runs {
		if n := len(actions); n < len(stored) && o.runs[i].ClaimID == stored[n].ClaimID {
			actions = append(actions, o.actions[i])
		}
	}
	return actions
}

// lease puts each result under the work that it was leased for.
func (o *outcome) lease(owner string, due []ledger.Due) {
	byClaim := make(map[string]*ledger.Due, len(due))
	for i := range due {
		byClaim[due[i].ClaimID] = &due[i]
	}
	for i := range o.runs {
		run := &o.runs[i]
		run.Owner, run.Lease = owner, byClaim[run.ClaimID]
		if run.Lease != nil {
			run.TriggeredBy = run.Lease.TriggeredBy
		}
	}
	for i := range o.parked {
		if d := byClaim[o.parked[i].Due.ClaimID]; d != nil {
			o.parked[i].Due = *d
		}
	}
}

// evaluate runs both evaluators over one snapshot and compares them.
func (v *Verifier) evaluate(ctx context.Context, tx ledger.Tx, tenant string, ref ledger.ContractRef, claims, unavailable []string, now engine.Instant) (outcome, error) {
	c, err := v.Contracts.Get(ctx, tx, ref)
	if err != nil {
		return outcome{}, err
	}
	judged, err := tx.Evaluate(ctx, tenant, c, claims, unavailable)
	if err != nil {
		return outcome{}, err
	}
	snapshot, err := tx.Snapshot(ctx, tenant, c, claims, unavailable)
	if err != nil {
		return outcome{}, err
	}
	previous, err := tx.LatestRuns(ctx, tenant, claims)
	if err != nil {
		return outcome{}, err
	}
	b := batch{contract: c, snapshot: snapshot, calls: seal.Calls(c, snapshot.Sources), previous: previous, now: now, reports: report.NewMaker(c, snapshot, now, v.Settings)}
	return b.compare(judged, v.Derive(c, snapshot))
}

// Evaluate judges recorded actions in the caller's transaction and stores
// nothing (dry run). Runs stand in the order of claimIDs. A disagreement of
// the evaluators is an error here.
func (v *Verifier) Evaluate(ctx context.Context, tx ledger.Tx, tenant string, claims, unavailable []string, now engine.Instant, triggeredBy string) ([]ledger.Run, error) {
	actions, err := tx.Actions(ctx, tenant, claims)
	if err != nil {
		return nil, err
	}
	var due []ledger.Due
	for _, a := range actions {
		ref := ledger.ContractRef{ID: a.Action.ContractID, Version: a.Action.ContractVersion}
		due = append(due, ledger.Due{ClaimID: a.ClaimID, Contract: ref, TriggeredBy: triggeredBy})
	}
	byClaim := map[string]ledger.Run{}
	for _, group := range byContract(due) {
		done, err := v.evaluate(ctx, tx, tenant, group[0].Contract, claimIDs(group), unavailable, now)
		if err != nil {
			return nil, err
		}
		if len(done.parked) > 0 {
			return nil, fmt.Errorf("%w: %s", ErrDisagreement, done.parked[0].Error)
		}
		for _, run := range done.runs {
			run.TriggeredBy = triggeredBy
			byClaim[run.ClaimID] = run
		}
	}
	return inOrder(claims, byClaim)
}

func inOrder(claims []string, byClaim map[string]ledger.Run) ([]ledger.Run, error) {
	runs := make([]ledger.Run, 0, len(claims))
	for _, claim := range claims {
		run, ok := byClaim[claim]
		if !ok {
			return nil, fmt.Errorf("%w: action %s", ledger.ErrNotFound, claim)
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// batch is one evaluated snapshot.
type batch struct {
	contract *contract.Contract
	snapshot *engine.Snapshot
	calls    []string
	previous map[string]ledger.Run
	now      engine.Instant
	reports  *report.Maker
}
