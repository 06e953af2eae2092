package speccases

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
)

// Rows is the whole table.
func Rows() []Row {
	return slices.Concat(effectRows, forbiddenRows, stateRows, paramRows, aggregateRows, reversalRows, orderRows)
}

// Requested is when every row's action was requested: 2026-09-28T10:42:00Z.
const Requested = engine.Instant(1_790_592_120)

// Actions are the row's action and its peers, the action first.
func (r Row) Actions(tb testing.TB) []engine.Action {
	tb.Helper()
	actions := []engine.Action{{ActionID: "act-1", SubjectID: "order", RequestedAt: Requested, AgentID: r.Agent}}
	if r.Params != "" {
		actions[0].Params = parseObject(tb, r.Params)
	}
	for _, text := range r.Peers {
		actions = append(actions, parsePeer(tb, text))
	}
	return actions
}

// AllFacts are the row's facts, normalized.
func (r Row) AllFacts(tb testing.TB) []engine.Fact {
	tb.Helper()
	var facts []engine.Fact
	for _, text := range r.Facts {
		facts = append(facts, parseFact(tb, text))
	}
	return facts
}

// Snapshot is the row's world in memory.
func (r Row) Snapshot(tb testing.TB) *engine.Snapshot {
	tb.Helper()
	actions := r.Actions(tb)
	s := &engine.Snapshot{Tenant: "t", Actions: actions[:1], Peers: actions, Links: r.Links, Sources: r.Sources, Facts: map[string][]engine.Fact{}}
	for _, f := range r.AllFacts(tb) {
		s.Facts[f.SubjectID] = append(s.Facts[f.SubjectID], f)
	}
	for _, facts := range s.Facts {
		slices.SortFunc(facts, engine.CompareFacts)
	}
	return s
}

// Check compares an evaluation of the row's action with what the table says.
func (r Row) Check(tb testing.TB, e engine.Evaluation) {
	tb.Helper()
	if got := line(e.Outcome); got != r.Outcome {
		tb.Errorf("outcome is %q, want %q", got, r.Outcome)
	}
	if got := line(e.Policy); got != r.Policy {
		tb.Errorf("policy is %q, want %q", got, r.Policy)
	}
	for i, want := range r.Findings {
		f := e.Findings[i]
		got := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", f.Evidence, f.Value.Expected, f.Value.Observed)), " ")
		if got != want {
			tb.Errorf("finding %d is %q, want %q", i, got, want)
		}
	}
}

func line(v engine.Verdict) string { return v.Raw.Label() + " " + strings.Join(v.Reasons, ",") }

// ContractText is the row's contract under an id.
func (r Row) ContractText(id string) string {
	return "id: " + id + "\nversion: 1\nkind: action\nvendor: internal\nvendor_display: x\ndescription: x\nsource_citation: {url: 'internal://x', retrieved: '2026-09-28', title: x}\n" +
		r.Envelope + "action:\n  window: 10m\n  " + strings.ReplaceAll(r.Blocks, "\n", "\n  ") + "\n"
}

// Contract parses ContractText.
func (r Row) Contract(tb testing.TB, id string) *contract.Contract {
	tb.Helper()
	c, diagnostics := contract.Parse(id+".yaml", []byte(r.ContractText(id)))
	if len(diagnostics) > 0 {
		tb.Fatalf("contract is refused: %v\n%s", diagnostics, r.ContractText(id))
	}
	return c
}

func parseObject(tb testing.TB, text string) engine.Object {
	tb.Helper()
	o, err := engine.ParseObject([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// parseFact reads "source.type@seconds subject {attributes}"; its raw_ref is the text before the
// attributes.
func parseFact(tb testing.TB, text string) engine.Fact {
	tb.Helper()
	head, rest, _ := strings.Cut(text, " ")
	f := engine.Fact{RawRef: head, SubjectID: "order"}
	if rest != "" && rest[0] != '{' {
		f.SubjectID, rest, _ = strings.Cut(rest, " ")
		f.RawRef += " " + f.SubjectID
	}
	if rest != "" {
		f.Attributes = parseObject(tb, rest)
	}
	name, seconds, _ := strings.Cut(head, "@")
	f.Source, f.Type, _ = strings.Cut(name, ".")
	f.OccurredAt = Requested + parseSeconds(tb, seconds)
	normalized, err := f.Normalize()
	if err != nil {
		tb.Fatal(err)
	}
	return normalized
}

func parsePeer(tb testing.TB, text string) engine.Action {
	tb.Helper()
	parts := strings.Split(text, " ")
	id, seconds, _ := strings.Cut(parts[0], "@")
	return engine.Action{ActionID: id, SubjectID: parts[1], AgentID: parts[2], RequestedAt: Requested + parseSeconds(tb, seconds)}
}

func parseSeconds(tb testing.TB, text string) engine.Instant {
	tb.Helper()
	var seconds engine.Instant
	if err := json.Unmarshal([]byte(text), (*int64)(&seconds)); err != nil {
		tb.Fatalf("%q: %v", text, err)
	}
	return seconds
}
