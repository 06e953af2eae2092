package api

import (
	"context"
	"sync"
	"time"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

// answerBatch is how many actions are looked up at once for those who waited.
const answerBatch = 500

// answerTimeout bounds one look-up: a store that hangs must not hold who comes later.
const answerTimeout = 10 * time.Second

// answers looks up what those who waited are told. Verdicts settle in batches,
// and so are their answers read: while one batch is under way the next gathers,
// and who waited for the same action gets the same answer.
type answers struct {
	service *Service

	mu       sync.Mutex
	awaited  map[gateKey]*answerTo
	underWay bool
}

type answerTo struct {
	ready chan struct{}
	shown view.Verification
	err   error
}

// get looks at the action at this moment or later. The caller's right to read it was checked.
func (a *answers) get(ctx context.Context, key gateKey) (view.Verification, error) {
	a.mu.Lock()
	to, gathers := a.awaited[key]
	if !gathers {
		to = &answerTo{ready: make(chan struct{})}
		a.awaited[key] = to
	}
	if !a.underWay {
		a.underWay = true
		go a.work(context.WithoutCancel(ctx))
	}
	a.mu.Unlock()
	select {
	case <-to.ready:
		return to.shown, to.err
	case <-ctx.Done():
		return view.Verification{}, a.service.asProblem(ctx, ctx.Err())
	}
}

// work answers batch by batch until nobody is left.
func (a *answers) work(ctx context.Context) {
	for {
		batch := a.take()
		if batch == nil {
			return
		}
		for tenant, asked := range batch {
			a.answer(ctx, tenant, asked)
		}
	}
}

func (a *answers) take() map[string]map[string]*answerTo {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.awaited) == 0 {
		a.underWay = false
		return nil
	}
	batch, n := map[string]map[string]*answerTo{}, 0
	for key, to := range a.awaited {
		if n == answerBatch {
			break
		}
		n++
		if batch[key.tenant] == nil {
			batch[key.tenant] = map[string]*answerTo{}
		}
		batch[key.tenant][key.claimID] = to
		delete(a.awaited, key)
	}
	return batch
}

func (a *answers) answer(ctx context.Context, tenant string, asked map[string]*answerTo) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	claims := make([]string, 0, len(asked))
	for claim := range asked {
		claims = append(claims, claim)
	}
	var shown map[string]view.Verification
	err := a.service.view(ctx, func(tx ledger.Tx) (err error) {
		shown, err = a.service.showAll(ctx, tx, tenant, claims)
		return err
	})
	for claim, to := range asked {
		found, known := shown[claim]
		switch {
		case err != nil:
			to.err = err
		case !known:
			to.err = notFound("no action %q is recorded", clip(claim))
		}
		to.shown = found
		close(to.ready)
	}
}

// showAll shows actions with their latest verifications, by internal id, with
// as many statements for all as for one. What is unknown is left out.
func (s *Service) showAll(ctx context.Context, tx ledger.Tx, tenant string, claims []string) (map[string]view.Verification, error) {
	actions, err := tx.Actions(ctx, tenant, claims)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(actions))
	var seqs []int64
	for i, stored := range actions {
		ids[i] = stored.Action.ActionID
		if stored.Latest != nil && stored.Latest.PreviousSeq != 0 {
			seqs = append(seqs, stored.Latest.PreviousSeq)
		}
	}
	compensations, err := tx.Compensations(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	replaced, err := runsAt(ctx, tx, tenant, seqs)
	if err != nil {
		return nil, err
	}
	shown := make(map[string]view.Verification, len(actions))
	for _, stored := range actions {
		parts := view.Parts{Stored: stored, Run: stored.Latest}
		if c, ok := compensations[stored.Action.ActionID]; ok {
			parts.Compensation = &c
		}
		if stored.Latest != nil {
			if run, ok := replaced[stored.Latest.PreviousSeq]; ok {
				parts.Previous = &run
			}
		} else if parts.SettlesAt, err = s.settlesAt(ctx, tx, stored); err != nil {
			return nil, err
		}
		made, err := view.Make(parts)
		if err != nil {
			return nil, err
		}
		shown[stored.ClaimID] = woken(made, stored)
	}
	return shown, nil
}

// woken says of a settled verdict that a newer record waits to be judged.
func woken(shown view.Verification, stored ledger.StoredAction) view.Verification {
	if shown.Status == ledger.Settled && stored.ParkedError == "" {
		shown.Settlement.NextCheckAt = stored.NextCheckAt
	}
	return shown
}

func runsAt(ctx context.Context, tx ledger.Tx, tenant string, seqs []int64) (map[int64]ledger.Run, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	runs, err := tx.RunsAt(ctx, tenant, seqs)
	bySeq := make(map[int64]ledger.Run, len(runs))
	for _, run := range runs {
		bySeq[run.Seq] = run
	}
	return bySeq, err
}
