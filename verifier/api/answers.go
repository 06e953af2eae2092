package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
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
	awaited  map[gateKey][]*answerTo
	underWay bool
}

// answerTo is what those who waited for one action are told. All but ready may
// be read once that is closed, and is not changed any more.
type answerTo struct {
	ready chan struct{}
	shown view.Verification
	err   error
	// gate is where they wait; nil for who asked at once.
	gate *gate

	once    sync.Once
	text    []byte
	textErr error
}

func newAnswerTo(g *gate) *answerTo { return &answerTo{ready: make(chan struct{}), gate: g} }

func (to *answerTo) isReady() bool {
	select {
	case <-to.ready:
		return true
	default:
		return false
	}
}

// settled says whether the verdict is, on the action as it stands, with nothing left to be judged.
func (to *answerTo) settled() bool {
	return to.shown.Status == ledger.Settled && !to.shown.ActionChanged && to.shown.Settlement.NextCheckAt == nil
}

// body is the JSON of Waited. What all who waited share is encoded once.
func (to *answerTo) body(waitedSeconds float64) ([]byte, error) {
	to.once.Do(func() {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false) // as huma does
		if to.textErr = encoder.Encode(to.shown); to.textErr == nil {
			to.text = bytes.TrimSuffix(text.Bytes(), []byte("}\n"))
		}
	})
	if to.textErr != nil {
		return nil, to.textErr
	}
	seconds, err := json.Marshal(waitedSeconds)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(make([]byte, 0, len(to.text)+64), "%s,\"timed_out\":%t,\"waited_seconds\":%s}\n", to.text, !to.settled(), seconds), nil
}

// get looks at the action at this moment or later. The caller's right to read it was checked.
func (a *answers) get(ctx context.Context, key gateKey) (*answerTo, error) {
	a.mu.Lock()
	var to *answerTo
	if gathered := a.awaited[key]; len(gathered) > 0 {
		to = gathered[0]
	} else {
		to = newAnswerTo(nil)
		a.awaited[key] = []*answerTo{to}
	}
	a.begin()
	a.mu.Unlock()
	select {
	case <-to.ready:
		return to, to.err
	case <-ctx.Done():
		return nil, a.service.asProblem(ctx, ctx.Err())
	}
}

// ask looks at the actions of gates that have opened, and lets those who wait there know.
func (a *answers) ask(opened []*gate) {
	if len(opened) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range opened {
		a.awaited[g.key] = append(a.awaited[g.key], g.answer)
	}
	a.begin()
}

// begin needs the lock.
func (a *answers) begin() {
	if !a.underWay {
		a.underWay = true
		go a.work(context.Background())
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

func (a *answers) take() map[string]map[string][]*answerTo {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.awaited) == 0 {
		a.underWay = false
		return nil
	}
	batch, n := map[string]map[string][]*answerTo{}, 0
	for key, to := range a.awaited {
		if n == answerBatch {
			break
		}
		n++
		if batch[key.tenant] == nil {
			batch[key.tenant] = map[string][]*answerTo{}
		}
		batch[key.tenant][key.claimID] = to
		delete(a.awaited, key)
	}
	return batch
}

func (a *answers) answer(ctx context.Context, tenant string, asked map[string][]*answerTo) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	claims := make([]string, 0, len(asked))
	for claim := range asked {
		claims = append(claims, claim)
	}
	a.look(ctx, tenant, claims, asked)
}

// look tells of each action what there is to see. Actions that cannot be read
// together are halved until the one that is to blame stands alone: the others
// are told.
func (a *answers) look(ctx context.Context, tenant string, claims []string, asked map[string][]*answerTo) {
	told, err := a.show(ctx, tenant, claims, asked)
	switch {
	case told:
	case len(claims) > 1 && ofOne(ctx, err):
		half := len(claims) / 2
		a.look(ctx, tenant, claims[:half], asked)
		a.look(ctx, tenant, claims[half:], asked)
	default:
		a.tell(asked, claims, nil, a.service.asProblem(ctx, err))
	}
}

// tell lets those go who wait for these actions.
func (a *answers) tell(asked map[string][]*answerTo, claims []string, shown map[string]view.Verification, err error) {
	var gates []*gate
	for _, claim := range claims {
		found, known := shown[claim]
		for _, to := range asked[claim] {
			to.shown, to.err = found, err
			if err == nil && !known {
				to.err = notFound("no action %q is recorded", clip(claim))
			}
			close(to.ready)
			if to.gate != nil {
				gates = append(gates, to.gate)
			}
		}
	}
	if len(gates) > 0 {
		a.service.Hub.wake(gates)
	}
}

// ofOne says whether an error may come of one action: the store is there, and there is time.
func ofOne(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	for _, ofAll := range []error{ledger.ErrUnavailable, ledger.ErrReadOnly, ledger.ErrNotMigrated, ledger.ErrNewerSchema} {
		if errors.Is(err, ofAll) {
			return false
		}
	}
	return true
}

// show reads actions and tells of them, before the transaction has ended: it has
// written nothing, and its end is one more way to the store and back. A defect is
// an error like any other: this runs for many requests, and outside of all of them.
func (a *answers) show(ctx context.Context, tenant string, claims []string, asked map[string][]*answerTo) (told bool, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("showing an action failed: %v", cause)
			if len(claims) == 1 {
				a.service.Logger.ErrorContext(ctx, "showing an action failed", "tenant", tenant, "claim_id", claims[0], "cause", cause, "stack", string(debug.Stack()))
			}
		}
	}()
	err = a.service.Ledger.View(ctx, func(tx ledger.Tx) error {
		shown, err := a.service.showAll(ctx, tx, tenant, claims)
		if err != nil || told { // a store may try twice
			return err
		}
		told = true
		a.tell(asked, claims, shown, nil)
		return nil
	})
	return told, err
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
