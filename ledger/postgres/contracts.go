package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	contractHashes        = named("ContractHashes")
	insertContracts       = named("PublishContracts")
	insertReversals       = named("PublishReversals")
	insertContractSources = named("PublishSources")
	contractVersions      = named("ContractVersions")
	listContracts         = named("ListContracts")
)

// PublishContracts implements ledger.Contracts.
func (t *tx) PublishContracts(ctx context.Context, contracts []*contract.Contract, now engine.Instant) error {
	published, err := t.contractHashes(ctx, contracts)
	if err != nil {
		return err
	}
	var fresh []*contract.Contract
	for _, c := range contracts {
		ref := ledger.ContractRef{ID: c.ID, Version: c.Version}
		hash, known := published[ref]
		if known && hash != c.Hash {
			return fmt.Errorf("%w: %s version %d is published with content %s and cannot become %s; publish the change as a new version",
				ledger.ErrImmutable, c.ID, c.Version, hash, c.Hash)
		}
		if !known {
			published[ref] = c.Hash
			fresh = append(fresh, c)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := t.insertContracts(ctx, fresh, now); err != nil {
		return err
	}
	if err := t.insertReversals(ctx, fresh); err != nil {
		return err
	}
	return t.insertContractSources(ctx, fresh)
}

func (t *tx) contractHashes(ctx context.Context, contracts []*contract.Contract) (map[ledger.ContractRef]string, error) {
	ids, versions := make([]string, len(contracts)), make([]int32, len(contracts))
	for i, c := range contracts {
		ids[i], versions[i] = c.ID, int32(c.Version)
	}
	type row struct {
		ID      string
		Version int
		Hash    string
	}
	rows, err := collect(ctx, t, contractHashes, pgx.RowToStructByPos[row], ids, versions)
	published := make(map[ledger.ContractRef]string, len(contracts))
	for _, r := range rows {
		published[ledger.ContractRef{ID: r.ID, Version: r.Version}] = r.Hash
	}
	return published, err
}

func (t *tx) insertContracts(ctx context.Context, contracts []*contract.Contract, now engine.Instant) error {
	var ids, hashes, held []string
	var versions []int32
	var documents [][]byte
	var windows []int64
	for _, c := range contracts {
		ids, hashes, documents = append(ids, c.ID), append(hashes, c.Hash), append(documents, c.Document)
		versions, windows = append(versions, int32(c.Version)), append(windows, int64(c.Window))
		held = append(held, ledger.HeldFields(c))
	}
	_, err := t.db.Exec(ctx, insertContracts.Text, now, ids, versions, hashes, documents, windows, held)
	return overtaken(insertContracts.Name, err)
}

func (t *tx) insertReversals(ctx context.Context, contracts []*contract.Contract) error {
	var ids, types []string
	var sources []*string
	var versions, positions []int32
	var withins []int64
	for _, c := range contracts {
		for i, check := range c.Checks {
			reversal, ok := check.Call.(primitive.Reversal)
			if !ok || check.Section != contract.ReversedBy {
				continue
			}
			source, factType := reversal.EffectType()
			ids, sources, types = append(ids, c.ID), append(sources, null(source)), append(types, factType)
			versions, positions = append(versions, int32(c.Version)), append(positions, int32(i))
			withins = append(withins, int64(reversal.Within()))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := t.execute(ctx, insertReversals, ids, versions, positions, sources, types, withins)
	return err
}

func (t *tx) insertContractSources(ctx context.Context, contracts []*contract.Contract) error {
	var ids, sources []string
	var versions []int32
	for _, c := range contracts {
		for _, source := range c.NamedSources() {
			ids, sources = append(ids, c.ID), append(sources, source)
			versions = append(versions, int32(c.Version))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := t.execute(ctx, insertContractSources, ids, versions, sources)
	return err
}

// ContractVersions implements ledger.Contracts.
func (t *tx) ContractVersions(ctx context.Context, refs []ledger.ContractRef) ([]ledger.ContractDocument, error) {
	ids, versions := make([]string, 0, len(refs)), make([]int32, 0, len(refs))
	for _, ref := range refs {
		if storable(ref.ID) {
			ids, versions = append(ids, ref.ID), append(versions, clampVersion(ref.Version))
		}
	}
	return collect(ctx, t, contractVersions, scanContract, ids, versions)
}

// clampVersion: a number that no version can have stays one.
func clampVersion(version int) int32 {
	const none = 1<<31 - 1
	if version < 0 || version > none {
		return none
	}
	return int32(version)
}

// ListContracts implements ledger.Contracts.
func (t *tx) ListContracts(ctx context.Context, id string) ([]ledger.ContractDocument, error) {
	if unstorable(id) {
		return nil, nil
	}
	return collect(ctx, t, listContracts, scanContract, id)
}

func scanContract(row pgx.CollectableRow) (ledger.ContractDocument, error) {
	var d ledger.ContractDocument
	var at int64
	err := row.Scan(&d.ID, &d.Version, &d.Hash, &d.Document, &at)
	d.PublishedAt = engine.Instant(at)
	return d, err
}
