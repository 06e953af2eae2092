package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// Verdicts under a lens.
const (
	Pass    = "PASS"
	Fail    = "FAIL"
	Unknown = "UNKNOWN"
)

// States of an action.
const (
	// Unverified: recorded, not verified yet.
	Unverified = "unverified"
	// Pending: both lenses carry a provisional verdict, which may still change.
	Pending = "pending"
	// Settled: the verdict stands.
	Settled = "settled"
)

// Verification is an action with one of its verifications. Outcome, Policy and
// Run are nil while there is none.
type Verification struct {
	Action Recorded `json:"action"`
	// Status is Unverified, Pending or Settled.
	Status string `json:"status"`
	// Outcome: did every expected effect happen.
	Outcome *Lens `json:"outcome"`
	// Policy: and were preconditions, limits and prohibitions respected.
	Policy *Lens   `json:"policy"`
	Checks []Check `json:"checks"`
	// NearMisses are hints and no evidence: what came nearest to the facts that
	// checks are missing. Only [Client.Get] has them, with a key that may inspect sources.
	NearMisses []NearMiss `json:"near_misses"`
	Summary    Summary    `json:"summary"`
	Settlement Settlement `json:"settlement"`
	Sources    []Source   `json:"sources"`
	// Reversal is the later record that undid the action; nil for none.
	Reversal *Evidence `json:"reversal"`
	// Previous is the verdict pair that this run replaced; nil for none.
	Previous *Previous `json:"previous"`
	// Changed: the verdict pair differs from the previous one.
	Changed bool `json:"changed"`
	// ActionChanged: the action was recorded anew with other content since, so
	// that the verdict is about what it said before.
	ActionChanged bool `json:"action_changed"`
	// Resolution is what a later, correcting action came to; nil for none.
	Resolution *Resolution `json:"resolution"`
	Run        *Run        `json:"run"`
	DryRun     bool        `json:"dry_run"`
	// ParkedError says, in lists, why an action cannot be verified until somebody looks.
	ParkedError string `json:"parked_error"`
}

// Settled says whether the verdict stands and is about the action as it is
// shown. Report nothing as done before.
func (v Verification) Settled() bool { return v.Status == Settled && !v.ActionChanged }

// Passed says whether the action is settled and passes under both lenses: it
// was allowed, within its limits, and had its effects.
func (v Verification) Passed() bool {
	return v.Settled() && v.Outcome != nil && v.Outcome.Verdict == Pass && v.Policy != nil && v.Policy.Verdict == Pass
}

// Lens is the verdict under one lens.
type Lens struct {
	// Verdict is Pass, Fail or Unknown.
	Verdict string `json:"verdict"`
	// RawVerdict is VERIFIED, NOT_VERIFIED or UNVERIFIABLE.
	RawVerdict string   `json:"raw_verdict"`
	Reasons    []string `json:"reasons"`
	// Hash is the SHA-256 of the verdict's canonical document, in hex (decision D24).
	Hash string `json:"hash"`
}

// Check is one line of the contract with what was found.
type Check struct {
	// Section is preconditions, limits, aggregate_limits, forbidden_effects, reversed_by or expected_effects.
	Section     string `json:"section"`
	Code        string `json:"code"`
	OK          bool   `json:"ok"`
	Message     string `json:"message"`
	Description string `json:"description"`
	// Value is what was found: a string (a canonical decimal where it is a number), null, or an object
	// of expected and observed.
	Value    json.RawMessage `json:"value"`
	Evidence *Evidence       `json:"evidence"`
}

// Evidence points at the record that decided a check.
type Evidence struct {
	// Kind is "fact" or "claim".
	Kind       string    `json:"kind"`
	RawRef     string    `json:"raw_ref"`
	Source     string    `json:"source"`
	FactType   string    `json:"fact_type"`
	OccurredAt time.Time `json:"occurred_at"`
}

// NearMiss is the fact that came nearest to what a check is missing.
type NearMiss struct {
	// Check is the index in Checks; Code its reason code.
	Check int    `json:"check"`
	Code  string `json:"code"`
	// Miss is the one thing that is otherwise: before, after, since, source, attributes or subject.
	Miss string `json:"miss"`
	// OffSeconds is how far outside the time in which it counts; 0 within.
	OffSeconds int64 `json:"off_seconds"`
	// Text is the same for people.
	Text string   `json:"text"`
	Fact NearFact `json:"fact"`
}

// NearFact is the fact of a NearMiss.
type NearFact struct {
	Source string `json:"source"`
	// Trust of the source: self_reported, shared or independent; empty when it is not known.
	Trust      string    `json:"trust"`
	FactType   string    `json:"fact_type"`
	SubjectID  string    `json:"subject_id"`
	OccurredAt time.Time `json:"occurred_at"`
	RawRef     string    `json:"raw_ref"`
}

// Summary is the line an operator reads.
type Summary struct {
	Headline string `json:"headline"`
	// EvidenceTrust is the lowest trust among the sources of the evidence:
	// self_reported, shared or independent; empty without evidence.
	EvidenceTrust string `json:"evidence_trust"`
}

// Settlement says what a verdict waits for. Times are zero where there is none.
type Settlement struct {
	SettlesAt    time.Time `json:"settles_at"`
	NextCheckAt  time.Time `json:"next_check_at"`
	WaitingOn    []Lagging `json:"waiting_on"`
	StaleSources []Lagging `json:"stale_sources"`
}

// Lagging is a source that is behind the action's window.
type Lagging struct {
	Source        string    `json:"source"`
	Watermark     time.Time `json:"watermark"`
	BehindSeconds int64     `json:"behind_seconds"`
}

// Source is a source that the contract reads, as it stood.
type Source struct {
	Source           string    `json:"source"`
	Trust            string    `json:"trust"`
	Watermark        time.Time `json:"watermark"`
	ClockSkewSeconds int64     `json:"clock_skew_seconds"`
}

// Previous is the verdict pair that a run replaced.
type Previous struct {
	Status  string `json:"status"`
	Outcome *Lens  `json:"outcome"`
	Policy  *Lens  `json:"policy"`
	Run     *Run   `json:"run"`
}

// Run is one stored verification; empty in a dry run.
type Run struct {
	ID string `json:"id"`
	// Seq is the position of the policy verdict in the tenant's chain (decision D25).
	Seq        int64     `json:"seq"`
	ComputedAt time.Time `json:"computed_at"`
	// TriggeredBy is action, recheck, manual or fact:<raw_ref>.
	TriggeredBy string `json:"triggered_by"`
}

// Resolution is what became of the action that corrects this one (decision D18).
type Resolution struct {
	// State is compensating, compensated or compensation_failed.
	State string `json:"state"`
	// By is the ActionID of the correcting action, ByClaimID its ID.
	By        string    `json:"by"`
	ByClaimID string    `json:"by_claim_id"`
	At        time.Time `json:"at"`
}

// MaxWait is the longest that one request waits (AC "The completion gate").
const MaxWait = time.Minute

// WaitForSettlement waits until the verdict on an action stands, by its
// ActionID or ID, however long its contract's window is: bound it by ctx. It
// moves no verdict. Where ctx ends first, it returns what is known so far and
// an error that is ctx's; never report success then.
func (c *Client) WaitForSettlement(ctx context.Context, ref string) (Verification, error) {
	var waited Verification
	for {
		var answer Verification
		if err := c.get(ctx, actionPath(ref)+"/wait", url.Values{"timeout": {waitSeconds(ctx)}}, &answer); err != nil {
			return waited, err
		}
		waited = answer
		if waited.Settled() {
			return waited, nil
		}
		if err := context.Cause(ctx); err != nil {
			return waited, fmt.Errorf("action %q is not settled: %s: %w", ref, waited.Summary.Headline, err)
		}
	}
}

// waitSeconds leaves the answer a moment to arrive before ctx ends.
func waitSeconds(ctx context.Context) string {
	wait := MaxWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, max(time.Until(deadline)*9/10, 0))
	}
	return strconv.FormatFloat(wait.Seconds(), 'f', 3, 64)
}
