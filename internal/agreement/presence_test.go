package agreement

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
)

// standing is what is stored of one connection: whether it delivered, and what was set.
type standing struct {
	name      string
	delivered bool
	set       ledger.ConnectionSetting
	isSet     bool
}

func standings() []standing {
	failing, healthy := engine.Failing, engine.Healthy
	override, skew, watermark := engine.Independent, 30*engine.Second, base+7200
	set := func(name string, delivered bool, setting ledger.ConnectionSetting) standing {
		return standing{name, delivered, setting, true}
	}
	return []standing{
		{name: "unknown"},
		{name: "delivered", delivered: true},
		set("overridden", false, ledger.ConnectionSetting{Override: &override}),
		set("skewed", false, ledger.ConnectionSetting{ClockSkew: &skew}),
		set("declared", false, ledger.ConnectionSetting{Watermark: &watermark}),
		set("failing", false, ledger.ConnectionSetting{Health: &failing}),
		set("failing after it delivered", true, ledger.ConnectionSetting{Health: &failing}),
		set("failing, overridden, after it delivered", true, ledger.ConnectionSetting{Health: &failing, Override: &override}),
		set("healthy", false, ledger.ConnectionSetting{Health: &healthy}),
	}
}

const needsBank = `
id: needs_bank
version: 1
kind: action
vendor: internal
vendor_display: Internal
description: The bank pays.
source_citation: {url: "internal://test", retrieved: "2026-09-28", title: Test}
action:
  window: 1h
  unverifiable_if: {missing_fact_source: [bank]}
  expected_effects: [{effect_observed: {source: bank, type: paid, min_trust: independent}}]
`

// TestD11_ConnectionsAgree goes through what two connections of a source can
// be: whether it is present, how far it is trusted and what its clock may be off
// is the same in SQL and in Go. Random cases seldom make a verdict of it.
func TestD11_ConnectionsAgree(t *testing.T) {
	c, diagnostics := contract.Parse("needs_bank.yaml", []byte(needsBank))
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	verdicts := map[string]map[string]answer{}
	for _, store := range openStores(t) {
		for _, pushed := range standings() {
			for _, connector := range standings() {
				name := fmt.Sprintf("facts API %s, connector %s", pushed.name, connector.name)
				answers := judgeConnections(t, store, c, pushed, connector)
				if diff := cmp.Diff(verdicts[name], answers); verdicts[name] != nil && diff != "" {
					t.Errorf("%s: the stores disagree (-first +second):\n%s", name, diff)
				}
				verdicts[name] = answers
			}
		}
	}
}

func judgeConnections(t *testing.T, s store, c *contract.Contract, pushed, connector standing) (answers map[string]answer) {
	t.Helper()
	one := Case{
		Actions: []engine.Action{{ActionID: "act-1", ContractID: c.ID, SubjectID: "order_1", RequestedAt: base}},
		Facts:   []engine.Fact{{RawRef: "n1", Source: "crm", Type: "noted", SubjectID: "order_1", SubjectKind: "order", OccurredAt: base}},
		At:      base + 60, Later: base + 7200,
	}
	err := s.ledger.Rehearse(t.Context(), func(tx ledger.Tx) error {
		claims, err := load(t.Context(), tx, one, c, nil)
		if err != nil {
			return err
		}
		for name, is := range map[string]standing{engine.FactsAPI: pushed, "connector": connector} {
			if err := connect(t, tx, name, is); err != nil {
				return err
			}
		}
		answers, err = evaluate(t.Context(), tx, one, c, claims)
		return err
	})
	if err != nil {
		t.Errorf("%s: facts API %s, connector %s: %v", s.name, pushed.name, connector.name, err)
	}
	return answers
}

// connect brings one connection about.
func connect(t *testing.T, tx ledger.Tx, name string, is standing) error {
	if is.delivered {
		paid := engine.Fact{RawRef: "p" + name, Source: "bank", Type: "paid", SubjectID: "order_1", SubjectKind: "order", OccurredAt: base - 10}
		batch := ledger.FactBatch{Facts: []engine.Fact{paid}, Connection: name, Trust: engine.Shared}
		if _, err := tx.IngestFacts(t.Context(), tenant, batch, base); err != nil {
			return err
		}
	}
	if !is.isSet {
		return nil
	}
	setting := is.set
	setting.Source, setting.Name = "bank", name
	return tx.SetConnection(t.Context(), tenant, setting, base)
}
