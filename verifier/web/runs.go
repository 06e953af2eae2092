package web

import (
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/settle"
	"github.com/countersign-otel/countersign/verifier/view"
)

// runView is one verification of an action's history and what changed with it.
type runView struct {
	view.StoredRun
	Verdict string
	Text    string
	Trigger string
	Link    string
	Shown   bool
	Changes []string
}

// history lists verifications, the newest first.
func (v *actionView) history(f found, all bool) error {
	var before *view.StoredRun
	first := 0
	if !all && len(f.runs) > runsShown {
		first = len(f.runs) - runsShown
		v.MoreRuns = first
		v.AllRuns = v.Path + "?runs=all#runs"
		earlier, err := view.RunOf(f.runs[first-1])
		if err != nil {
			return err
		}
		before = &earlier
	}
	var runs []runView
	for i := first; i < len(f.runs); i++ {
		shown, err := view.RunOf(f.runs[i])
		if err != nil {
			return err
		}
		run := runView{
			StoredRun: shown, Verdict: verdictOf(shown.Status, &shown.Policy.Lens), Text: headlineText(shown.Summary.Headline),
			Trigger: trigger(shown.TriggeredBy), Link: fmt.Sprintf("%s?run=%d", v.Path, shown.Seq), Shown: i == f.shown,
		}
		if i == len(f.runs)-1 {
			run.Link = v.Path
		}
		if before != nil {
			run.Changes = changes(*before, shown)
		}
		before = &shown
		runs = append([]runView{run}, runs...)
	}
	v.Runs = runs
	return nil
}

// trigger says in words why a verification ran.
func trigger(by string) string {
	if ref, ok := strings.CutPrefix(by, "fact:"); ok {
		return "a record arrived: " + plain(ref)
	}
	switch by {
	case "action":
		return "the action was recorded"
	case "recheck":
		return "it was time to look again"
	case "manual":
		return "somebody asked"
	}
	return plain(by)
}

// changes says what one verification says that the one before did not.
func changes(before, after view.StoredRun) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if before.Status != after.Status {
		add("%s → %s", before.Status, after.Status)
	}
	if before.Outcome.Verdict != after.Outcome.Verdict {
		add("outcome %s → %s", before.Outcome.Verdict, after.Outcome.Verdict)
	}
	if before.Policy.Verdict != after.Policy.Verdict {
		add("policy %s → %s", before.Policy.Verdict, after.Policy.Verdict)
	}
	if before.ContractVersion != after.ContractVersion {
		add("contract version %d → %d", before.ContractVersion, after.ContractVersion)
		return list
	}
	for i, check := range after.Checks {
		if i < len(before.Checks) {
			list = append(list, checkChange(before.Checks[i], check)...)
		}
	}
	return list
}

func checkChange(before, after report.Check) []string {
	what := plain(after.Description)
	switch {
	case before.OK != after.OK && after.OK:
		return []string{what + ": now ok" + since(after.Evidence)}
	case before.OK != after.OK:
		return []string{what + ": no longer ok" + since(after.Evidence)}
	case rawRef(before.Evidence) != rawRef(after.Evidence):
		return []string{what + ": decided by another record" + since(after.Evidence)}
	}
	return nil
}

func rawRef(e *report.Evidence) string {
	if e == nil {
		return ""
	}
	return e.RawRef
}

func since(e *report.Evidence) string {
	if e == nil || e.OccurredAt == nil {
		return ""
	}
	return fmt.Sprintf(" (record of %s UTC)", clock(*e.OccurredAt))
}

// disagreement says whether an action is parked because the evaluators disagree (decision D23).
func disagreement(parkedError string) bool {
	return strings.HasPrefix(parkedError, settle.ErrDisagreement.Error())
}

type parkedView struct {
	frame
	Rows []parkedRow
}

type parkedRow struct {
	ledger.Parked
	Path        string
	Disagreeing bool
}
