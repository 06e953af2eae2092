package api

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// refuse notes an item that is not taken: for the answer, and to be kept. Its
// sender is told, but who looks for missing evidence is another one.
func (b *batch) refuse(index *int, kind, reason string, fault *Fault, raw json.RawMessage) {
	b.rejected = append(b.rejected, Rejected{index, fault.Pointer, fault.Detail})
	r := ledger.RejectedFact{Kind: kind, Reason: reason, Error: fault.Pointer + " " + fault.Detail, Item: string(mostKept(raw))}
	if kindOf(raw) == "an object" {
		each(raw, func(key string, value json.RawMessage) (goOn bool) {
			switch key {
			case "source":
				r.Source = engine.Fold(says(value))
			case "raw_ref":
				r.RawRef = says(value)
			case "subject_id":
				r.SubjectID = says(value)
			}
			return true
		})
	}
	b.kept = append(b.kept, r)
}

// says is a member of an item that need not be well formed, where it is a text.
func says(raw json.RawMessage) string {
	if kindOf(raw) != "a text" {
		return ""
	}
	return string(mostKept([]byte(textOf(raw))))
}

// mostKept cuts off what no store keeps: an item may be as long as the body that it came in.
func mostKept(text []byte) []byte { return text[:min(len(text), ledger.MaxRejectedItem)] }

// conflicting are facts that stand in the store with other content (decision
// D8). Of a reference that stands several times in a push the last one is kept.
func (b *batch) conflicting(ingested *ledger.Ingested) []ledger.RejectedFact {
	byRef := map[string]*engine.Fact{}
	if ingested.Conflicting > 0 {
		for i := range b.facts {
			byRef[b.facts[i].RawRef] = &b.facts[i]
		}
	}
	var kept []ledger.RejectedFact
	for _, ref := range ingested.ConflictingRefs {
		f := byRef[ref]
		if f == nil {
			continue
		}
		kept = append(kept, ledger.RejectedFact{
			Kind: "fact", Source: f.Source, Reason: ledger.RejectedConflicting, RawRef: f.RawRef, SubjectID: f.SubjectID,
			Error: ledger.ConflictText, Item: itemOf(f),
		})
	}
	if more := ingested.Conflicting - len(kept); more > 0 {
		kept = append(kept, ledger.RejectedFact{Kind: "fact", Source: b.onlySource(), Reason: ledger.RejectedConflicting, Error: ledger.ConflictText, Times: more})
	}
	return kept
}

// onlySource is that of all facts of the push; empty where there are several.
func (b *batch) onlySource() string {
	sources := map[string]bool{}
	for i := range b.facts {
		sources[b.facts[i].Source] = true
	}
	if len(sources) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(sources))[0]
}

func itemOf(f *engine.Fact) string {
	text, err := json.Marshal(FactBody{f.Source, f.SubjectID, f.SubjectKind, f.Type, f.OccurredAt, f.Attributes, f.RawRef})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// keeper keeps what was not taken; the zero value of budget keeps nothing.
type keeper struct {
	budget *ledger.RejectedBudget
	caller Caller
}

func (k keeper) keep(ctx context.Context, tx ledger.Tx, b *batch, ingested *ledger.Ingested, now engine.Instant) error {
	if k.budget == nil {
		return nil
	}
	kept := append(slices.Clone(b.kept), b.conflicting(ingested)...)
	if len(kept) == 0 {
		return nil
	}
	kept = k.budget.Bound(k.caller.Tenant, kept, now)
	by := "pushed without a key"
	if k.caller.Prefix != "" {
		by = "pushed with the key " + k.caller.Prefix
	}
	for i := range kept {
		kept[i].Error += "; " + by
	}
	return tx.RejectFacts(ctx, k.caller.Tenant, kept, now)
}
