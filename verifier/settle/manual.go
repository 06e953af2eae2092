package settle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-otel/countersign/ledger"
)

// ErrBusy: another verifier holds the action and did not finish in time.
var ErrBusy = errors.New("action is being verified elsewhere")

// ErrParked: the action could not be verified and waits for somebody to look at it.
var ErrParked = errors.New("action is parked")

// Verify evaluates recorded actions now and stores the runs, whether or not
// they are due. Runs stand in the order of claimIDs. An action that another
// verifier holds is waited for until ctx ends, then ErrBusy.
func (v *Verifier) Verify(ctx context.Context, tenant string, claims, unavailable []string, triggeredBy string) ([]ledger.Run, error) {
	byClaim, started := map[string]ledger.Run{}, time.Now()
	for missing := claims; len(missing) > 0; missing = without(claims, byClaim) {
		due, err := v.leaseActions(ctx, tenant, missing)
		if err != nil {
			return nil, err
		}
		if len(due) == 0 {
			if err := waitForOthers(ctx, tenant, missing); err != nil {
				return nil, err
			}
			continue
		}
		for i := range due {
			due[i].TriggeredBy = triggeredBy
		}
		runs, err := v.settleLeased(context.WithoutCancel(ctx), started, tenant, due, unavailable)
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			byClaim[run.ClaimID] = run
		}
		if err := v.checkParked(ctx, tenant, due, byClaim); err != nil {
			return nil, err
		}
	}
	return inOrder(claims, byClaim)
}

func (v *Verifier) leaseActions(ctx context.Context, tenant string, claims []string) (due []ledger.Due, err error) {
	err = v.Ledger.Update(ctx, func(tx ledger.Tx) error {
		known, err := tx.Actions(ctx, tenant, claims)
		if err != nil {
			return err
		}
		if len(known) < len(claims) {
			return fmt.Errorf("%w: %d of %d actions", ledger.ErrNotFound, len(claims)-len(known), len(claims))
		}
		due, err = tx.LeaseActions(ctx, tenant, v.lease(), claims)
		return err
	})
	return due, err
}

// waitForOthers waits a moment for another verifier to finish.
func waitForOthers(ctx context.Context, tenant string, claims []string) error {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: tenant %s, %d actions: %w", ErrBusy, tenant, len(claims), ctx.Err())
	case <-timer.C:
		return nil
	}
}

// checkParked fails when leased work has neither a run nor may be tried again.
func (v *Verifier) checkParked(ctx context.Context, tenant string, due []ledger.Due, byClaim map[string]ledger.Run) error {
	var left []string
	for _, d := range due {
		if _, ok := byClaim[d.ClaimID]; !ok {
			left = append(left, d.ClaimID)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return v.Ledger.View(ctx, func(tx ledger.Tx) error {
		actions, err := tx.Actions(ctx, tenant, left)
		if err != nil {
			return err
		}
		for _, a := range actions {
			if a.ParkedError != "" {
				return fmt.Errorf("%w: %q: %s", ErrParked, a.Action.ActionID, a.ParkedError)
			}
		}
		return nil
	})
}

func without(claims []string, byClaim map[string]ledger.Run) []string {
	var missing []string
	for _, claim := range claims {
		if _, ok := byClaim[claim]; !ok {
			missing = append(missing, claim)
		}
	}
	return missing
}
