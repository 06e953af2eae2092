package sqlite

import (
	"context"
	"fmt"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	contractHashes   = fixed.Named("ContractHashes")
	publishContracts = fixed.Named("PublishContracts")
	publishReversals = fixed.Named("PublishReversals")
	publishSources   = fixed.Named("PublishSources")
	contractVersions = fixed.Named("ContractVersions")
	listContracts    = fixed.Named("ListContracts")
)

// PublishContracts implements ledger.Contracts.
func (t *tx) PublishContracts(ctx context.Context, contracts []*contract.Contract, now engine.Instant) error {
	if len(contracts) == 0 {
		return nil
	}
	if err := t.checkImmutable(ctx, contracts); err != nil {
		return err
	}
	var documents, reversals, sources batch
	for _, c := range contracts {
		documents.row().text(c.ID).integer(int64(c.Version)).text(c.Hash).bytes(c.Document).integer(int64(c.Window)).text(ledger.HeldFields(c))
		writeReversals(&reversals, c)
		for _, source := range c.NamedSources() {
			sources.row().text(c.ID).integer(int64(c.Version)).text(source)
		}
	}
	if _, err := t.execute(ctx, publishContracts, documents.parameter(), now); err != nil {
		return err
	}
	if _, err := t.execute(ctx, publishReversals, reversals.parameter()); err != nil {
		return err
	}
	_, err := t.execute(ctx, publishSources, sources.parameter())
	return err
}

// writeReversals adds what reversed_by names, by its place among the checks.
func writeReversals(rows *batch, c *contract.Contract) {
	for position, check := range c.Checks {
		reversal, ok := check.Call.(primitive.Reversal)
		if !ok || check.Section != contract.ReversedBy {
			continue
		}
		source, factType := reversal.EffectType()
		rows.row().text(c.ID).integer(int64(c.Version)).integer(int64(position)).sent(source).text(factType).integer(int64(reversal.Within()))
	}
}

// checkImmutable is decision D21, against the store and within the batch.
func (t *tx) checkImmutable(ctx context.Context, contracts []*contract.Contract) error {
	var rows batch
	for _, c := range contracts {
		rows.row().text(c.ID).integer(int64(c.Version))
	}
	known, err := collect(ctx, t, contractHashes, func(scan scan) (d ledger.ContractDocument, err error) {
		return d, scan(&d.ID, &d.Version, &d.Hash)
	}, rows.parameter())
	if err != nil {
		return err
	}
	hashes := map[ledger.ContractRef]string{}
	for _, d := range known {
		hashes[ledger.ContractRef{ID: d.ID, Version: d.Version}] = d.Hash
	}
	for _, c := range contracts {
		ref := ledger.ContractRef{ID: c.ID, Version: c.Version}
		if hash, ok := hashes[ref]; ok && hash != c.Hash {
			return fmt.Errorf("%w: %s version %d was published with content hash %s, not %s; raise its version", ledger.ErrImmutable, c.ID, c.Version, hash, c.Hash)
		}
		hashes[ref] = c.Hash
	}
	return nil
}

// ContractVersions implements ledger.Contracts.
func (t *tx) ContractVersions(ctx context.Context, refs []ledger.ContractRef) ([]ledger.ContractDocument, error) {
	var rows batch
	for _, ref := range refs {
		rows.row().text(ref.ID).integer(int64(ref.Version))
	}
	return collect(ctx, t, contractVersions, readDocument, rows.parameter())
}

// ListContracts implements ledger.Contracts.
func (t *tx) ListContracts(ctx context.Context, id string) ([]ledger.ContractDocument, error) {
	return collect(ctx, t, listContracts, readDocument, id)
}

func readDocument(scan scan) (d ledger.ContractDocument, err error) {
	return d, scan(&d.ID, &d.Version, &d.Hash, &d.Document, &d.PublishedAt)
}
