package main

import (
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/api"
	"github.com/countersign-otel/countersign/verifier/view"
)

// printVerification prints the view for people, or as JSON the whole answer
// that it came in.
func printVerification(t *terminal, v view.Verification, whole any) error {
	if t.json() {
		return t.printJSON(whole)
	}
	headline, rest, _ := strings.Cut(v.Summary.Headline, " ")
	t.printf("%s %s\n\n", t.style.bold(t.style.verdict(printable(headline))), printable(rest))
	t.field("action", fmt.Sprintf("%s on %s %s", v.Action.ActionID, v.Action.SubjectKind, v.Action.SubjectID))
	t.field("contract", fmt.Sprintf("%s version %d", v.Action.ContractID, v.Action.ContractVersion))
	t.field("requested", requestedBy(v.Action))
	t.field("status", statusText(v))
	t.lens("outcome", v.Status, v.Outcome)
	t.lens("policy", v.Status, v.Policy)
	if v.Resolution != nil {
		t.field("resolution", fmt.Sprintf("%s by %s at %s", v.Resolution.State, v.Resolution.By, v.Resolution.At))
	}
	if v.Run != nil && !v.DryRun {
		t.field("stored as", fmt.Sprintf("%s, sequence number %d, at %s", v.Run.ID, v.Run.Seq, v.Run.ComputedAt))
	}
	if v.DryRun {
		t.field("stored as", "nothing: a dry run")
	}
	if len(v.Checks) > 0 {
		t.printf("\n")
		checks := checkTable(v.Checks, v.Status)
		checks.notes = nearNotes(v.NearMisses)
		t.print(checks)
	}
	return nil
}

func (t *terminal) field(name, text string) {
	t.printf("%s %s\n", t.style.dim(fmt.Sprintf("%-10s", name)), printable(text))
}

func (t *terminal) lens(name, status string, lens *view.Lens) {
	if lens == nil {
		return
	}
	text := t.style.verdict(lens.Verdict)
	if status == "pending" {
		text += " so far"
	}
	t.printf("%s %s  %s\n", t.style.dim(fmt.Sprintf("%-10s", name)), text, printable(strings.Join(lens.Reasons, ", ")))
}

func requestedBy(a view.Action) string {
	text := a.RequestedAt.String()
	if a.AgentID != nil {
		text += " by " + *a.AgentID
	}
	if a.Tool != "" {
		text += " with " + a.Tool
	}
	return text
}

func statusText(v view.Verification) string {
	s := v.Settlement
	text := v.Status
	if v.Status != "settled" && s.SettlesAt != nil {
		text += fmt.Sprintf(", window closes %s", *s.SettlesAt)
	}
	if len(s.WaitingOn) > 0 {
		text += ", waiting for " + laggards(s.WaitingOn)
	}
	if len(s.StaleSources) > 0 {
		text += ", without " + laggards(s.StaleSources)
	}
	return text
}

func laggards(list []report.Lagging) string {
	texts := make([]string, len(list))
	for i, l := range list {
		texts[i] = l.String()
	}
	return strings.Join(texts, ", ")
}

func checkTable(checks []report.Check, status string) table {
	b := table{head: []string{"OK", "SECTION", "CHECK", "VALUE", "EVIDENCE"}}
	for _, check := range checks {
		b.add(okWord(check, status), string(check.Section), printable(ruleName(check)),
			printable(valueText(check.Value)), printable(evidenceText(check.Evidence)))
	}
	return b
}

// nearNotes are hints below the checks that are missing a fact.
func nearNotes(near []report.NearMiss) map[int][]string {
	notes := map[int][]string{}
	for _, m := range near {
		trust := "of unknown trust"
		if m.Fact.Trust != nil {
			trust = m.Fact.Trust.String()
		}
		note := fmt.Sprintf("    near miss: %s at %s from %s (%s) %s", shortRef(m.Fact.RawRef), m.Fact.OccurredAt, m.Fact.Source, trust, m.Text)
		notes[m.Check] = append(notes[m.Check], printable(note))
	}
	return notes
}

// okWord says of an effect that is missing while the window is open that it is awaited, not missed.
func okWord(check report.Check, status string) string {
	switch {
	case check.OK:
		return "ok"
	case check.Section == contract.ExpectedEffects && status == ledger.Pending:
		return "not yet"
	}
	return "NO"
}

// ruleName is a check's description as the name of a rule. Two descriptions are
// sentences about a rule that was broken, which beside "ok" say the opposite.
func ruleName(check report.Check) string {
	name := strings.TrimSuffix(check.Description, " was not so before the action")
	return strings.TrimSuffix(name, " undid the action")
}

// valueText prints a check's value; over HTTP {expected, observed} comes as a map.
func valueText(value any) string {
	switch v := value.(type) {
	case nil:
		return "-"
	case report.Compared:
		return fmt.Sprintf("%s, expected %s", v.Observed, v.Expected)
	case map[string]any:
		return fmt.Sprintf("%v, expected %v", v["observed"], v["expected"])
	}
	return fmt.Sprint(value)
}

func evidenceText(e *report.Evidence) string {
	switch {
	case e == nil:
		return "-"
	case e.OccurredAt != nil:
		return fmt.Sprintf("%s at %s", shortRef(e.RawRef), *e.OccurredAt)
	}
	return shortRef(e.RawRef)
}

// shortRef cuts the hash of a derived reference; JSON has all of it.
func shortRef(rawRef string) string {
	const derived, shown = "agent_api:fact:", 12
	if strings.HasPrefix(rawRef, derived) && len(rawRef) > len(derived)+shown {
		return rawRef[:len(derived)+shown] + "..."
	}
	return rawRef
}

// printRejected names what of the evidence was not taken, beside the answer.
func printRejected(t *terminal, pushed *api.Pushed) {
	if pushed == nil {
		return
	}
	for _, r := range pushed.Rejected {
		t.warn("not taken: %s %s", printable(r.Pointer), printable(r.Error))
	}
}
