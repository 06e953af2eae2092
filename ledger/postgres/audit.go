package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	readChain   = named("ReadChain")
	chainRuns   = named("ChainRuns")
	factsByRef  = named("FactsByRef")
	dropped     = named("Dropped")
	checkLatest = named("CheckLatest")
)

// ReadChain implements ledger.Audit. A hash that is not 32 bytes long, which no
// program stores, is cut or filled with zeros: it is not what the verdict's document makes.
func (t *tx) ReadChain(ctx context.Context, tenant string, after int64, limit int) ([]ledger.ChainEntry, error) {
	return collect(ctx, t, readChain, func(row pgx.CollectableRow) (ledger.ChainEntry, error) {
		var e ledger.ChainEntry
		var hash, chain []byte
		err := row.Scan(&e.Seq, &e.ClaimID, (*string)(&e.Lens), (*string)(&e.Raw), &e.Reasons, &hash, &chain, &e.Document)
		copy(e.VerdictHash[:], hash)
		copy(e.ChainHash[:], chain)
		return e, err
	}, tenant, after, limit)
}

// ChainRuns implements ledger.Audit.
func (t *tx) ChainRuns(ctx context.Context, tenant string, after int64, limit int) ([]ledger.ChainRun, error) {
	return collect(ctx, t, chainRuns, func(row pgx.CollectableRow) (ledger.ChainRun, error) {
		var r ledger.ChainRun
		var report string
		var evidence []byte
		var next *int64
		err := row.Scan(
			&r.Seq, &r.Outcome.Seq, &r.ID, &r.ClaimID, &r.Contract.ID, &r.Contract.Version, &r.Headline, &report, (*int64)(&r.ComputedAt), &r.TriggeredBy,
			&r.Status, &next, &r.Events, &r.PreviousSeq, &r.Changed, &evidence, &r.ReportHash, &r.RunHash,
			&r.Action.ActionID, &r.Action.Contract.ID, &r.Action.Contract.Version, &r.Compensates,
		)
		r.Report, r.Policy.Seq, r.NextCheckAt = json.RawMessage(report), r.Seq, (*engine.Instant)(next)
		r.Evidence, r.Err = ledger.SplitHashes(evidence)
		return r, err
	}, tenant, after, limit)
}

// FactsByRef implements ledger.Audit.
func (t *tx) FactsByRef(ctx context.Context, tenant string, refs []string) ([]ledger.StoredFact, error) {
	return collect(ctx, t, factsByRef, func(row pgx.CollectableRow) (ledger.StoredFact, error) {
		var f ledger.StoredFact
		var at int64
		var attributes string
		if err := row.Scan(&f.RawRef, &f.Source, &f.Type, &f.SubjectID, &f.SubjectKind, &at, &attributes, &f.ContentHash, (*int64)(&f.IngestedAt)); err != nil {
			return f, err
		}
		f.OccurredAt = engine.Instant(at)
		if f.Attributes, f.Err = engine.ReadObject(attributes); f.Err != nil {
			f.Attributes = engine.Object{}
		}
		return f, nil
	}, tenant, storableOf(refs))
}

func storableOf(texts []string) []string {
	var all []string
	for _, text := range texts {
		if storable(text) {
			all = append(all, text)
		}
	}
	return all
}

// CheckLatest implements ledger.Audit.
func (t *tx) CheckLatest(ctx context.Context, tenant, after string, limit int) (ledger.LatestCheck, error) {
	return one(ctx, t, checkLatest, func(row pgx.CollectableRow) (c ledger.LatestCheck, err error) {
		return c, row.Scan(&c.Actions, &c.Last, &c.BrokenAt)
	}, tenant, after, limit)
}

// Dropped implements ledger.Audit.
func (t *tx) Dropped(ctx context.Context, tenant string) (ledger.Dropped, error) {
	return one(ctx, t, dropped, func(row pgx.CollectableRow) (d ledger.Dropped, err error) {
		return d, row.Scan((*int64)(&d.Horizon), &d.Facts, &d.Reports)
	}, tenant)
}
