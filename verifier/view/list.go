package view

import (
	"fmt"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
)

// Row is one action of a list: the verification without its details.
type Row struct {
	Action     Action     `json:"action"`
	Status     string     `json:"status" enum:"unverified,pending,settled"`
	Outcome    *Lens      `json:"outcome"`
	Policy     *Lens      `json:"policy"`
	Summary    Summary    `json:"summary"`
	Settlement Settlement `json:"settlement"`
	Changed    bool       `json:"changed"`
	// ActionChanged is Verification's.
	ActionChanged bool        `json:"action_changed,omitempty" doc:"the verdict is about what the action said before it was recorded anew; left out otherwise"`
	Resolution    *Resolution `json:"resolution"`
	Run           *Run        `json:"run"`
	// ParkedError is set when the action cannot be verified until somebody looks (decision D23).
	ParkedError string `json:"parked_error,omitempty"`
}

// RowOf shows one action of a list.
func RowOf(stored ledger.StoredAction, compensation *ledger.Compensation) (Row, error) {
	v, err := Make(Parts{Stored: stored, Compensation: compensation})
	if err != nil {
		return Row{}, err
	}
	return Row{v.Action, v.Status, v.Outcome, v.Policy, v.Summary, v.Settlement, v.Changed, v.ActionChanged, v.Resolution, v.Run, stored.ParkedError}, nil
}

// Recorded is the answer to recording an action (AC "Recording actions"):
// its fields, and its latest verification or null.
type Recorded struct {
	Action
	Latest *Latest `json:"latest" doc:"null until the first verification"`
}

// Latest is a verification in short.
type Latest struct {
	Status     string     `json:"status" enum:"pending,settled"`
	Outcome    *Lens      `json:"outcome"`
	Policy     *Lens      `json:"policy"`
	Summary    Summary    `json:"summary"`
	Settlement Settlement `json:"settlement"`
	// ActionChanged is Verification's.
	ActionChanged bool `json:"action_changed,omitempty" doc:"the verdict is about what the action said before it was recorded anew; left out otherwise"`
	Run           *Run `json:"run"`
}

// RecordedOf shows an action that was recorded.
func RecordedOf(stored ledger.StoredAction) (Recorded, error) {
	shown := Recorded{Action: ActionOf(stored)}
	if stored.Latest == nil {
		return shown, nil
	}
	r, err := ReportOf(stored.Latest)
	if err != nil {
		return Recorded{}, err
	}
	latest := stored.Latest
	changed, err := ActionChanged(stored.Action, latest)
	shown.Latest = &Latest{
		latest.Status, LensOf(latest.Outcome), LensOf(latest.Policy),
		Summary{latest.Headline, r.Summary.EvidenceTrust}, settlementOf(latest, r), changed, runOf(latest),
	}
	return shown, err
}

// StoredRun is one verification of an action's history.
type StoredRun struct {
	Run
	Status          string         `json:"status" enum:"pending,settled"`
	ContractVersion int            `json:"contract_version"`
	Outcome         ChainedLens    `json:"outcome"`
	Policy          ChainedLens    `json:"policy"`
	Checks          []report.Check `json:"checks"`
	Summary         Summary        `json:"summary"`
	Settlement      Settlement     `json:"settlement"`
	Changed         bool           `json:"changed"`
	PreviousSeq     *int64         `json:"previous_seq" doc:"seq of the run that this one replaced"`
}

// ChainedLens is a verdict with its place in the tenant's chain (decision D25).
type ChainedLens struct {
	Lens
	Seq       int64  `json:"seq"`
	ChainHash string `json:"chain_hash" doc:"SHA-256(0x01 || previous chain hash || verdict hash), hex"`
}

// RunOf shows one verification of a history.
func RunOf(run ledger.Run) (StoredRun, error) {
	r, err := ReportOf(&run)
	if err != nil {
		return StoredRun{}, err
	}
	shown := StoredRun{
		Run: *runOf(&run), Status: run.Status, ContractVersion: run.Contract.Version,
		Outcome: chained(run.Outcome), Policy: chained(run.Policy),
		Checks: notNil(r.Checks), Summary: Summary{run.Headline, r.Summary.EvidenceTrust},
		Settlement: settlementOf(&run, r), Changed: run.Changed,
	}
	if run.PreviousSeq != 0 {
		shown.PreviousSeq = &run.PreviousSeq
	}
	return shown, nil
}

func chained(v ledger.StoredVerdict) ChainedLens {
	return ChainedLens{*LensOf(v), v.Seq, fmt.Sprintf("%x", v.ChainHash)}
}

// Fact is a fact as it stands in the store.
type Fact struct {
	RawRef      string         `json:"raw_ref"`
	Source      string         `json:"source"`
	FactType    string         `json:"fact_type"`
	SubjectID   string         `json:"subject_id"`
	SubjectKind string         `json:"subject_kind"`
	OccurredAt  engine.Instant `json:"occurred_at"`
	Attributes  engine.Object  `json:"attributes"`
}

// FactOf shows a fact.
func FactOf(f engine.Fact) Fact {
	return Fact{f.RawRef, f.Source, f.Type, f.SubjectID, f.SubjectKind, f.OccurredAt, f.Attributes}
}
