package ledger

import (
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
)

// HeldFields is contract.Contract.HeldFields as it is stored beside a contract
// version: names with spaces between, empty for a contract that holds nothing.
func HeldFields(c *contract.Contract) string { return strings.Join(c.HeldFields(), " ") }

// Hold takes an update of an action back in the fields that are held, which a
// store has read under the row's lock, and names those in which it differed.
// An update that was sent without a time differs by none.
func Hold(held string, before *engine.Action, update NewAction, after *engine.Action) (conflicting []string) {
	if held == "" {
		return nil
	}
	if update.Untimed {
		after.RequestedAt = before.RequestedAt
	}
	for _, field := range strings.Fields(held) {
		if !differ(field, before, after) {
			continue
		}
		restore(field, before, after)
		conflicting = append(conflicting, field)
	}
	return conflicting
}

// judgedFields are all that a verdict of some contract depends on.
var judgedFields = []string{
	engine.FieldSubjectID, engine.FieldRequestedAt, engine.FieldParams, engine.FieldAgentID, engine.FieldChannel,
	engine.FieldWorkflowID, engine.FieldSessionID, engine.FieldReferenceID,
}

// Judged names the actions whose runs are to be stored only if they still say
// what was judged. Most contracts have none.
func Judged(runs []Run) (claimIDs []string) {
	for i := range runs {
		if runs[i].heldBack() {
			claimIDs = append(claimIDs, runs[i].ClaimID)
		}
	}
	return claimIDs
}

func (r *Run) heldBack() bool { return r.Judged != nil && r.Status == Settled }

// Current leaves out settled runs of content that is recorded no more. Recorded
// are the actions of Judged, read under their rows' locks.
func Current(tenant string, runs []Run, recorded []engine.Action) []Run {
	if len(recorded) == 0 {
		return runs
	}
	byClaim := make(map[string]*engine.Action, len(recorded))
	for i := range recorded {
		byClaim[engine.ClaimID(tenant, recorded[i].ActionID)] = &recorded[i]
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r Run) bool {
		now := byClaim[r.ClaimID]
		return r.heldBack() && now != nil && slices.ContainsFunc(judgedFields, func(field string) bool { return differ(field, r.Judged, now) })
	})
}

func differ(field string, a, b *engine.Action) bool {
	switch field {
	case engine.FieldRequestedAt:
		return a.RequestedAt != b.RequestedAt
	case engine.FieldParams:
		// 180 and 180.0, and another order of keys, make the same verdict.
		return a.Params.Canonical() != b.Params.Canonical()
	}
	x, y := text(a, field), text(b, field)
	return x != nil && *x != *y
}

func restore(field string, from, to *engine.Action) {
	switch field {
	case engine.FieldRequestedAt:
		to.RequestedAt = from.RequestedAt
	case engine.FieldParams:
		to.Params = from.Params
	default:
		*text(to, field) = *text(from, field)
	}
}

// text is a field that is a text; nil for any other.
func text(a *engine.Action, field string) *string {
	switch field {
	case engine.FieldSubjectID:
		return &a.SubjectID
	case engine.FieldAgentID:
		return &a.AgentID
	case engine.FieldChannel:
		return &a.Channel
	case engine.FieldWorkflowID:
		return &a.WorkflowID
	case engine.FieldSessionID:
		return &a.SessionID
	case engine.FieldReferenceID:
		return &a.ReferenceID
	}
	return nil
}
