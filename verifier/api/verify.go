package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/settle"
	"github.com/countersign-otel/countersign/verifier/view"
)

// VerifyBody documents the body of POST /actions/verify: an action_id alone,
// or the members of an action; evidence beside either.
type VerifyBody struct {
	ActionBody
	FactsBody
	UnavailableSources []string `json:"unavailable_sources,omitempty" doc:"sources that could not be read for this verification"`
	DryRun             bool     `json:"dry_run,omitempty" doc:"store nothing"`
}

// Verified is a verification, with what became of the evidence that came with the request.
type Verified struct {
	view.Verification
	Facts *Pushed `json:"facts,omitempty" doc:"what became of inline facts, links and watermarks; left out without any"`
}

// Triggers of runs that somebody asked for.
const (
	triggerFirst  = "action"
	triggerManual = "manual"
)

// Verify is POST /actions/verify. By reference it needs an action that is
// recorded; inline it records the action and takes the evidence first. A
// recorder never brings evidence, an evidence key never records an action (AC
// "Recording actions and pushing facts").
func (s *Service) Verify(ctx context.Context, caller Caller, body []byte) (Verified, error) {
	if err := caller.need(keys.Verify); err != nil {
		return Verified{}, err
	}
	live, err := s.live(ctx, caller.Tenant)
	if err != nil {
		return Verified{}, err
	}
	request, err := parseVerify(body, caller, live, s.Now())
	if err != nil {
		return Verified{}, err
	}
	request.keeper = keeper{&s.rejected, caller}
	if request.dryRun {
		request.keeper.budget = nil
		return s.rehearse(ctx, caller.Tenant, request)
	}
	return s.verify(ctx, caller.Tenant, request)
}

// verifyRequest is a parsed body of POST /actions/verify.
type verifyRequest struct {
	// inline is nil by reference.
	inline      *ledger.RecordRequest
	ref         string
	brings      bool
	evidence    batch
	unavailable []string
	dryRun      bool
	now         engine.Instant
	keeper      keeper
}

var (
	evidenceMembers = []string{"facts", "links", "watermarks"}
	verifyMembers   = append(append(append([]string{}, actionMembers...), evidenceMembers...), "unavailable_sources", "dry_run")
)

func parseVerify(body []byte, caller Caller, live map[string]string, now engine.Instant) (verifyRequest, error) {
	var faults []Fault
	o, err := parseBody(body, verifyMembers, &faults)
	if err != nil {
		return verifyRequest{}, err
	}
	r := verifyRequest{now: now, dryRun: o.flag("dry_run")}
	for _, member := range actionMembers[1:] {
		if o.has(member) {
			r.inline = &ledger.RecordRequest{}
		}
	}
	for _, member := range evidenceMembers {
		r.brings = r.brings || o.brings(member)
	}
	if err := r.rights(caller, o.brings("unavailable_sources")); err != nil {
		return verifyRequest{}, err
	}
	if r.inline != nil {
		r.inline.Action, r.inline.Untimed = o.action(now), !o.sent("requested_at")
	} else {
		r.ref = o.opaque("action_id", true)
	}
	mayPush := pushing(caller.Key, live)
	latest := now.Add(watermarkSkew)
	if r.dryRun { // nothing is stored, and "what if" may look ahead
		latest = engine.MaxInstant
	}
	r.evidence = o.evidence(mayPush, latest)
	r.unavailable = o.unavailable(caller.Key)
	if len(faults) > 0 {
		return verifyRequest{}, invalid("the action cannot be verified", faults...)
	}
	return r, nil
}

// rights are checked before anything is read closely.
func (r verifyRequest) rights(caller Caller, unavailable bool) error {
	if (r.brings || unavailable) && !keys.May(caller.Role, keys.Push) {
		what := "bring facts, links or watermarks"
		if !r.brings {
			// Naming a source unavailable turns a FAIL into UNKNOWN: that is evidence too.
			what = "name sources unavailable"
		}
		return forbidden("a key with the role %s may not %s; roles that may: %s", caller.Role, what, joined(keys.RolesWith(keys.Push)))
	}
	if r.inline != nil && !r.dryRun {
		return caller.need(keys.Record)
	}
	return nil
}

// brings says whether a member holds anything: an empty list or object is as good as none.
func (o object) brings(key string) bool {
	if !o.sent(key) {
		return false
	}
	raw := o.members[key]
	return (raw[0] != '[' && raw[0] != '{') || !isEmpty(raw)
}

// unavailable reads unavailable_sources: an evidence key names its own only.
func (o object) unavailable(key ledger.Key) []string {
	var sources []string
	o.list("unavailable_sources", 100, func(i int, raw json.RawMessage) {
		item := object{o.at("unavailable_sources"), map[string]json.RawMessage{}, o.faults}
		place := strconv.Itoa(i)
		item.members[place] = raw
		source := item.identifier(place, true)
		if source != "" && !keys.Provides(key, source) {
			item.fail(place, "%s", foreignSource(key, source))
			return
		}
		sources = append(sources, source)
	})
	return sources
}

// prepare records and ingests what the request brings, and returns the action as it then stands.
func (r verifyRequest) prepare(ctx context.Context, tx ledger.Tx, tenant string) (ledger.StoredAction, *Pushed, error) {
	ref := r.ref
	if r.inline != nil {
		recorded, err := record(ctx, tx, tenant, *r.inline, r.now)
		if err != nil {
			return ledger.StoredAction{}, nil, err
		}
		ref = recorded.ClaimID
	}
	stored, err := find(ctx, tx, tenant, ref)
	if err == nil && len(r.unavailable) > 0 && !r.dryRun {
		err = mayBeUnavailable(stored)
	}
	if err != nil || !r.brings {
		return stored, nil, err
	}
	evidence := r.evidence
	ingested, err := ingest(ctx, tx, r.keeper, &evidence, r.now)
	if err != nil {
		return ledger.StoredAction{}, nil, err
	}
	pushed := pushedOf(ingested, evidence.rejected)
	return stored, &pushed, nil
}

// mayBeUnavailable: a source that could not be read just now is no reason to
// take a verdict back that was settled when it could.
func mayBeUnavailable(stored ledger.StoredAction) error {
	done, err := settled(stored)
	if err == nil && done {
		err = problem(http.StatusConflict, CodeConflict, "the verdict is settled, and unavailable_sources would replace it by UNKNOWN; leave it out, or send dry_run to see what it would be")
	}
	return err
}

func trigger(stored ledger.StoredAction) string {
	if stored.Latest == nil {
		return triggerFirst
	}
	return triggerManual
}

func (s *Service) verify(ctx context.Context, tenant string, r verifyRequest) (Verified, error) {
	var stored ledger.StoredAction
	var verified Verified
	err := s.update(ctx, func(tx ledger.Tx) (err error) {
		stored, verified.Facts, err = r.prepare(ctx, tx, tenant)
		return err
	})
	if err != nil {
		return Verified{}, err
	}
	runs, err := s.Verifier.Verify(ctx, tenant, []string{stored.ClaimID}, r.unavailable, trigger(stored))
	if err != nil {
		return Verified{}, s.verifyProblem(ctx, tenant, stored.ClaimID, err)
	}
	err = s.view(ctx, func(tx ledger.Tx) error {
		now, err := find(ctx, tx, tenant, stored.ClaimID)
		if err != nil {
			return err
		}
		verified.Verification, err = s.show(ctx, tx, tenant, now, &runs[0], stored.Latest)
		return err
	})
	return verified, err
}

// verifyProblem says so when the action is parked: asking again does not help then.
func (s *Service) verifyProblem(ctx context.Context, tenant, claimID string, cause error) *Problem {
	if errors.Is(cause, settle.ErrBusy) || errors.Is(cause, ledger.ErrUnavailable) || ctx.Err() != nil {
		return s.asProblem(ctx, cause)
	}
	var parked string
	err := s.Ledger.View(ctx, func(tx ledger.Tx) error {
		stored, err := find(ctx, tx, tenant, claimID)
		parked = stored.ParkedError
		return err
	})
	if err == nil && parked != "" {
		return parkedProblem(parked)
	}
	return s.asProblem(ctx, cause)
}

func parkedProblem(reason string) *Problem {
	return problem(http.StatusConflict, CodeParked, "the action cannot be verified until somebody looks at it: %s", reason)
}

// rehearse is a dry run: the same in one snapshot that is rolled back.
func (s *Service) rehearse(ctx context.Context, tenant string, r verifyRequest) (Verified, error) {
	var verified Verified
	err := s.Ledger.Rehearse(ctx, func(tx ledger.Tx) error {
		stored, pushed, err := r.prepare(ctx, tx, tenant)
		if err != nil {
			return err
		}
		runs, err := s.Verifier.Evaluate(ctx, tx, tenant, []string{stored.ClaimID}, r.unavailable, r.now, trigger(stored))
		if err != nil {
			return err
		}
		shown, err := s.show(ctx, tx, tenant, stored, &runs[0], stored.Latest)
		shown.DryRun = true
		verified = Verified{shown, pushed}
		return err
	})
	if err != nil {
		return Verified{}, s.asProblem(ctx, err)
	}
	return verified, nil
}

// show makes the view of one run; nil means the latest. Candidate may be the
// run that it replaced, which then need not be looked up.
func (s *Service) show(ctx context.Context, tx ledger.Tx, tenant string, stored ledger.StoredAction, run, candidate *ledger.Run) (view.Verification, error) {
	if run == nil {
		run = stored.Latest
	}
	parts := view.Parts{Stored: stored, Run: run}
	compensations, err := tx.Compensations(ctx, tenant, []string{stored.Action.ActionID})
	if err != nil {
		return view.Verification{}, err
	}
	if c, ok := compensations[stored.Action.ActionID]; ok {
		parts.Compensation = &c
	}
	if run == nil {
		if parts.SettlesAt, err = s.settlesAt(ctx, tx, stored); err != nil {
			return view.Verification{}, err
		}
		return view.Make(parts)
	}
	parts.Previous, err = previous(ctx, tx, tenant, run, candidate)
	if err != nil {
		return view.Verification{}, err
	}
	return view.Make(parts)
}

// previous is the run that a run replaced.
func previous(ctx context.Context, tx ledger.Tx, tenant string, run, candidate *ledger.Run) (*ledger.Run, error) {
	if run.PreviousSeq == 0 {
		return nil, nil
	}
	if candidate != nil && candidate.Seq == run.PreviousSeq {
		return candidate, nil
	}
	runs, err := tx.RunsAt(ctx, tenant, []int64{run.PreviousSeq})
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return &runs[0], nil
}

// settlesAt is when an action's window closes, by its contract, which is in the cache: versions do not change.
func (s *Service) settlesAt(ctx context.Context, tx ledger.Tx, stored ledger.StoredAction) (*engine.Instant, error) {
	c, err := s.contractOf(ctx, tx, stored.Action)
	if err != nil {
		return nil, err
	}
	at := c.SettlesAt(stored.Action.RequestedAt)
	return &at, nil
}
