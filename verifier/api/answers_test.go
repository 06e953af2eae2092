package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

// poisoned is a store in which one action cannot be read.
type poisoned struct {
	ledger.Ledger
	claim string
	fail  func() error
	reads atomic.Int64
}

type poisonedTx struct {
	ledger.Tx
	*poisoned
}

func (p *poisoned) View(ctx context.Context, f func(ledger.Tx) error) error {
	return p.Ledger.View(ctx, func(tx ledger.Tx) error { return f(poisonedTx{tx, p}) })
}

func (p poisonedTx) Actions(ctx context.Context, tenant string, refs []string) ([]ledger.StoredAction, error) {
	p.reads.Add(1)
	if slices.Contains(refs, p.claim) {
		return nil, p.fail()
	}
	return p.Tx.Actions(ctx, tenant, refs)
}

// TestOneUnreadableActionFailsAlone: those who waited for others in the same
// batch are told, also when the one lets the program panic. A store that is away
// is asked once.
func TestOneUnreadableActionFailsAlone(t *testing.T) {
	t.Parallel()
	const actions = 40
	for _, row := range []struct {
		name  string
		fail  func() error
		want  Code // of the others
		reads int64
	}{
		{"unreadable", func() error { return errors.New("params: unexpected end of JSON input") }, "", 40},
		{"panic", func() error { panic("index out of range") }, "", 40},
		{"away", func() error { return fmt.Errorf("%w: connection refused", ledger.ErrUnavailable) }, CodeUnavailable, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			asked := map[string][]*answerTo{claimID(tenantA, "nobody"): {newAnswerTo(nil)}}
			for i := range actions {
				id := fmt.Sprintf("act_%d", i)
				f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", strings.Replace(refundAction, "act_1", id, 1))
				asked[claimID(tenantA, id)] = []*answerTo{newAnswerTo(nil)}
			}
			bad := claimID(tenantA, "act_7")
			store := &poisoned{Ledger: f.store, claim: bad, fail: row.fail}
			f.service.Ledger = store
			f.service.answers.answer(t.Context(), tenantA, asked)
			codeOf := func(claim string) Code {
				to := asked[claim][0]
				<-to.ready
				var p *Problem
				if errors.As(to.err, &p) {
					return p.Code
				}
				if to.err == nil && to.shown.Status != view.Unverified {
					return Code(to.shown.Status)
				}
				return ""
			}
			for claim := range asked {
				want := row.want
				switch {
				case claim == bad && want == "":
					want = CodeInternal
				case claim == claimID(tenantA, "nobody") && want == "":
					want = CodeNotFound
				}
				if got := codeOf(claim); got != want {
					t.Errorf("%s: %q, want %q", claim, got, want)
				}
			}
			if reads := store.reads.Load(); reads > row.reads {
				t.Errorf("the store was asked %d times, want %d at most", reads, row.reads)
			}
		})
	}
}
