package contracttest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/engine/report"
)

// Snapshot is the test's world as a store would give it to the Go evaluator.
func (t *Test) Snapshot(c *contract.Contract) *engine.Snapshot {
	s := &engine.Snapshot{
		Tenant:  engine.DefaultTenant,
		Actions: t.Bind(c.ID, c.Version, c.ActionType, c.SubjectKind),
		Links:   map[string][]string{},
		Facts:   map[string][]engine.Fact{},
		Sources: engine.Sources(t.connections(), t.Unavailable),
	}
	s.Peers = s.Actions
	for _, l := range t.Links {
		s.Links[l.SubjectID] = append(s.Links[l.SubjectID], l.LinkedSubjectID)
		s.Links[l.LinkedSubjectID] = append(s.Links[l.LinkedSubjectID], l.SubjectID)
	}
	known := map[string]bool{}
	for _, f := range t.Facts {
		if !known[f.RawRef] { // the first one stands (decision D8)
			known[f.RawRef] = true
			s.Facts[f.SubjectID] = append(s.Facts[f.SubjectID], f)
		}
	}
	for _, facts := range s.Facts {
		slices.SortFunc(facts, engine.CompareFacts)
	}
	return s
}

// connections are the declared ones, and the facts API for every other source
// that has facts or a watermark. Facts come over the first connection of their source.
func (t *Test) connections() []engine.Connection {
	all := slices.Clone(t.Connections)
	for _, source := range t.SourceNames() {
		i := slices.IndexFunc(all, func(c engine.Connection) bool { return c.Source == source })
		if i < 0 {
			i = len(all)
			all = append(all, engine.Connection{Source: source, Name: engine.FactsAPI, Trust: engine.Shared})
		}
		all[i].Delivered = slices.ContainsFunc(t.Facts, func(f engine.Fact) bool { return f.Source == source })
		if at, ok := t.Watermarks[source]; ok && (all[i].Watermark == nil || *all[i].Watermark < at) {
			all[i].Watermark = &at
		}
	}
	return all
}

// Verdict is what a verification said of one action.
type Verdict struct {
	Evaluation engine.Evaluation
	Report     report.Report
}

// Evaluate judges the test's actions with the Go evaluator, in order.
func (t *Test) Evaluate(c *contract.Contract, settings report.Settings) []Verdict {
	s := t.Snapshot(c)
	verdicts := make([]Verdict, len(s.Actions))
	for i, e := range goeval.Evaluate(c, s) {
		verdicts[i] = Verdict{e, report.Make(c, s, s.Actions[i], e, t.At, settings)}
	}
	return verdicts
}

// Compare lists what of a verdict is not as expected, one readable block each;
// nothing when all is.
func (x Expect) Compare(v Verdict) []string {
	var d differences
	status := "pending"
	if v.Report.Settlement.Settled {
		status = "settled"
	}
	d.text("status", x.Status, status)
	d.text("outcome", x.Outcome, v.Evaluation.Outcome.Raw.Label())
	d.text("policy", x.Policy, v.Evaluation.Policy.Raw.Label())
	d.list("reasons", x.Reasons, v.Evaluation.Policy.Reasons)
	d.list("outcome_reasons", x.OutcomeReasons, v.Evaluation.Outcome.Reasons)
	d.text("headline", x.Headline, v.Report.Summary.Headline)
	d.list("waiting_on", x.WaitingOn, names(v.Report.Settlement.WaitingOn))
	d.list("stale_sources", x.StaleSources, names(v.Report.Settlement.StaleSources))
	for _, check := range x.Checks {
		d.check(check, v.Report.Checks)
	}
	return d
}

func names(lagging []report.Lagging) []string {
	list := make([]string, len(lagging))
	for i, l := range lagging {
		list[i] = l.Source
	}
	return list
}

type differences []string

func (d *differences) text(what, want, got string) {
	if want != "" && want != got {
		*d = append(*d, fmt.Sprintf("%s\n  - expected  %s\n  + got       %s", what, want, got))
	}
}

// list compares in order, because the order of reasons is the contract's.
func (d *differences) list(what string, want, got []string) {
	if want == nil || slices.Equal(want, got) {
		return
	}
	var b strings.Builder
	b.WriteString(what)
	for _, text := range want {
		fmt.Fprintf(&b, "\n  %s expected  %s", mark("-", text, got), text)
	}
	for _, text := range got {
		fmt.Fprintf(&b, "\n  %s got       %s", mark("+", text, want), text)
	}
	*d = append(*d, b.String())
}

// mark points at the entries that only one side has.
func mark(sign, text string, other []string) string {
	if slices.Contains(other, text) {
		return " "
	}
	return sign
}

func (d *differences) check(want ExpectCheck, rows []report.Check) {
	i := slices.IndexFunc(rows, func(row report.Check) bool { return row.Code == want.Code })
	if i < 0 {
		codes := make([]string, len(rows))
		for j, row := range rows {
			codes[j] = row.Code
		}
		*d = append(*d, fmt.Sprintf("checks: no check has the code %s\n  + got       %s", want.Code, strings.Join(codes, ", ")))
		return
	}
	what := "checks: " + want.Code
	if want.OK != nil {
		d.text(what+": ok", fmt.Sprint(*want.OK), fmt.Sprint(rows[i].OK))
	}
	observed, expected, evidence := texts(rows[i])
	d.optional(what+": value", want.Value, observed)
	d.optional(what+": expected", want.Expected, expected)
	d.optional(what+": evidence", want.Evidence, evidence)
}

func (d *differences) optional(what string, want *string, got string) {
	if want != nil && *want != got {
		*d = append(*d, fmt.Sprintf("%s\n  - expected  %s\n  + got       %s", what, *want, got))
	}
}

func texts(row report.Check) (observed, expected, evidence string) {
	switch value := row.Value.(type) {
	case string:
		observed = value
	case report.Compared:
		observed, expected = value.Observed, value.Expected
	}
	if row.Evidence != nil {
		evidence = row.Evidence.RawRef
	}
	return observed, expected, evidence
}
