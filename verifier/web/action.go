package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

type actionView struct {
	frame
	view.Verification
	Verdict string
	// Text is the headline without the verdict in front of it.
	Text  string
	Agent string
	// ImpliedAgent: nobody named the agent, so it is the contract's vendor (decision D17).
	ImpliedAgent bool
	Contradicted bool
	ParkedError  string
	Path         string
	Lenses       []lensView
	// Closed: the window is over.
	Closed bool
	// Timeline and Slim draw the same, for wide screens and for narrow ones.
	Timeline, Slim *timeline
	Checks         []checkView
	// Hints: a check has a near miss beside it.
	Hints     bool
	Params    []attribute
	Linked    []string
	TraceLink string
	TraceList string
	Runs      []runView
	// OtherRun: a run is shown that is not the latest.
	OtherRun bool
	MoreRuns int
	AllRuns  string
	Seals    []sealView
	Contract *contractText
	// Corrects is the action that this one compensates; CorrectedBy the one that corrects this.
	Corrects    string
	CorrectedBy string
	Base        string
	RecordedAt  engine.Instant
}

// lensView is one question and its answer.
type lensView struct {
	Name, Question string
	view.Lens
	Reasons []reason
}

// reason is a reason code in words.
type reason struct{ Code, Text string }

func reasons(codes []string) []reason {
	shown := make([]reason, len(codes))
	for i, code := range codes {
		shown[i] = reason{code, report.Label(code)}
	}
	return shown
}

// checkView is one line of the checks table.
type checkView struct {
	report.Check
	Name string
	// First of its section.
	First    bool
	Expected string
	Found    string
	Passed   string
	// Near is what came nearest to a fact that is missing; nil for nothing.
	Near *report.NearMiss
}

// attribute is one member of params or of a fact.
type attribute struct{ Name, Value string }

// maxAttributes bounds what is shown of an object; a number says how many more there are.
const maxAttributes = 100

func attributes(o engine.Object) []attribute {
	var shown []attribute
	members := o.Members()
	for i, m := range members {
		if i == maxAttributes {
			return append(shown, attribute{"…", fmt.Sprintf("%d more", len(members)-i)})
		}
		text, ok := m.Value.Scalar()
		if !ok {
			text = m.Value.Text()
		}
		shown = append(shown, attribute{m.Name, text})
	}
	return shown
}

// sealView is one verdict of the chain and how to check it.
type sealView struct {
	Lens, Hash, Chain string
	Seq               int64
	Document          string
	Download          string
}

const (
	runsShown = 10
	// factsDrawn and linksShown bound what the timeline reads.
	factsDrawn = 400
	linksShown = 50
)

// found is what a transaction found about one action.
type found struct {
	stored       ledger.StoredAction
	runs         []ledger.Run
	shown        int // the index of the run that is shown; -1 for none
	contract     *contract.Contract
	compensation *ledger.Compensation
	corrected    *ledger.StoredAction
	facts        []engine.Fact
	linked       []string
	near         []report.NearMiss
	frame        frame
}

func (p *Page) action(w http.ResponseWriter, r *http.Request) error {
	seq, err := runSeq(r.URL.Query().Get("run"))
	if err != nil {
		return err
	}
	var f found
	err = p.Ledger.View(r.Context(), func(tx ledger.Tx) (err error) {
		f, err = p.findAction(r, tx, seq)
		return err
	})
	if err != nil {
		return err
	}
	v, err := p.show(r, f)
	if err != nil {
		return err
	}
	return p.write(w, http.StatusOK, "action", v)
}

func runSeq(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 1 {
		return 0, badRequest("run is not the sequence number of a verification.")
	}
	return seq, nil
}

func stored(ctx context.Context, tx ledger.Tx, tenant, ref string) (ledger.StoredAction, error) {
	if engine.CheckOpaque("ref", ref) != nil {
		return ledger.StoredAction{}, notFound("No action is recorded under this id.")
	}
	actions, err := tx.Actions(ctx, tenant, []string{ref})
	if err != nil {
		return ledger.StoredAction{}, err
	}
	if len(actions) == 0 {
		return ledger.StoredAction{}, notFound("No action is recorded under this id.")
	}
	return actions[0], nil
}

func (p *Page) findAction(r *http.Request, tx ledger.Tx, seq int64) (f found, err error) {
	ctx, tenant := r.Context(), sessionOf(r.Context()).Tenant
	if f.stored, err = stored(ctx, tx, tenant, r.PathValue("ref")); err != nil {
		return f, err
	}
	a := f.stored.Action
	if f.frame, err = p.frame(r, tx, "Action "+clip(40, a.ActionID), "actions"); err != nil {
		return f, err
	}
	if f.runs, err = tx.Runs(ctx, tenant, f.stored.ClaimID); err != nil {
		return f, err
	}
	f.shown = len(f.runs) - 1
	if seq != 0 {
		if f.shown = slices.IndexFunc(f.runs, func(run ledger.Run) bool { return run.Seq == seq }); f.shown < 0 {
			return f, notFound("This action has no verification with the sequence number %d.", seq)
		}
	}
	if f.contract, err = p.Contracts.Get(ctx, tx, ledger.ContractRef{ID: a.ContractID, Version: a.ContractVersion}); err != nil {
		return f, err
	}
	compensations, err := tx.Compensations(ctx, tenant, []string{a.ActionID})
	if err != nil {
		return f, err
	}
	if c, ok := compensations[a.ActionID]; ok {
		f.compensation = &c
	}
	if a.Compensates != "" {
		corrected, err := tx.Actions(ctx, tenant, []string{a.Compensates})
		if err != nil {
			return f, err
		}
		if len(corrected) > 0 {
			f.corrected = &corrected[0]
		}
	}
	if err := f.findNear(ctx, tx, tenant); err != nil {
		return f, err
	}
	return f, f.findFacts(ctx, tx, tenant)
}

func (f *found) findFacts(ctx context.Context, tx ledger.Tx, tenant string) (err error) {
	a := f.stored.Action
	before, after := reach(f.contract)
	if f.facts, err = tx.CaseFacts(ctx, tenant, a.SubjectID, a.RequestedAt.Sub(before), a.RequestedAt.Add(after), factsDrawn); err != nil {
		return err
	}
	slices.Reverse(f.facts)
	f.linked, err = tx.LinkedSubjects(ctx, tenant, a.SubjectID, linksShown)
	return err
}

func (p *Page) show(r *http.Request, f found) (*actionView, error) {
	a := f.stored.Action
	settlesAt := f.contract.SettlesAt(a.RequestedAt)
	parts := view.Parts{Stored: f.stored, Compensation: f.compensation, SettlesAt: &settlesAt}
	if f.shown >= 0 {
		parts.Run = &f.runs[f.shown]
		if f.shown > 0 {
			parts.Previous = &f.runs[f.shown-1]
		}
	}
	verification, err := view.Make(parts)
	if err != nil {
		return nil, err
	}
	v := &actionView{
		frame: f.frame, Verification: verification, Path: actionPath(f.stored.ClaimID), RecordedAt: f.stored.RecordedAt,
		Agent: f.contract.Agent(a), ImpliedAgent: a.AgentID == "", ParkedError: f.stored.ParkedError,
		Params: attributes(a.Params), Linked: f.linked, Contract: textOf(f.contract), Base: p.base(r),
	}
	v.Live = f.stored.ClaimID
	v.Verdict = verdictOf(v.Status, v.Policy)
	v.Text = headlineText(v.Verification.Summary.Headline)
	v.Contradicted = contradicted(v.Status, v.Outcome, a.ReportedOutcome)
	v.OtherRun = f.shown >= 0 && f.shown < len(f.runs)-1
	v.links(p, f)
	v.lenses()
	v.checks(f)
	v.Hints = len(f.near) > 0
	v.Closed = p.Now() >= settlesAt
	v.Timeline = drawTimeline(f, verification, p.Now(), r.URL.Query().Get("scale"), wideMeasures)
	v.Slim = drawTimeline(f, verification, p.Now(), r.URL.Query().Get("scale"), slimMeasures)
	return v, v.history(f, r.URL.Query().Get("runs") == "all")
}

func (v *actionView) links(p *Page, f found) {
	a := f.stored.Action
	if v.TraceLink = traceLink(p.TraceURL, a); a.TraceID != "" {
		v.TraceList = listPath("trace_id", a.TraceID)
	}
	if f.corrected != nil {
		v.Corrects = actionPath(f.corrected.ClaimID)
	}
	if f.compensation != nil {
		v.CorrectedBy = actionPath(f.compensation.By.ClaimID)
	}
	if f.shown < 0 {
		return
	}
	run := f.runs[f.shown]
	for _, sealed := range []struct {
		lens string
		ledger.StoredVerdict
	}{{"outcome", run.Outcome}, {"policy", run.Policy}} {
		v.Seals = append(v.Seals, sealView{
			Lens: sealed.lens, Hash: fmt.Sprintf("%x", sealed.Hash), Chain: fmt.Sprintf("%x", sealed.ChainHash), Seq: sealed.Seq,
			Document: sealed.Document, Download: fmt.Sprintf("%s/documents/%d", v.Path, sealed.Seq),
		})
	}
}

func (v *actionView) lenses() {
	if v.Outcome == nil {
		return
	}
	v.Lenses = []lensView{
		{"Outcome", "Did it work?", *v.Outcome, reasons(v.Outcome.Reasons)},
		{"Policy", "Was it right?", *v.Policy, reasons(v.Policy.Reasons)},
	}
}

// checks shows the checks table in the order of the specification (AC
// "Headline rules"), which is that of the report.
func (v *actionView) checks(f found) {
	section := contract.Section("")
	for i, check := range v.Verification.Checks {
		shown := checkView{Check: check, Name: checkName(check), First: check.Section != section, Passed: passed(check, v.Status), Near: nearMiss(f.near, i)}
		section = check.Section
		if i < len(f.contract.Checks) {
			shown.Expected = f.contract.Checks[i].Call.Explain()
		}
		shown.Found = foundText(check, f)
		v.Checks = append(v.Checks, shown)
	}
}

// checkName is a check's description as the name of a rule, whether it was kept or not.
func checkName(check report.Check) string {
	name := strings.TrimSuffix(check.Description, " was not so before the action")
	return strings.TrimSuffix(name, " undid the action")
}

// passed is the word of a check: an expected effect that is missing while the window is open is not missed yet.
func passed(check report.Check, status string) string {
	switch {
	case check.OK:
		return "ok"
	case check.Section == contract.ExpectedEffects && status == ledger.Pending:
		return "awaited"
	}
	return "failed"
}

// foundText is what a check found, in words.
func foundText(check report.Check, f found) string {
	switch value := check.Value.(type) {
	case string:
		if check.Section == contract.AggregateLimits {
			return "total " + value
		}
		return value
	case map[string]any: // report.Compared after it was stored
		return fmt.Sprintf("%v instead of %v", value["observed"], value["expected"])
	}
	switch {
	case check.Section == contract.ExpectedEffects && !check.OK && check.Evidence != nil:
		return "seen, but only from a source that is not trusted enough"
	case check.Section == contract.ExpectedEffects && !check.OK:
		return "nothing seen"
	case check.Section == contract.Preconditions && check.Evidence == nil:
		return "no record"
	case check.Evidence != nil && check.Evidence.Kind == "fact":
		return evidenceText(check.Evidence, f)
	case check.Section == contract.Limits:
		return "not sent"
	}
	return "nothing seen"
}

// evidenceText says what the deciding record says.
func evidenceText(e *report.Evidence, f found) string {
	i := slices.IndexFunc(f.facts, func(fact engine.Fact) bool { return fact.RawRef == e.RawRef })
	if i < 0 {
		return "seen"
	}
	var said []string
	for _, a := range attributes(f.facts[i].Attributes) {
		if len(said) == 4 {
			said = append(said, "…")
			break
		}
		said = append(said, a.Name+" = "+clip(60, a.Value))
	}
	if len(said) == 0 {
		return "seen"
	}
	return strings.Join(said, ", ")
}

// document gives out what a verdict's hash was made of, byte by byte.
func (p *Page) document(w http.ResponseWriter, r *http.Request) error {
	seq, err := runSeq(r.PathValue("seq"))
	if err != nil || seq == 0 {
		return notFound("This action has no such document.")
	}
	ctx, tenant := r.Context(), sessionOf(r.Context()).Tenant
	var text string
	err = p.Ledger.View(ctx, func(tx ledger.Tx) error {
		action, err := stored(ctx, tx, tenant, r.PathValue("ref"))
		if err != nil {
			return err
		}
		runs, err := tx.Runs(ctx, tenant, action.ClaimID)
		if err != nil {
			return err
		}
		for _, run := range runs {
			for _, verdict := range []ledger.StoredVerdict{run.Outcome, run.Policy} {
				if verdict.Seq == seq {
					text = verdict.Document
					return nil
				}
			}
		}
		return notFound("This action has no such document.")
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="verdict-%d.json"`, seq))
	_, _ = w.Write([]byte(text)) // the browser may be gone
	return nil
}
