package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	dueTenants    = named("DueTenants")
	leaseDue      = named("LeaseDue")
	leaseActions  = named("LeaseActions")
	removeMade    = named("RemoveMade")
	releaseDue    = named("Release")
	parkDue       = named("Park")
	releaseWoken  = named("ReleaseWoken")
	parkedActions = named("ParkedActions")
)

// DueTenants implements ledger.Verification.
func (t *tx) DueTenants(ctx context.Context, now engine.Instant, limit int) ([]string, error) {
	return collect(ctx, t, dueTenants, pgx.RowTo[string], now, limit)
}

// LeaseDue implements ledger.Verification.
func (t *tx) LeaseDue(ctx context.Context, tenant string, lease ledger.Lease, limit int) ([]ledger.Due, error) {
	if err := t.lookAgain(ctx, tenant, lease.Now); err != nil {
		return nil, err
	}
	return t.lease(ctx, leaseDue, tenant, lease, limit)
}

// LeaseActions implements ledger.Verification.
func (t *tx) LeaseActions(ctx context.Context, tenant string, lease ledger.Lease, claimIDs []string) ([]ledger.Due, error) {
	if err := t.refuseExpired(ctx, tenant, claimIDs); err != nil {
		return nil, err
	}
	return t.lease(ctx, leaseActions, tenant, lease, claimIDs)
}

// lease orders what was leased, because RETURNING promises no order.
func (t *tx) lease(ctx context.Context, s statement, tenant string, lease ledger.Lease, which any) ([]ledger.Due, error) {
	var incomplete []string
	due, err := collect(ctx, t, s, func(row pgx.CollectableRow) (ledger.Due, error) {
		var d ledger.Due
		var lacks bool
		err := row.Scan(append(dueTargets(&d), &lacks)...)
		if lacks {
			incomplete = append(incomplete, d.ClaimID)
		}
		return d, err
	}, tenant, lease.Now, lease.Owner, lease.Until, which)
	if len(due) > 0 {
		t.leased = append(t.leased, leasing{tenant, lease.Owner, due, incomplete})
	}
	slices.SortFunc(due, func(a, b ledger.Due) int {
		return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), cmp.Compare(a.ClaimID, b.ClaimID))
	})
	return due, err
}

func dueTargets(d *ledger.Due) []any {
	return []any{&d.ClaimID, &d.Contract.ID, &d.Contract.Version, (*int64)(&d.DueAt), &d.Generation, &d.TriggeredBy, &d.Attempts, &d.Made}
}

// ReleaseDue implements ledger.Verification.
func (t *tx) ReleaseDue(ctx context.Context, tenant, owner string, due []ledger.Due) error {
	ids, generations := make([]string, len(due)), make([]int64, len(due))
	for i, d := range due {
		ids[i], generations[i] = d.ClaimID, d.Generation
	}
	if _, err := t.execute(ctx, removeMade, tenant, owner, ids, generations); err != nil {
		return err
	}
	released, err := t.execute(ctx, releaseDue, tenant, owner, ids)
	t.wake = t.wake || released > 0
	return err
}

// Park implements ledger.Verification.
func (t *tx) Park(ctx context.Context, tenant, owner string, parked []ledger.Parked, now engine.Instant) error {
	ids, generations, texts := make([]string, len(parked)), make([]int64, len(parked)), make([]string, len(parked))
	for i, p := range parked {
		ids[i], generations[i], texts[i] = p.Due.ClaimID, p.Due.Generation, printable(p.Error)
	}
	stopped, err := collect(ctx, t, parkDue, pgx.RowTo[string], tenant, owner, now, ids, generations, texts)
	if err != nil {
		return err
	}
	released, err := t.execute(ctx, releaseWoken, tenant, owner, ids, generations)
	if err != nil {
		return err
	}
	t.wake = t.wake || released > 0
	return t.tellParked(ctx, tenant, parked, stopped, now)
}

// ParkedActions implements ledger.Reading.
func (t *tx) ParkedActions(ctx context.Context, tenant string, limit int) ([]ledger.Parked, error) {
	return collect(ctx, t, parkedActions, func(row pgx.CollectableRow) (ledger.Parked, error) {
		var p ledger.Parked
		err := row.Scan(append(dueTargets(&p.Due), &p.ActionID, &p.Error, (*int64)(&p.At))...)
		return p, err
	}, tenant, limit)
}
