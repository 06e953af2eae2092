package settle

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/engine/seal"
	"github.com/countersign-otel/countersign/ledger"
)

var buffers = sync.Pool{New: func() any { return new([]byte) }}

func reportText(r *report.Report) []byte {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	*buffer = r.AppendJSON((*buffer)[:0])
	return bytes.Clone(*buffer)
}

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
	done := outcome{runs: make([]ledger.Run, 0, len(judged)), actions: make([]*engine.Action, 0, len(judged))}
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
		if b.contract.UpdatesUntilSettled {
			run.Judged = &b.snapshot.Actions[i]
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
	r := b.reports.Make(a, e)
	run := ledger.Run{
		ClaimID:     engine.ClaimID(b.snapshot.Tenant, a.ActionID),
		Contract:    ledger.ContractRef{ID: b.contract.ID, Version: b.contract.Version},
		ComputedAt:  b.now,
		Status:      ledger.Pending,
		Headline:    r.Summary.Headline,
		Report:      reportText(&r),
		NextCheckAt: r.Settlement.NextCheckAt,
		Compensates: a.Compensates,
	}
	if r.Settlement.Settled {
		run.Status = ledger.Settled
	}
	b.seal(&run, a, e)
	var err error
	if run.Evidence, err = seal.Contents(seal.Evidence(a.ActionID, e.Findings), b.snapshot, a.SubjectID); err != nil {
		return ledger.Run{}, fmt.Errorf("evidence of action %q: %w", a.ActionID, err)
	}
	b.follow(&run, a)
	return run, nil
}

func (b batch) seal(run *ledger.Run, a engine.Action, e engine.Evaluation) {
	subject := seal.Subject{Tenant: b.snapshot.Tenant, Contract: b.contract, Action: a, Sources: b.snapshot.Sources, Calls: b.calls}
	outcome, policy := seal.Seal(subject, e.Outcome, e.Policy, e.Findings)
	run.Outcome = ledger.StoredVerdict{Verdict: e.Outcome, Hash: outcome.Hash, Document: outcome.Document}
	run.Policy = ledger.StoredVerdict{Verdict: e.Policy, Hash: policy.Hash, Document: policy.Document}
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
