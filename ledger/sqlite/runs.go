package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	appendRuns     = fixed.Named("AppendRuns")
	appendVerdicts = fixed.Named("AppendVerdicts")
	addEvents      = fixed.Named("AddEvents")
	setLatest      = fixed.Named("SetLatest")
	chainHead      = fixed.Named("ChainHead")
	setChainHead   = fixed.Named("SetChainHead")
	leasesOf       = fixed.Named("LeasesOf")
	finishDue      = fixed.Named("FinishDue")
	scheduleDue    = fixed.Named("ScheduleDue")
	keepDue        = fixed.Named("KeepDue")
	runsAt         = fixed.Named("RunsAt")
	settledClaims  = fixed.Named("SettledClaims")
)

// maxEvents is how many events one run may have; an event's id is made of its run's seq and its place.
const maxEvents = 16

// StoreRuns implements ledger.Verification.
func (t *tx) StoreRuns(ctx context.Context, tenant string, runs []ledger.Run) ([]ledger.Run, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	woken, err := t.checkLeases(ctx, tenant, runs)
	if err != nil {
		return nil, err
	}
	runs, err = t.current(ctx, tenant, runs)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	stored, hashes, err := t.chain(ctx, tenant, runs)
	if err != nil {
		return nil, err
	}
	if err := t.appendRuns(ctx, tenant, stored, hashes); err != nil {
		return nil, err
	}
	latest := latestOf(stored)
	if err := t.setLatest(ctx, tenant, latest); err != nil {
		return nil, err
	}
	t.wake = true
	return stored, t.setDue(ctx, tenant, latest, woken)
}

// checkLeases fails with ErrLeaseLost unless every run's work is still its
// owner's, and returns which of the actions were woken since they were leased.
func (t *tx) checkLeases(ctx context.Context, tenant string, runs []ledger.Run) (woken map[string]bool, err error) {
	var ids []string
	for i := range runs {
		if runs[i].Lease != nil {
			ids = append(ids, runs[i].ClaimID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	type lease struct {
		claim      string
		owner      *string
		generation int64
	}
	leases, err := collect(ctx, t, leasesOf, func(scan scan) (l lease, err error) {
		return l, scan(&l.claim, &l.owner, &l.generation)
	}, tenant, list(ids))
	if err != nil {
		return nil, err
	}
	held := make(map[string]lease, len(leases))
	for _, l := range leases {
		held[l.claim] = l
	}
	woken = map[string]bool{}
	for i := range runs {
		run := &runs[i]
		if run.Lease == nil {
			continue
		}
		l, ok := held[run.ClaimID]
		if !ok || l.owner == nil || *l.owner != run.Owner {
			return nil, fmt.Errorf("%w: %s is no longer %s's; nothing of this batch was stored", ledger.ErrLeaseLost, run.ClaimID, run.Owner)
		}
		woken[run.ClaimID] = l.generation != run.Lease.Generation
	}
	return woken, nil
}

// current leaves runs out whose action was changed meanwhile and may not be.
func (t *tx) current(ctx context.Context, tenant string, runs []ledger.Run) ([]ledger.Run, error) {
	judged := ledger.Judged(runs)
	if len(judged) == 0 {
		return runs, nil
	}
	recorded, err := collect(ctx, t, snapshotActions, readAction, tenant, list(judged))
	return ledger.Current(tenant, runs, recorded), err
}

// chain gives the runs their places in the tenant's chain (decision D25).
func (t *tx) chain(ctx context.Context, tenant string, runs []ledger.Run) ([]ledger.Run, []ledger.RunHashes, error) {
	head, err := t.ChainHead(ctx, tenant)
	if err != nil {
		return nil, nil, err
	}
	placed, hashes, head := head.Append(runs)
	_, err = t.execute(ctx, setChainHead, tenant, head.Seq, head.Hash[:], head.RunHash[:])
	return placed, hashes, err
}

func (t *tx) appendRuns(ctx context.Context, tenant string, runs []ledger.Run, hashes []ledger.RunHashes) error {
	var rows, verdicts, events batch
	for i := range runs {
		run := &runs[i]
		if len(run.Events) > maxEvents {
			return fmt.Errorf("run of %s has %d events; at most %d are allowed", run.ClaimID, len(run.Events), maxEvents)
		}
		writeRun(&rows, run, hashes[i])
		writeVerdict(&verdicts, run.ClaimID, engine.Outcome, &run.Outcome)
		writeVerdict(&verdicts, run.ClaimID, engine.Policy, &run.Policy)
		for place, kind := range run.Events {
			events.row().integer(run.Seq*maxEvents + int64(place)).text(kind).text(run.ClaimID).integer(run.Seq).integer(int64(run.ComputedAt))
		}
	}
	if _, err := t.execute(ctx, appendVerdicts, tenant, verdicts.parameter()); err != nil {
		return err
	}
	if _, err := t.execute(ctx, appendRuns, tenant, rows.parameter()); err != nil {
		return err
	}
	if events.rows == 0 {
		return nil
	}
	_, err := t.execute(ctx, addEvents, tenant, events.parameter())
	return err
}

func writeRun(rows *batch, run *ledger.Run, hashes ledger.RunHashes) {
	rows.row().integer(run.Seq).text(run.ID).text(run.ClaimID).text(run.Contract.ID).integer(int64(run.Contract.Version)).
		integer(int64(run.ComputedAt)).text(run.TriggeredBy).text(run.Status).text(run.Headline).
		integer(run.Outcome.Seq).sent(string(run.Report)).instant(run.NextCheckAt).text(list(run.Events)).
		integer(run.PreviousSeq).truth(run.Changed).
		bytes(ledger.JoinHashes(run.Evidence)).hash(hashes.Report).hash(hashes.Run)
}

func writeVerdict(rows *batch, claimID string, lens engine.Lens, v *ledger.StoredVerdict) {
	rows.row().integer(v.Seq).text(claimID).text(string(lens)).text(string(v.Raw)).text(list(v.Reasons)).hash(v.Hash).hash(v.ChainHash).text(v.Document)
}

// latest is the last run of an action in a batch, and its last settled policy verdict.
type latest struct {
	run     *ledger.Run
	settled engine.RawVerdict
}

func latestOf(runs []ledger.Run) map[string]*latest {
	byClaim := map[string]*latest{}
	for i := range runs {
		run := &runs[i]
		l := byClaim[run.ClaimID]
		if l == nil {
			l = &latest{}
			byClaim[run.ClaimID] = l
		}
		l.run = run
		if run.Status == ledger.Settled {
			l.settled = run.Policy.Raw
		}
	}
	return byClaim
}

func (t *tx) setLatest(ctx context.Context, tenant string, latest map[string]*latest) error {
	var rows batch
	for claimID, l := range latest {
		rows.row().text(claimID).integer(l.run.Seq).text(l.run.Status).text(string(l.run.Outcome.Raw)).text(string(l.run.Policy.Raw)).sent(string(l.settled))
	}
	_, err := t.execute(ctx, setLatest, tenant, rows.parameter())
	return err
}

// setDue says what is due next: what was woken stays due, what settled is done, the rest is checked again.
func (t *tx) setDue(ctx context.Context, tenant string, latest map[string]*latest, woken map[string]bool) error {
	var kept, finished []string
	var scheduled batch
	for claimID, l := range latest {
		switch {
		case woken[claimID]:
			kept = append(kept, claimID)
		case l.run.NextCheckAt == nil:
			finished = append(finished, claimID)
		default:
			scheduled.row().text(claimID).instant(l.run.NextCheckAt)
		}
	}
	if _, err := t.execute(ctx, keepDue, tenant, list(kept)); err != nil {
		return err
	}
	if _, err := t.execute(ctx, finishDue, tenant, list(finished)); err != nil {
		return err
	}
	_, err := t.execute(ctx, scheduleDue, tenant, scheduled.parameter())
	return err
}

// RunsAt implements ledger.Reading.
func (t *tx) RunsAt(ctx context.Context, tenant string, seqs []int64) ([]ledger.Run, error) {
	var rows batch
	for _, seq := range seqs {
		rows.row().integer(seq)
	}
	found, err := collect(ctx, t, runsAt, readRun, tenant, rows.parameter())
	runs := make([]ledger.Run, len(found))
	for i := range found {
		runs[i] = found[i].run
	}
	return runs, err
}

// SettledClaims implements ledger.Reading.
func (t *tx) SettledClaims(ctx context.Context, tenant string, claimIDs []string) ([]string, error) {
	return collect(ctx, t, settledClaims, column[string], tenant, list(claimIDs))
}

// ChainHead implements ledger.Audit.
func (t *tx) ChainHead(ctx context.Context, tenant string) (ledger.ChainHead, error) {
	head, err := one(ctx, t, chainHead, func(scan scan) (head ledger.ChainHead, err error) {
		var hash, run []byte
		err = scan(&head.Seq, &hash, &run)
		copy(head.Hash[:], hash)
		copy(head.RunHash[:], run)
		return head, err
	}, tenant)
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.ChainHead{}, nil
	}
	return head, err
}

// runRow reads the columns of a run with its verdicts: seq, run_id, contract_id,
// contract_version, computed_at, triggered_by, status, headline, report,
// next_check_at, events, previous_seq, changed, then outcome and policy. All
// are NULL where a left join found no run.
type runRow struct {
	seq, version, previous, outcomeSeq          *int64
	id, contract, triggeredBy, status, headline *string
	report, events                              *string
	computedAt, nextCheckAt                     *engine.Instant
	changed                                     *bool
	outcome, policy                             verdictRow
}

type verdictRow struct {
	raw, reasons, document *string
	hash, chain            []byte
}

func (v *verdictRow) columns() []any {
	return []any{&v.raw, &v.reasons, &v.hash, &v.chain, &v.document}
}

func (v *verdictRow) verdict(seq int64) (ledger.StoredVerdict, error) {
	stored := ledger.StoredVerdict{Seq: seq, Document: orZero(v.document)}
	stored.Raw = engine.RawVerdict(orZero(v.raw))
	copy(stored.Hash[:], v.hash)
	copy(stored.ChainHash[:], v.chain)
	var err error
	stored.Reasons, err = readList(orZero(v.reasons))
	return stored, err
}

func (r *runRow) columns() []any {
	columns := []any{
		&r.seq, &r.id, &r.contract, &r.version, &r.computedAt, &r.triggeredBy, &r.status, &r.headline, &r.report,
		&r.nextCheckAt, &r.events, &r.previous, &r.changed, &r.outcomeSeq,
	}
	return append(append(columns, r.outcome.columns()...), r.policy.columns()...)
}

// run is nil where there is none.
func (r *runRow) run(claimID string) (*ledger.Run, error) {
	if r.seq == nil {
		return nil, nil
	}
	run := &ledger.Run{
		ID: orZero(r.id), Seq: *r.seq, ClaimID: claimID,
		Contract:   ledger.ContractRef{ID: orZero(r.contract), Version: int(orZero(r.version))},
		ComputedAt: orZero(r.computedAt), TriggeredBy: orZero(r.triggeredBy), Status: orZero(r.status), Headline: orZero(r.headline),
		NextCheckAt: r.nextCheckAt, PreviousSeq: orZero(r.previous), Changed: orZero(r.changed),
	}
	if r.report != nil {
		run.Report = json.RawMessage(*r.report)
	}
	var err, outcomeErr, policyErr error
	run.Events, err = readList(orZero(r.events))
	run.Outcome, outcomeErr = r.outcome.verdict(orZero(r.outcomeSeq))
	run.Policy, policyErr = r.policy.verdict(*r.seq)
	return run, errors.Join(err, outcomeErr, policyErr)
}

// tenantRun is a run with its tenant, for statements that look across tenants.
type tenantRun struct {
	tenant string
	run    ledger.Run
}

// readRun reads a row of stored_runs.
func readRun(scan scan) (tenantRun, error) {
	var r runRow
	var found tenantRun
	var claimID string
	columns := r.columns()
	// stored_runs has tenant_id first and claim_id after run_id.
	row := append([]any{&found.tenant, columns[0], columns[1], &claimID}, columns[2:]...)
	if err := scan(row...); err != nil {
		return found, err
	}
	run, err := r.run(claimID)
	if err == nil {
		found.run = *run
	}
	return found, err
}
