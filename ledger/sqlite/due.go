package sqlite

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	wake              = fixed.Named("Wake")
	dueContracts      = fixed.Named("DueContracts")
	wakeContracts     = fixed.Named("WakeContracts")
	dueTenants        = fixed.Named("DueTenants")
	leaseDue          = fixed.Named("LeaseDue")
	makeDue           = fixed.Named("MakeDue")
	leaseActions      = fixed.Named("LeaseActions")
	contractsOfClaims = fixed.Named("ContractsOfClaims")
	removeMade        = fixed.Named("RemoveMade")
	release           = fixed.Named("Release")
	parkDue           = fixed.Named("Park")
	parkedActions     = fixed.Named("ParkedActions")
)

// wakeList is which actions become due, and why.
type wakeList map[string]string

// add keeps the first reason.
func (w wakeList) add(claimID, triggeredBy string) {
	if _, ok := w[claimID]; !ok {
		w[claimID] = triggeredBy
	}
}

// wakeAll makes actions due at now.
func (t *tx) wakeAll(ctx context.Context, tenant string, wakes wakeList, now engine.Instant) error {
	if len(wakes) == 0 {
		return nil
	}
	var rows batch
	for claimID, triggeredBy := range wakes {
		rows.row().text(claimID).text(triggeredBy)
	}
	t.wake = true
	_, err := t.execute(ctx, wake, tenant, rows.parameter(), now)
	return err
}

// DueContracts implements ledger.EvidenceSide.
func (t *tx) DueContracts(ctx context.Context, tenant string) ([]ledger.ContractRef, error) {
	return collect(ctx, t, dueContracts, func(scan scan) (ref ledger.ContractRef, err error) {
		return ref, scan(&ref.ID, &ref.Version)
	}, tenant)
}

// WakeContracts implements ledger.EvidenceSide.
func (t *tx) WakeContracts(ctx context.Context, tenant string, contracts []ledger.ContractRef, now engine.Instant) (int, error) {
	var rows batch
	for _, ref := range contracts {
		rows.row().text(ref.ID).integer(int64(ref.Version))
	}
	woken, err := t.execute(ctx, wakeContracts, tenant, rows.parameter(), now)
	t.wake = t.wake || woken > 0
	return int(woken), err
}

// DueTenants implements ledger.Verification.
func (t *tx) DueTenants(ctx context.Context, now engine.Instant, limit int) ([]string, error) {
	return collect(ctx, t, dueTenants, column[string], now, limit)
}

// LeaseDue implements ledger.Verification.
func (t *tx) LeaseDue(ctx context.Context, tenant string, lease ledger.Lease, limit int) ([]ledger.Due, error) {
	due, err := collect(ctx, t, leaseDue, readDue, tenant, lease.Owner, lease.Now, lease.Until, limit)
	if err != nil {
		return nil, err
	}
	return t.withContracts(ctx, tenant, due)
}

// LeaseActions implements ledger.Verification.
func (t *tx) LeaseActions(ctx context.Context, tenant string, lease ledger.Lease, claimIDs []string) ([]ledger.Due, error) {
	if len(claimIDs) == 0 {
		return nil, nil
	}
	ids := list(claimIDs)
	if err := t.refuseExpired(ctx, tenant, ids); err != nil {
		return nil, err
	}
	if _, err := t.execute(ctx, makeDue, tenant, ids, lease.Now); err != nil {
		return nil, err
	}
	due, err := collect(ctx, t, leaseActions, readDue, tenant, lease.Owner, lease.Now, lease.Until, ids)
	if err != nil {
		return nil, err
	}
	return t.withContracts(ctx, tenant, due)
}

func readDue(scan scan) (d ledger.Due, err error) {
	err = scan(&d.ClaimID, &d.DueAt, &d.Generation, &d.TriggeredBy, &d.Attempts, &d.Made)
	return d, err
}

// withContracts adds the pinned versions and sorts, oldest due first: RETURNING knows neither other tables nor an order.
func (t *tx) withContracts(ctx context.Context, tenant string, due []ledger.Due) ([]ledger.Due, error) {
	if len(due) == 0 {
		return nil, nil
	}
	ids := make([]string, len(due))
	for i := range due {
		ids[i] = due[i].ClaimID
	}
	type pin struct {
		claim string
		ref   ledger.ContractRef
	}
	pins, err := collect(ctx, t, contractsOfClaims, func(scan scan) (p pin, err error) {
		return p, scan(&p.claim, &p.ref.ID, &p.ref.Version)
	}, tenant, list(ids))
	if err != nil {
		return nil, err
	}
	refs := make(map[string]ledger.ContractRef, len(pins))
	for _, p := range pins {
		refs[p.claim] = p.ref
	}
	for i := range due {
		due[i].Contract = refs[due[i].ClaimID]
	}
	slices.SortFunc(due, func(a, b ledger.Due) int {
		return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), strings.Compare(a.ClaimID, b.ClaimID))
	})
	return due, nil
}

// ReleaseDue implements ledger.Verification.
func (t *tx) ReleaseDue(ctx context.Context, tenant, owner string, due []ledger.Due) error {
	if len(due) == 0 {
		return nil
	}
	var rows batch
	for _, d := range due {
		rows.row().text(d.ClaimID).integer(d.Generation)
	}
	if _, err := t.execute(ctx, removeMade, tenant, owner, rows.parameter()); err != nil {
		return err
	}
	t.wake = true
	_, err := t.execute(ctx, release, tenant, owner, rows.parameter())
	return err
}

// Park implements ledger.Verification.
func (t *tx) Park(ctx context.Context, tenant, owner string, parked []ledger.Parked, now engine.Instant) error {
	if len(parked) == 0 {
		return nil
	}
	var rows batch
	for _, p := range parked {
		rows.row().text(p.Due.ClaimID).integer(p.Due.Generation).text(strings.ToValidUTF8(p.Error, "\uFFFD"))
	}
	stopped, err := collect(ctx, t, parkDue, column[string], tenant, owner, now, rows.parameter())
	if err != nil {
		return err
	}
	claimIDs := make(map[string]bool, len(stopped))
	for _, id := range stopped {
		claimIDs[id] = true
	}
	return t.tellParked(ctx, tenant, parked, claimIDs, now)
}

// ParkedActions implements ledger.Reading.
func (t *tx) ParkedActions(ctx context.Context, tenant string, limit int) ([]ledger.Parked, error) {
	return collect(ctx, t, parkedActions, func(scan scan) (p ledger.Parked, err error) {
		d := &p.Due
		err = scan(&d.ClaimID, &d.Contract.ID, &d.Contract.Version, &d.DueAt, &d.Generation, &d.TriggeredBy, &d.Attempts, &d.Made, &p.ActionID, &p.Error, &p.At)
		return p, err
	}, tenant, limit)
}
