package settle_test

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/settle"
)

// publishUpdates publishes the refund contract under the name of a value of updates.
func (b *bench) publishUpdates(value string) {
	b.t.Helper()
	text, err := os.ReadFile("../../contracts/refund_workflow.yaml")
	if err != nil {
		b.t.Fatal(err)
	}
	document := strings.NewReplacer("id: refund_workflow", "id: "+value, "\naction:\n", "\naction:\n  updates: "+value+"\n").Replace(string(text))
	c, diagnostics := contract.Parse("contract.yaml", []byte(document))
	if c == nil {
		b.t.Fatal(diagnostics)
	}
	b.update(func(tx ledger.Tx) error {
		return tx.PublishContracts(b.t.Context(), []*contract.Contract{c}, requested)
	})
}

// refund is an action under a contract, for an amount of an order.
func (b *bench) refund(contractID, id, order, amount string) ledger.RecordRequest {
	b.t.Helper()
	params, err := engine.ParseObject([]byte(`{"amount":` + amount + `}`))
	if err != nil {
		b.t.Fatal(err)
	}
	return ledger.RecordRequest{Verify: true, Action: engine.Action{
		ActionID: id, ContractID: contractID, SubjectID: "order_" + order, RequestedAt: requested, Params: params,
	}}
}

func (b *bench) recordOne(r ledger.RecordRequest) (recorded ledger.Recorded) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) error {
		results, err := ledger.Record(b.t.Context(), tx, tenant, []ledger.RecordRequest{r}, b.config.Now())
		if err != nil {
			return err
		}
		recorded = results[0].Recorded
		return results[0].Err
	})
	return recorded
}

// listed are the actions that are listed under a policy verdict.
func (b *bench) listed(verdict string) (ids []string) {
	b.t.Helper()
	err := b.ledger.View(b.t.Context(), func(tx ledger.Tx) error {
		page, err := tx.ListActions(b.t.Context(), tenant, ledger.ActionFilter{Verdict: verdict})
		for _, a := range page.Actions {
			ids = append(ids, a.Action.ActionID)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return ids
}

// TestFailThatIsRecordedAnew: an agent that refunded too much says afterwards that
// it refunded something else, and asks again. AC "Idempotency" lets it, and the
// FAIL is a listed PASS; a contract with updates: until_settled does not.
func TestFailThatIsRecordedAnew(t *testing.T) {
	onBothStores(t, func(t *testing.T, b *bench) {
		for _, row := range []struct {
			updates, listed string
			conflicting     []string
			story           []string
		}{
			{"always", "PASS", nil, []string{"settled PASS/FAIL by action, tells action.verified", "settled PASS/PASS by manual, tells action.verified"}},
			{"until_settled", "FAIL", []string{"subject_id", "params"}, []string{"settled PASS/FAIL by action, tells action.verified", "settled PASS/FAIL by manual, tells "}},
		} {
			id := "a " + row.updates
			b.publishUpdates(row.updates)
			b.at(60)
			b.push(id, allEffects...)
			b.push("harmless", allEffects...)
			b.recordOne(b.refund(row.updates, id, id, "400"))
			b.settleAll(settled(b, id))
			if !slices.Contains(b.listed("FAIL"), id) {
				t.Fatalf("%s: not failed: %v", row.updates, b.story(id))
			}

			recorded := b.recordOne(b.refund(row.updates, id, "harmless", "180"))
			if diff := cmp.Diff(row.conflicting, recorded.Conflicting); diff != "" {
				t.Errorf("%s: conflicting (-want +got):\n%s", row.updates, diff)
			}
			if _, err := b.verifier.Verify(t.Context(), tenant, []string{recorded.ClaimID}, nil, "manual"); err != nil {
				t.Fatal(err)
			}
			b.wantStory(id, row.story...)
			for _, verdict := range []string{"PASS", "FAIL"} {
				if slices.Contains(b.listed(verdict), id) != (verdict == row.listed) {
					t.Errorf("%s: listed as %s are %v", row.updates, verdict, b.listed(verdict))
				}
			}
		}
	})
}

// TestRecordedAnewWhileItIsJudged: under updates: until_settled no verdict settles
// about what is recorded no more. What was judged beside it is stored; the action is
// given back, and judged as it is.
func TestRecordedAnewWhileItIsJudged(t *testing.T) {
	onBothStores(t, func(t *testing.T, b *bench) {
		b.publishUpdates("until_settled")
		var once sync.Once
		b.config.Derive = func(c *contract.Contract, s *engine.Snapshot) []engine.Evaluation {
			once.Do(func() {
				if got := b.recordOne(b.refund("until_settled", "a", "a", "180")); !got.Changed || got.Conflicting != nil {
					t.Errorf("recorded anew: %+v", got)
				}
			})
			return goeval.Evaluate(c, s)
		}
		var observed []string
		var mu sync.Mutex
		b.config.Observe = func(_ string, runs []settle.Observation) {
			mu.Lock()
			defer mu.Unlock()
			for _, o := range runs {
				if o.Run.ClaimID != engine.ClaimID(tenant, o.Action.ActionID) {
					t.Errorf("a run of %s is told with action %s", o.Run.ClaimID, o.Action.ActionID)
				}
				observed = append(observed, o.Action.ActionID+" "+o.Action.Params.Text())
			}
		}
		b.at(60)
		for _, id := range []string{"a", "b"} {
			b.push(id, allEffects...)
			b.recordOne(b.refund("until_settled", id, id, "400"))
		}
		b.settleAll(func() bool { return settled(b, "a")() && settled(b, "b")() })
		b.wantStory("a", "settled PASS/PASS by action, tells action.verified")
		b.wantStory("b", "settled PASS/FAIL by action, tells action.verified")
		if diff := cmp.Diff([]string{`b {"amount":400}`, `a {"amount":180}`}, observed); diff != "" {
			t.Errorf("observed (-want +got):\n%s", diff)
		}

		// By hand, too.
		once = sync.Once{}
		b.recordOne(b.refund("until_settled", "c", "c", "400"))
		b.push("c", allEffects...)
		b.config.Derive = func(c *contract.Contract, s *engine.Snapshot) []engine.Evaluation {
			once.Do(func() { b.recordOne(b.refund("until_settled", "c", "c", "180")) })
			return goeval.Evaluate(c, s)
		}
		if _, err := settle.New(b.config).Verify(t.Context(), tenant, []string{engine.ClaimID(tenant, "c")}, nil, "manual"); err != nil {
			t.Fatal(err)
		}
		b.wantStory("c", "settled PASS/PASS by manual, tells action.verified")
	})
}
