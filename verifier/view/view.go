// Package view is the JSON of verifications that people and programs read: the
// HTTP API, the command line and the emitter show the same one.
package view

import (
	"encoding/json"
	"fmt"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/engine/seal"
	"github.com/countersign-otel/countersign/ledger"
)

// Unverified is the status of an action that nobody has verified yet; the
// others are those of a run (ledger.Pending, ledger.Settled).
const Unverified = "unverified"

// Verification is one action with one of its verifications. Both lenses, the
// run and the settlement's moment are null before the first one (AC
// "Recording actions": recording does not verify).
type Verification struct {
	Action  Action         `json:"action"`
	Status  string         `json:"status" enum:"unverified,pending,settled" doc:"pending: both lenses carry the provisional verdict"`
	Outcome *Lens          `json:"outcome" doc:"did every expected effect happen"`
	Policy  *Lens          `json:"policy" doc:"and were preconditions, limits and prohibitions respected"`
	Checks  []report.Check `json:"checks" doc:"in the order preconditions, limits, aggregate_limits, forbidden_effects, reversed_by, expected_effects"`
	// NearMisses is filled by who shows a single action (see the function of this name).
	NearMisses []report.NearMiss `json:"near_misses,omitempty" doc:"hints, and no evidence: what came nearest to the facts that checks are missing, worked out when the action is read. Only where one action is asked for, with a key that may inspect sources; left out when there are none"`
	Summary    Summary           `json:"summary"`
	Settlement Settlement        `json:"settlement"`
	Sources    []report.Source   `json:"sources" doc:"the sources that the contract reads"`
	Reversal   *report.Evidence  `json:"reversal" doc:"the later record that undid the action"`
	Previous   *Previous         `json:"previous" doc:"the verdict pair that this run replaced"`
	Changed    bool              `json:"changed" doc:"the verdict pair differs from the previous one"`
	// ActionChanged warns: this verdict is not about the action as it is shown.
	ActionChanged bool        `json:"action_changed,omitempty" doc:"the action was recorded anew with another subject, time, agent or params since: the verdict is about what it said before; verify it again. Left out otherwise"`
	Resolution    *Resolution `json:"resolution" doc:"what a later, correcting action came to; it never changes this verdict"`
	Run           *Run        `json:"run"`
	DryRun        bool        `json:"dry_run" doc:"nothing was stored"`
}

// Action is an action as it stands in the store. What was not sent is null.
type Action struct {
	ActionID        string         `json:"action_id"`
	ID              string         `json:"id" doc:"the internal id, clm_..."`
	ContractID      string         `json:"contract_id"`
	ContractVersion int            `json:"contract_version" doc:"pinned when the action was recorded"`
	WorkflowID      *string        `json:"workflow_id"`
	AgentID         *string        `json:"agent_id"`
	ActionType      string         `json:"action_type"`
	SubjectID       string         `json:"subject_id"`
	SubjectKind     string         `json:"subject_kind"`
	RequestedAt     engine.Instant `json:"requested_at"`
	// Params is null when it was not captured; ParamsCaptured then says false (decision D33).
	Params          engine.Object `json:"params"`
	ParamsCaptured  *bool         `json:"params_captured,omitempty" doc:"false when the agent's runtime hid the arguments; left out otherwise"`
	Channel         *string       `json:"channel"`
	Compensates     *string       `json:"compensates"`
	TraceID         *string       `json:"trace_id"`
	SpanID          *string       `json:"span_id"`
	SessionID       *string       `json:"session_id"`
	ReferenceID     *string       `json:"reference_id"`
	Tool            string        `json:"tool,omitempty" doc:"the tool that the agent called, when telemetry named it"`
	ReportedOutcome string        `json:"reported_outcome,omitempty" doc:"what the agent's runtime said; it never decides a verdict"`
}

// Lens is the verdict under one lens.
type Lens struct {
	Verdict    string            `json:"verdict" enum:"PASS,FAIL,UNKNOWN"`
	RawVerdict engine.RawVerdict `json:"raw_verdict" enum:"VERIFIED,NOT_VERIFIED,UNVERIFIABLE"`
	Reasons    []string          `json:"reasons" doc:"reason codes, in the order of evaluation"`
	Hash       string            `json:"hash" doc:"SHA-256 of the verdict's canonical document, hex"`
}

// Summary is the line an operator reads.
type Summary struct {
	Headline      string        `json:"headline"`
	EvidenceTrust *engine.Trust `json:"evidence_trust" enum:"self_reported,shared,independent" doc:"the lowest trust among the sources of the evidence"`
}

// Settlement says what the verdict waits for (AC "Settlement window").
type Settlement struct {
	SettlesAt    *engine.Instant  `json:"settles_at" doc:"when the window closes"`
	NextCheckAt  *engine.Instant  `json:"next_check_at" doc:"null when nothing is queued"`
	WaitingOn    []report.Lagging `json:"waiting_on" doc:"sources behind the window of a pending verdict"`
	StaleSources []report.Lagging `json:"stale_sources" doc:"sources still behind when the wait ran out"`
}

// Previous is the verdict pair that a run replaced.
type Previous struct {
	Status  string `json:"status"`
	Outcome *Lens  `json:"outcome"`
	Policy  *Lens  `json:"policy"`
	Run     *Run   `json:"run"`
}

// Run is one stored verification; ID and Seq are empty and 0 in a dry run.
type Run struct {
	ID          string         `json:"id"`
	Seq         int64          `json:"seq" doc:"position of the policy verdict in the tenant's chain"`
	ComputedAt  engine.Instant `json:"computed_at"`
	TriggeredBy string         `json:"triggered_by" doc:"action, recheck, manual or fact:<raw_ref>"`
}

// States of a resolution (AC "Compensation").
const (
	Compensating       = "compensating"
	Compensated        = "compensated"
	CompensationFailed = "compensation_failed"
)

// Resolution is what became of the action that corrects this one (decision D18).
type Resolution struct {
	State     string         `json:"state" enum:"compensating,compensated,compensation_failed"`
	By        string         `json:"by" doc:"action id of the correcting action"`
	ByClaimID string         `json:"by_claim_id"`
	At        engine.Instant `json:"at" doc:"when the correction was last verified, or recorded while it has never settled"`
}

// Parts are what a view is made of.
type Parts struct {
	Stored ledger.StoredAction
	// Run is the verification to show; nil shows Stored.Latest.
	Run *ledger.Run
	// Previous is the run that Run replaced; nil for none.
	Previous *ledger.Run
	// Compensation is the latest correcting action; nil for none.
	Compensation *ledger.Compensation
	// SettlesAt is shown while there is no run that says so.
	SettlesAt *engine.Instant
	DryRun    bool
}

// Make shows one verification. It fails when the stored report cannot be read.
func Make(p Parts) (Verification, error) {
	run := p.Run
	if run == nil {
		run = p.Stored.Latest
	}
	v := Verification{
		Action:     ActionOf(p.Stored),
		Status:     Unverified,
		Checks:     []report.Check{},
		Summary:    Summary{Headline: "UNVERIFIED — recorded, not verified yet"},
		Settlement: Settlement{p.SettlesAt, p.Stored.NextCheckAt, []report.Lagging{}, []report.Lagging{}},
		Sources:    []report.Source{},
		Resolution: resolution(p.Compensation),
		DryRun:     p.DryRun,
	}
	if run == nil {
		return v, nil
	}
	if err := v.fill(run); err != nil {
		return Verification{}, err
	}
	var err error
	if v.ActionChanged, err = ActionChanged(p.Stored.Action, run); err != nil {
		return Verification{}, err
	}
	if p.Previous != nil {
		v.Previous = &Previous{p.Previous.Status, LensOf(p.Previous.Outcome), LensOf(p.Previous.Policy), runOf(p.Previous)}
	}
	v.Summary.Headline += suffix(v.Resolution)
	return v, nil
}

func (v *Verification) fill(run *ledger.Run) error {
	r, err := ReportOf(run)
	if err != nil {
		return err
	}
	v.Status = run.Status
	v.Outcome, v.Policy = LensOf(run.Outcome), LensOf(run.Policy)
	v.Checks = notNil(r.Checks)
	v.Summary = Summary{run.Headline, r.Summary.EvidenceTrust}
	v.Settlement = settlementOf(run, r)
	v.Sources = notNil(r.Sources)
	v.Reversal = r.Reversal
	v.Changed = run.Changed
	v.Run = runOf(run)
	return nil
}

// ActionChanged says whether an action was recorded anew with other content
// after a verification. The verdict of that one stands (AC "Idempotency": the
// history is kept), but is not about the action any more.
func ActionChanged(a engine.Action, run *ledger.Run) (bool, error) {
	if run == nil || run.Policy.Document == "" {
		return false, nil
	}
	about, err := seal.IsAbout(run.Policy.Document, a)
	return !about, err
}

// settlementOf shows when the run is looked at again, not when it was planned
// to be: a stored run's NextCheckAt and its report's are the same moment.
func settlementOf(run *ledger.Run, r report.Report) Settlement {
	return Settlement{&r.Settlement.SettlesAt, run.NextCheckAt, notNil(r.Settlement.WaitingOn), notNil(r.Settlement.StaleSources)}
}

// ReportOf reads a run's stored report.
func ReportOf(run *ledger.Run) (report.Report, error) {
	var r report.Report
	if err := json.Unmarshal(run.Report, &r); err != nil {
		return report.Report{}, fmt.Errorf("report of run %q: %w", run.ID, err)
	}
	return r, nil
}

// ActionOf shows an action.
func ActionOf(stored ledger.StoredAction) Action {
	a := stored.Action
	shown := Action{
		ActionID:        a.ActionID,
		ID:              stored.ClaimID,
		ContractID:      a.ContractID,
		ContractVersion: a.ContractVersion,
		WorkflowID:      sent(a.WorkflowID),
		AgentID:         sent(a.AgentID),
		ActionType:      a.ActionType,
		SubjectID:       a.SubjectID,
		SubjectKind:     a.SubjectKind,
		RequestedAt:     a.RequestedAt,
		Params:          a.Params,
		Channel:         sent(a.Channel),
		Compensates:     sent(a.Compensates),
		TraceID:         sent(a.TraceID),
		SpanID:          sent(a.SpanID),
		SessionID:       sent(a.SessionID),
		ReferenceID:     sent(a.ReferenceID),
		Tool:            a.Tool,
		ReportedOutcome: a.ReportedOutcome,
	}
	if !a.Params.Captured() {
		shown.ParamsCaptured = new(bool)
	}
	return shown
}

// sent is nil for what was not sent.
func sent(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// LensOf shows a stored verdict.
func LensOf(v ledger.StoredVerdict) *Lens {
	return &Lens{v.Raw.Label(), v.Raw, notNil(v.Reasons), fmt.Sprintf("%x", v.Hash)}
}

func runOf(run *ledger.Run) *Run {
	return &Run{run.ID, run.Seq, run.ComputedAt, run.TriggeredBy}
}

// resolution is decision D18: it follows the latest settled verdict of the
// correcting action, under the policy lens, as lists and counts do. A
// correction that is provisional again stays what it was until it settles.
func resolution(c *ledger.Compensation) *Resolution {
	if c == nil {
		return nil
	}
	r := &Resolution{State: Compensating, By: c.By.Action.ActionID, ByClaimID: c.By.ClaimID, At: c.By.RecordedAt}
	if c.Settled == "" {
		return r
	}
	r.State = CompensationFailed
	if c.Settled == engine.Verified {
		r.State = Compensated
	}
	if c.By.Latest != nil {
		r.At = c.By.Latest.ComputedAt
	}
	return r
}

// suffix is what a headline gains once a correction has passed (AC "Compensation").
func suffix(r *Resolution) string {
	if r == nil || r.State != Compensated {
		return ""
	}
	return " · COMPENSATED by " + r.By
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
