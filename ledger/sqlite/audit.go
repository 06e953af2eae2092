package sqlite

import (
	"context"
	"encoding/json"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	readChain   = fixed.Named("ReadChain")
	chainRuns   = fixed.Named("ChainRuns")
	factsByRef  = fixed.Named("FactsByRef")
	dropped     = fixed.Named("Dropped")
	checkLatest = fixed.Named("CheckLatest")
)

// ReadChain implements ledger.Audit. A hash that is not 32 bytes long, which no
// program stores, is cut or filled with zeros, and a list of reasons that is
// none is returned as its text: neither is what the verdict's document says.
func (t *tx) ReadChain(ctx context.Context, tenant string, after int64, limit int) ([]ledger.ChainEntry, error) {
	return collect(ctx, t, readChain, func(scan scan) (e ledger.ChainEntry, err error) {
		var verdict, chain []byte
		var reasons string
		if err := scan(&e.Seq, &e.ClaimID, &e.Lens, &e.Raw, &reasons, &verdict, &chain, &e.Document); err != nil {
			return e, err
		}
		copy(e.VerdictHash[:], verdict)
		copy(e.ChainHash[:], chain)
		if e.Reasons, err = readList(reasons); err != nil {
			e.Reasons = []string{reasons}
		}
		return e, nil
	}, tenant, after, limit)
}

// ChainRuns implements ledger.Audit.
func (t *tx) ChainRuns(ctx context.Context, tenant string, after int64, limit int) ([]ledger.ChainRun, error) {
	return collect(ctx, t, chainRuns, func(scan scan) (r ledger.ChainRun, err error) {
		var report, events string
		var evidence []byte
		if err := scan(
			&r.Seq, &r.Outcome.Seq, &r.ID, &r.ClaimID, &r.Contract.ID, &r.Contract.Version, &r.Headline, &report, &r.ComputedAt, &r.TriggeredBy,
			&r.Status, &r.NextCheckAt, &events, &r.PreviousSeq, &r.Changed, &evidence, &r.ReportHash, &r.RunHash,
			&r.Action.ActionID, &r.Action.Contract.ID, &r.Action.Contract.Version, &r.Compensates,
		); err != nil {
			return r, err
		}
		r.Report, r.Policy.Seq = json.RawMessage(report), r.Seq
		if r.Events, err = readList(events); err != nil {
			r.Events = []string{events}
		}
		r.Evidence, r.Err = ledger.SplitHashes(evidence)
		return r, nil
	}, tenant, after, limit)
}

// FactsByRef implements ledger.Audit.
func (t *tx) FactsByRef(ctx context.Context, tenant string, refs []string) ([]ledger.StoredFact, error) {
	return collect(ctx, t, factsByRef, func(scan scan) (f ledger.StoredFact, err error) {
		var attributes string
		if err := scan(&f.RawRef, &f.Source, &f.Type, &f.SubjectID, &f.SubjectKind, &f.OccurredAt, &attributes, &f.ContentHash, &f.IngestedAt); err != nil {
			return f, err
		}
		if f.Attributes, f.Err = engine.ReadObject(attributes); f.Err != nil {
			f.Attributes = engine.Object{}
		}
		return f, nil
	}, tenant, list(refs))
}

// CheckLatest implements ledger.Audit.
func (t *tx) CheckLatest(ctx context.Context, tenant, after string, limit int) (ledger.LatestCheck, error) {
	return one(ctx, t, checkLatest, func(scan scan) (c ledger.LatestCheck, err error) {
		return c, scan(&c.Actions, &c.Last, &c.BrokenAt)
	}, tenant, after, limit)
}

// Dropped implements ledger.Audit.
func (t *tx) Dropped(ctx context.Context, tenant string) (ledger.Dropped, error) {
	return one(ctx, t, dropped, func(scan scan) (d ledger.Dropped, err error) {
		return d, scan(&d.Horizon, &d.Facts, &d.Reports)
	}, tenant)
}
