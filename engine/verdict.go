package engine

// RawVerdict is the engine's fixed vocabulary (AC "Vocabulary").
type RawVerdict string

// Raw verdicts.
const (
	Verified     RawVerdict = "VERIFIED"
	NotVerified  RawVerdict = "NOT_VERIFIED"
	Unverifiable RawVerdict = "UNVERIFIABLE"
)

// Label is the display name: PASS, FAIL or UNKNOWN.
func (v RawVerdict) Label() string {
	switch v {
	case Verified:
		return "PASS"
	case NotVerified:
		return "FAIL"
	case Unverifiable:
		return "UNKNOWN"
	}
	return ""
}

// Lens is one way to look at an action (AC "How the two lenses are derived").
type Lens string

// The two lenses: did every expected effect happen, and were the rules kept.
const (
	Outcome Lens = "outcome"
	Policy  Lens = "policy"
)

// Verdict is the answer under one lens.
type Verdict struct {
	Raw RawVerdict
	// Reasons are reason codes in the order of AC "Evaluation order".
	Reasons []string
}

// Finding is what one primitive found for one action.
type Finding struct {
	// Fired says that the primitive is true: an effect was observed, a violation happened.
	Fired bool
	// BelowTrust: a matching effect was observed, but only from sources below min_trust.
	BelowTrust bool
	// Evidence is the raw_ref of the deciding fact or of the claim record; empty for none.
	Evidence string
	Value    FindingValue
}

// FindingValue is what a check measured. The zero FindingValue is none.
type FindingValue struct {
	// Set says that Observed holds something.
	Set bool
	// Compared says that Expected holds what Observed was compared with.
	Compared bool
	// Observed and Expected are canonical decimals or plain text.
	Observed, Expected string
}

// Evaluation is everything an evaluator says about one action. Two evaluators
// agree when their Evaluations are equal (decision D23).
type Evaluation struct {
	ActionID string
	// Findings stand in the order of the contract's calls.
	Findings []Finding
	Outcome  Verdict
	Policy   Verdict
}
