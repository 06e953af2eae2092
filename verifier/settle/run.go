package settle

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/engine/seal"
	"github.com/countersign-otel/countersign/ledger"
)

type settings = report.Settings

// compare makes a run of every action on which both evaluators agree, and
// parks the others with what each said (decision D23).
func (b batch) compare(judged, derived []engine.Evaluation) (outcome, error) {
	bySQL := make(map[string]engine.Evaluation, len(judged))
	for _, e := range judged {
		bySQL[e.ActionID] = e
	}
	byGo := make(map[string]engine.Evaluation, len(derived))
	for _, e := range derived {
		byGo[e.ActionID] = e
	}
	var done outcome
	for i := range b.snapshot.Actions {
		action := b.snapshot.Actions[i]
		sql, inSQL := bySQL[action.ActionID]
		goes, inGo := byGo[action.ActionID]
		if !inSQL || !inGo {
			done.parked = append(done.parked, b.disagreement(action, []string{fmt.Sprintf("judged by SQL: %t, by Go: %t", inSQL, inGo)}))
			continue
		}
		if differences := goeval.Differences(b.contract, sql, goes); len(differences) > 0 {
			done.parked = append(done.parked, b.disagreement(action, differences))
			continue
		}
		run, err := b.run(action, sql)
		if err != nil {
			return outcome{}, err
		}
		done.runs, done.actions = append(done.runs, run), append(done.actions, &b.snapshot.Actions[i])
	}
	return done, nil
}

func (b batch) disagreement(a engine.Action, differences []string) ledger.Parked {
	return ledger.Parked{
		Due:      ledger.Due{ClaimID: engine.ClaimID(b.snapshot.Tenant, a.ActionID)},
		ActionID: a.ActionID,
		Error:    fmt.Sprintf("%s: %s", ErrDisagreement, strings.Join(differences, "; ")),
		At:       b.now,
	}
}

// run seals both verdicts and says what comes next.
func (b batch) run(a engine.Action, e engine.Evaluation) (ledger.Run, error) {
	r := report.Make(b.contract, b.snapshot, a, e, b.now, b.settings)
	text, err := json.Marshal(r)
	if err != nil {
		return ledger.Run{}, fmt.Errorf("report of action %q: %w", a.ActionID, err)
	}
	run := ledger.Run{
		ClaimID:     engine.ClaimID(b.snapshot.Tenant, a.ActionID),
		Contract:    ledger.ContractRef{ID: b.contract.ID, Version: b.contract.Version},
		ComputedAt:  b.now,
		Status:      ledger.Pending,
		Headline:    r.Summary.Headline,
		Report:      text,
		NextCheckAt: r.Settlement.NextCheckAt,
	}
	if r.Settlement.Settled {
		run.Status = ledger.Settled
	}
	if run.Outcome, err = b.seal(a, engine.Outcome, e.Outcome, e); err != nil {
		return ledger.Run{}, err
	}
	if run.Policy, err = b.seal(a, engine.Policy, e.Policy, e); err != nil {
		return ledger.Run{}, err
	}
	if run.Evidence, err = seal.Contents(seal.Evidence(a.ActionID, e.Findings), b.snapshot, a.SubjectID); err != nil {
		return ledger.Run{}, fmt.Errorf("evidence of action %q: %w", a.ActionID, err)
	}
	b.follow(&run, a)
	return run, nil
}

func (b batch) seal(a engine.Action, lens engine.Lens, verdict engine.Verdict, e engine.Evaluation) (ledger.StoredVerdict, error) {
	subject := seal.Subject{Tenant: b.snapshot.Tenant, Contract: b.contract, Action: a, Sources: b.snapshot.Sources, Calls: b.calls}
	sealed, err := seal.Seal(subject, lens, verdict, e.Findings)
	return ledger.StoredVerdict{Verdict: verdict, Hash: sealed.Hash, Document: sealed.Document}, err
}

// follow compares with the run before: the first provisional verdict tells
// action.pending once, re-checks that stay pending are quiet, a settled
// verdict tells action.verified when it is the first one or a different one
// (AC "Settlement waits for evidence").
func (b batch) follow(run *ledger.Run, a engine.Action) {
	previous, again := b.previous[run.ClaimID]
	run.PreviousSeq = previous.Seq
	run.Changed = again && (previous.Outcome.Raw != run.Outcome.Raw || previous.Policy.Raw != run.Policy.Raw)
	wasSettled := again && previous.Status == ledger.Settled
	switch {
	case run.Status == ledger.Pending && !again:
		run.Events = append(run.Events, "action.pending")
	case run.Status == ledger.Settled && (!wasSettled || run.Changed):
		run.Events = append(run.Events, "action.verified")
		if a.Compensates != "" && run.Policy.Raw == engine.Verified {
			run.Events = append(run.Events, "action.compensated")
		}
	}
}
