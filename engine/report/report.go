package report

import (
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
)

// Report is what one verification says beside the two verdicts.
type Report struct {
	Checks     []Check    `json:"checks"`
	Summary    Summary    `json:"summary"`
	Settlement Settlement `json:"settlement"`
	Sources    []Source   `json:"sources"`
	Reversal   *Evidence  `json:"reversal"`
}

// Check is one row of the checks table.
type Check struct {
	Section     contract.Section `json:"section"`
	Code        string           `json:"code"`
	OK          bool             `json:"ok"`
	Message     *string          `json:"message"`
	Description string           `json:"description"`
	Value       any              `json:"value"`
	Evidence    *Evidence        `json:"evidence"`
}

// Compared is the value of a check that compares with a reference.
type Compared struct {
	Expected string `json:"expected"`
	Observed string `json:"observed"`
}

// Evidence points at the record that decided a check.
type Evidence struct {
	// Kind is "fact" or "claim".
	Kind       string          `json:"kind"`
	RawRef     string          `json:"raw_ref"`
	Source     string          `json:"source,omitempty"`
	FactType   string          `json:"fact_type,omitempty"`
	OccurredAt *engine.Instant `json:"occurred_at,omitempty"`
}

// Summary is the line an operator reads.
type Summary struct {
	Headline string `json:"headline"`
	// EvidenceTrust is the lowest trust among the sources of the evidence; nil without evidence from a source.
	EvidenceTrust *engine.Trust `json:"evidence_trust"`
}

// Source is a source that the contract reads.
type Source struct {
	Source    string          `json:"source"`
	Trust     *engine.Trust   `json:"trust"`
	Watermark *engine.Instant `json:"watermark"`
	ClockSkew int64           `json:"clock_skew_seconds,omitempty"`
}

// Make reports one action of a snapshot. The evaluation must be of this
// contract version and action.
func Make(c *contract.Contract, s *engine.Snapshot, a engine.Action, e engine.Evaluation, now engine.Instant, settings Settings) Report {
	return NewMaker(c, s, now, settings).Make(a, e)
}

// Maker reports many actions of one snapshot: what they share is made once.
type Maker struct {
	contract *contract.Contract
	snapshot *engine.Snapshot
	now      engine.Instant
	settings Settings
	sources  []Source
	// fired and quiet are the rows of the checks by whether they fired, but for value and evidence.
	fired, quiet []Check
}

// NewMaker makes a Maker of reports at one moment.
func NewMaker(c *contract.Contract, s *engine.Snapshot, now engine.Instant, settings Settings) *Maker {
	m := &Maker{contract: c, snapshot: s, now: now, settings: settings, sources: sources(c, s)}
	for i := range c.Checks {
		m.fired = append(m.fired, checkRow(&c.Checks[i], true))
		m.quiet = append(m.quiet, checkRow(&c.Checks[i], false))
	}
	return m
}

// Make reports one action. Reports share Sources, which must not be changed.
func (m *Maker) Make(a engine.Action, e engine.Evaluation) Report {
	c, s := m.contract, m.snapshot
	r := Report{
		Checks:     make([]Check, len(c.Checks)),
		Settlement: Settle(c, a, e.Outcome.Raw, s.Sources, m.now, m.settings),
		Sources:    m.sources,
	}
	lowest := engine.UnknownTrust
	for i := range c.Checks {
		check, row := &c.Checks[i], &r.Checks[i]
		m.fill(row, i, a, e.Findings[i])
		if trust := evidenceTrust(s, row.Evidence); trust != engine.UnknownTrust && (lowest == engine.UnknownTrust || trust < lowest) {
			lowest = trust
		}
		if check.Section == contract.ReversedBy && !row.OK && r.Reversal == nil {
			r.Reversal = row.Evidence
		}
	}
	r.Summary = Summary{Headline: headline(c, e, r.Checks, r.Settlement, m.now), EvidenceTrust: known(lowest)}
	return r
}

func evidenceTrust(s *engine.Snapshot, e *Evidence) engine.Trust {
	if e == nil || e.Source == "" {
		return engine.UnknownTrust
	}
	return s.Sources[e.Source].Trust
}

func known(t engine.Trust) *engine.Trust {
	if t == engine.UnknownTrust {
		return nil
	}
	return &t
}

func checkRow(check *contract.Check, fired bool) Check {
	expected := check.Section == contract.ExpectedEffects
	row := Check{
		Section:     check.Section,
		Code:        check.Call.Code(!expected || fired),
		OK:          fired == expected,
		Description: check.Call.Describe(),
	}
	if check.Message != "" {
		row.Message = &check.Message
	}
	return row
}

// fill makes the row of a check of what was found.
func (m *Maker) fill(row *Check, i int, a engine.Action, found engine.Finding) {
	check := &m.contract.Checks[i]
	if *row = m.quiet[i]; found.Fired {
		*row = m.fired[i]
	}
	row.Value, row.Evidence = value(found.Value), evidence(check.Section, m.snapshot, a, found.Evidence)
	if !found.BelowTrust {
		return
	}
	if gate, ok := check.Call.(interface{ BelowTrustCode() string }); ok {
		row.Code = gate.BelowTrustCode()
	}
}

func value(v engine.FindingValue) any {
	switch {
	case v.Compared:
		return Compared{Expected: v.Expected, Observed: v.Observed}
	case v.Set:
		return v.Observed
	}
	return nil
}

// evidence finds the record behind a raw_ref: the claim record for limits on
// the agent's own parameters, a fact for everything else.
func evidence(section contract.Section, s *engine.Snapshot, a engine.Action, rawRef string) *Evidence {
	if rawRef == "" {
		return nil
	}
	if section == contract.Limits {
		return &Evidence{Kind: "claim", RawRef: rawRef}
	}
	if f := find(s.FactsOf(a.SubjectID), rawRef); f != nil {
		return factEvidence(f)
	}
	for _, facts := range s.Facts {
		if f := find(facts, rawRef); f != nil {
			return factEvidence(f)
		}
	}
	return &Evidence{Kind: "fact", RawRef: rawRef}
}

func find(facts []engine.Fact, rawRef string) *engine.Fact {
	i := slices.IndexFunc(facts, func(f engine.Fact) bool { return f.RawRef == rawRef })
	if i < 0 {
		return nil
	}
	return &facts[i]
}

func factEvidence(f *engine.Fact) *Evidence {
	return &Evidence{Kind: "fact", RawRef: f.RawRef, Source: f.Source, FactType: f.Type, OccurredAt: &f.OccurredAt}
}

// sources are those that any call of the contract names, in order, each once.
func sources(c *contract.Contract, s *engine.Snapshot) []Source {
	rows := []Source{}
	seen := map[string]bool{}
	for _, call := range c.Calls {
		for _, name := range call.Sources() {
			if seen[name] {
				continue
			}
			seen[name] = true
			state := s.Sources[name]
			rows = append(rows, Source{name, known(state.Trust), state.Watermark, int64(state.ClockSkew)})
		}
	}
	return rows
}
