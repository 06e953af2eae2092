package api

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/settle"
	"github.com/countersign-otel/countersign/verifier/view"
)

// MaxWait is the longest that one call waits (AC "The completion gate").
const MaxWait = 60 * time.Second

// Waited is a verification and how long it was waited for.
type Waited struct {
	view.Verification
	// TimedOut: the verdict is not settled. Never report success then.
	TimedOut      bool    `json:"timed_out" doc:"the verdict did not settle in time; never report success then"`
	WaitedSeconds float64 `json:"waited_seconds"`
}

// Wait holds until the action's verdict is settled, the timeout passes (60
// seconds are the most) or ctx ends. An action that was never verified, or not
// since it was recorded anew with other content, is verified first, when the
// caller may ask for that. Waiting moves no verdict: facts decide.
func (s *Service) Wait(ctx context.Context, caller Caller, ref string, timeout time.Duration) (Waited, error) {
	if err := caller.need(keys.Read); err != nil {
		return Waited{}, err
	}
	started := time.Now()
	deadline := started.Add(min(timeout, MaxWait))
	stored, err := s.stored(ctx, caller.Tenant, ref)
	if err != nil {
		return Waited{}, err
	}
	done, err := standing(stored)
	if err != nil {
		return Waited{}, s.asProblem(ctx, err)
	}
	key := gateKey{caller.Tenant, stored.ClaimID}
	stored = ledger.StoredAction{} // what is looked up again after the waiting is not held meanwhile
	for {
		if s.Hub != nil && !done {
			if err := s.hold(ctx, caller, key.claimID, time.Until(deadline)); err != nil {
				return Waited{}, err
			}
		}
		shown, err := s.answers.get(ctx, key)
		if err != nil {
			return Waited{}, err
		}
		done = shown.Status == ledger.Settled && !shown.ActionChanged && shown.Settlement.NextCheckAt == nil
		if done || s.Hub == nil || s.Hub.ended() || !time.Now().Before(deadline) {
			return Waited{shown, !done, time.Since(started).Round(time.Millisecond).Seconds()}, nil
		}
	}
}

// standing says whether the verdict on the action as it stands is settled and
// nothing waits to be judged. A verdict on what it said before lets nobody
// through the gate, nor does one that a newer record has made due again.
func standing(stored ledger.StoredAction) (bool, error) {
	if stored.NextCheckAt != nil && stored.ParkedError == "" {
		return false, nil
	}
	return settled(stored)
}

// settled says whether the verdict on the action as it stands is settled.
func settled(stored ledger.StoredAction) (bool, error) {
	if stored.Latest == nil || stored.Latest.Status != ledger.Settled {
		return false, nil
	}
	changed, err := view.ActionChanged(stored.Action, stored.Latest)
	return !changed, err
}

// hold waits at the action's gate. It joins before it looks again, so that a
// verdict that settles in between is not missed.
func (s *Service) hold(ctx context.Context, caller Caller, claimID string, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	g, key := s.Hub.join(caller.Tenant, claimID)
	defer s.Hub.leave(key, g)
	if done, err := s.lookAgain(ctx, caller, claimID); err != nil || done {
		return err
	}
	select {
	case <-g.open:
	case <-timer.C:
	case <-s.Hub.closed:
	case <-ctx.Done():
		return s.asProblem(ctx, ctx.Err())
	}
	return nil
}

// lookAgain says whether there is nothing to wait for, and verifies what nobody has.
func (s *Service) lookAgain(ctx context.Context, caller Caller, claimID string) (done bool, err error) {
	stored, err := s.stored(ctx, caller.Tenant, claimID)
	if err != nil {
		return false, err
	}
	if done, err = standing(stored); err != nil {
		return false, s.asProblem(ctx, err)
	}
	if done {
		return true, nil
	}
	if stored.ParkedError != "" {
		return false, parkedProblem(stored.ParkedError)
	}
	// Never verified, or not since it was recorded anew after it settled.
	unverified := stored.Latest == nil || stored.Latest.Status == ledger.Settled
	if unverified && stored.NextCheckAt == nil && keys.May(caller.Role, keys.Verify) {
		return false, s.first(ctx, caller.Tenant, stored)
	}
	return false, nil
}

// first verifies what an action says for the first time, so that facts wake it from then on.
func (s *Service) first(ctx context.Context, tenant string, stored ledger.StoredAction) error {
	_, err := s.Verifier.Verify(ctx, tenant, []string{stored.ClaimID}, nil, trigger(stored))
	if err == nil || errors.Is(err, settle.ErrBusy) {
		return nil // somebody else verifies it: wait for that
	}
	return s.verifyProblem(ctx, tenant, stored.ClaimID, err)
}

func (s *Service) stored(ctx context.Context, tenant, ref string) (stored ledger.StoredAction, err error) {
	err = s.view(ctx, func(tx ledger.Tx) (err error) {
		stored, err = find(ctx, tx, tenant, ref)
		return err
	})
	return stored, err
}
