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
	w, err := s.arrive(ctx, caller, ref, timeout)
	if err != nil {
		return Waited{}, err
	}
	to, err := w.stay(ctx)
	if err != nil {
		return Waited{}, err
	}
	return Waited{to.shown, !to.settled(), w.waited()}, nil
}

// wait is one call that waits for one action.
type wait struct {
	*Service
	caller            Caller
	key               gateKey
	started, deadline time.Time
	// gate is nil when there is nothing to wait for.
	gate *gate
}

// arrive looks the action up and joins its gate when it has to. Who arrives
// must stay, or leave.
func (s *Service) arrive(ctx context.Context, caller Caller, ref string, timeout time.Duration) (*wait, error) {
	if err := caller.need(keys.Read); err != nil {
		return nil, err
	}
	started := time.Now()
	stored, err := s.stored(ctx, caller.Tenant, ref)
	if err != nil {
		return nil, err
	}
	done, err := standing(stored)
	if err != nil {
		return nil, s.asProblem(ctx, err)
	}
	w := &wait{Service: s, caller: caller, key: gateKey{caller.Tenant, stored.ClaimID}, started: started, deadline: started.Add(min(timeout, MaxWait))}
	if done {
		return w, nil
	}
	return w, w.join(ctx)
}

// join takes a place at the gate, unless there is nothing to wait for. It joins
// before it looks again, so that a verdict that settles in between is not missed.
func (w *wait) join(ctx context.Context) error {
	if w.Hub == nil {
		return nil
	}
	w.gate = w.Hub.join(w.key)
	done, err := w.lookAgain(ctx, w.caller, w.key.claimID)
	if err != nil || done {
		w.leave()
	}
	return err
}

// leave gives the place at the gate back.
func (w *wait) leave() {
	if w.gate != nil {
		w.Hub.leave(w.gate)
		w.gate = nil
	}
}

// stay waits, and returns what is known then.
func (w *wait) stay(ctx context.Context) (*answerTo, error) {
	defer w.leave()
	for {
		if err := w.hold(ctx); err != nil {
			return nil, err
		}
		to, err := w.look(ctx)
		if err != nil || w.enough(to) {
			return to, err
		}
		if err := w.join(ctx); err != nil {
			return nil, err
		}
	}
}

// hold waits at the gate.
func (w *wait) hold(ctx context.Context) error {
	if w.gate == nil {
		return nil
	}
	timer := time.NewTimer(time.Until(w.deadline))
	defer timer.Stop()
	select {
	case <-w.gate.answer.ready:
	case <-timer.C:
	case <-w.Hub.closed:
	case <-ctx.Done():
		return w.asProblem(ctx, ctx.Err())
	}
	return nil
}

// look returns what was read when the gate opened, and otherwise what stands now. It leaves the gate.
func (w *wait) look(ctx context.Context) (*answerTo, error) {
	g := w.gate
	w.leave()
	if g != nil && g.answer.isReady() {
		return g.answer, g.answer.err
	}
	return w.answers.get(ctx, w.key)
}

// enough says whether the caller is told this, because it is settled or there is no more time.
func (w *wait) enough(to *answerTo) bool {
	return to.settled() || w.Hub == nil || w.Hub.ended() || !time.Now().Before(w.deadline)
}

// waited is for how long, in seconds.
func (w *wait) waited() float64 { return time.Since(w.started).Round(time.Millisecond).Seconds() }

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
