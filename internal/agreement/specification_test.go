package agreement

import (
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/internal/speccases"
	"github.com/countersign-otel/countersign/ledger"

	"github.com/countersign-otel/countersign/engine/contract"
)

// TestSpecification_Primitives judges the specification's cases by the SQL of
// both stores, and derives each again in Go from what the store gives back.
func TestSpecification_Primitives(t *testing.T) {
	for _, store := range openStores(t) {
		for _, row := range speccases.Rows() {
			t.Run(store.name+"/"+row.Name, func(t *testing.T) {
				c := row.Contract(t, "under_test")
				err := store.ledger.Rehearse(t.Context(), func(tx ledger.Tx) error {
					if err := loadRow(t, tx, row, c); err != nil {
						return err
					}
					claims := []string{engine.ClaimID(tenant, "act-1")}
					judged, err := tx.Evaluate(t.Context(), tenant, c, claims, nil)
					if err != nil {
						return err
					}
					snapshot, err := tx.Snapshot(t.Context(), tenant, c, claims, nil)
					if err != nil {
						return err
					}
					row.Check(t, judged[0])
					row.Check(t, goeval.Evaluate(c, snapshot)[0])
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func loadRow(t *testing.T, tx ledger.Tx, row speccases.Row, c *contract.Contract) error {
	if err := tx.PublishContracts(t.Context(), []*contract.Contract{c}, base); err != nil {
		return err
	}
	var actions []ledger.NewAction
	for _, a := range row.Actions(t) {
		a.ContractID, a.ContractVersion = c.ID, c.Version
		actions = append(actions, ledger.NewAction{Action: a})
	}
	if _, err := tx.RecordActions(t.Context(), tenant, actions, base); err != nil {
		return err
	}
	batch := ledger.FactBatch{Facts: row.AllFacts(t), Trust: engine.Shared}
	for from, others := range row.Links {
		for _, to := range others {
			batch.Links = append(batch.Links, engine.Link{SubjectID: from, LinkedSubjectID: to})
		}
	}
	if _, err := tx.IngestFacts(t.Context(), tenant, batch, base); err != nil {
		return err
	}
	for name, source := range row.Sources {
		setting := ledger.ConnectionSetting{Source: name, ClockSkew: &source.ClockSkew}
		if source.Trust != engine.UnknownTrust {
			setting.Trust = &source.Trust
		}
		if health := engine.Healthy; source.Present {
			setting.Health = &health
		}
		if err := tx.SetConnection(t.Context(), tenant, setting, base); err != nil {
			return err
		}
	}
	return nil
}
