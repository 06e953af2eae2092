package agentactionprocessor

import (
	"context"
	"fmt"
	"slices"

	"github.com/countersign-otel/countersign/engine"
)

// decision is what one rule made of a call that it concerns.
type decision struct {
	rule *ruleHead
	// skipped: the rule's condition does not hold.
	skipped bool
	// action is recorded unless err says why not.
	action engine.Action
	// note says what had to be left out of the action.
	note error
	// lost are the params among that.
	lost []string
	// err says why nothing is recorded; where the agent's own words are the
	// cause it is a *missing.
	err error
}

// scratch is what decide works with; one serves a whole batch.
type scratch struct {
	call call // of the span at hand
	callContext
	decision
	ids []string
}

// decide lets every rule that concerns the call make an action of it, in the
// order of the configuration. A decision is no longer valid after each returns.
func decide[K any](ctx context.Context, s *scratch, rules []rule[K], tc K, c *call, each func(*decision)) {
	s.callContext = callContext{ctx, c}
	s.ids = s.ids[:0]
	for i := range rules {
		if !rules[i].concerns(c) {
			continue
		}
		d := &s.decision
		*d = decision{rule: rules[i].ruleHead}
		rules[i].decide(&s.callContext, tc, d)
		if d.err == nil && !d.skipped {
			s.ids = append(s.ids, d.tellApart(s.ids))
		}
		each(d)
	}
}

func (r *rule[K]) decide(ctx *callContext, tc K, d *decision) {
	held, err := r.holds(ctx, tc)
	if err != nil || !held {
		d.skipped, d.err = err == nil, err
		return
	}
	d.err = r.action(ctx, tc, d)
}

// tellApart: several rules may record one call, each as an action of its own.
// All but the first get the contract's id behind the call's, unless that is
// taken too.
func (d *decision) tellApart(ids []string) string {
	if !slices.Contains(ids, d.action.ActionID) {
		return d.action.ActionID
	}
	id := d.action.ActionID + "-" + d.action.ContractID
	if slices.Contains(ids, id) || len(id) > engine.MaxOpaque {
		d.err = fmt.Errorf("action_id: an earlier rule records %.80s under this id already; set action_id in one of them", d.action.ActionID)
		return ""
	}
	d.action.ActionID = id
	return id
}

// problem is what is written on the span or record; empty for nothing.
func (d *decision) problem() string {
	switch {
	case d.err != nil:
		return d.rule.label() + ": not recorded: " + d.err.Error()
	case d.note != nil:
		return d.rule.label() + ": recorded without: " + d.note.Error()
	}
	return ""
}
