package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/contract/contracttest"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
)

// testTenant keeps the tests of contracts apart from a store's own data.
const testTenant = "contract-tests"

// judgeTest stores the test's world, evaluates it in SQL and in Go as the
// verifier does, and rolls everything back. Verdicts stand in the order of the
// test's actions.
func judgeTest(ctx context.Context, store ledger.Ledger, c *contract.Contract, test *contracttest.Test) (verdicts []contracttest.Verdict, err error) {
	err = store.Rehearse(ctx, func(tx ledger.Tx) error {
		claims, err := storeTest(ctx, tx, c, test)
		if err != nil {
			return err
		}
		judged, err := judge(ctx, tx, testTenant, c, claims, test.Unavailable, test.At, report.DefaultSettings())
		if err != nil {
			return err
		}
		verdicts = inTestOrder(test, judged)
		return nil
	})
	return verdicts, err
}

func storeTest(ctx context.Context, tx ledger.Tx, c *contract.Contract, test *contracttest.Test) (claims []string, err error) {
	if err := tx.PublishContracts(ctx, []*contract.Contract{c}, test.At); err != nil {
		return nil, err
	}
	var actions []ledger.NewAction
	for _, action := range test.Bind(c.ID, c.Version, c.ActionType, c.SubjectKind) {
		actions = append(actions, ledger.NewAction{Action: action})
		claims = append(claims, engine.ClaimID(testTenant, action.ActionID))
	}
	if _, err := tx.RecordActions(ctx, testTenant, actions, test.At); err != nil {
		return nil, err
	}
	for _, connection := range test.Connections {
		if err := tx.SetConnection(ctx, testTenant, setting(connection), test.At); err != nil {
			return nil, err
		}
	}
	for _, batch := range factBatches(test) {
		if _, err := tx.IngestFacts(ctx, testTenant, batch, test.At); err != nil {
			return nil, err
		}
	}
	return claims, nil
}

func setting(c engine.Connection) ledger.ConnectionSetting {
	return ledger.ConnectionSetting{
		Source: c.Source, Name: c.Name, Health: &c.Health, Trust: &c.Trust, Override: &c.Override,
		ClockSkew: &c.ClockSkew, Watermark: c.Watermark,
	}
}

// factBatches delivers each source over its first connection, as
// contracts/README.md says; links come over the facts API.
func factBatches(test *contracttest.Test) []ledger.FactBatch {
	batches := []ledger.FactBatch{{Connection: engine.FactsAPI, Trust: engine.Shared, Links: test.Links, Watermarks: map[string]engine.Instant{}}}
	place := func(source string) *ledger.FactBatch {
		name, trust := engine.FactsAPI, engine.Shared
		if i := slices.IndexFunc(test.Connections, func(c engine.Connection) bool { return c.Source == source }); i >= 0 {
			name, trust = test.Connections[i].Name, test.Connections[i].Trust
		}
		i := slices.IndexFunc(batches, func(b ledger.FactBatch) bool { return b.Connection == name && b.Trust == trust })
		if i < 0 {
			i = len(batches)
			batches = append(batches, ledger.FactBatch{Connection: name, Trust: trust, Watermarks: map[string]engine.Instant{}})
		}
		return &batches[i]
	}
	for _, fact := range test.Facts {
		batch := place(fact.Source)
		batch.Facts = append(batch.Facts, fact)
	}
	for source, at := range test.Watermarks {
		place(source).Watermarks[source] = at
	}
	return batches
}

// judge evaluates recorded actions of one contract version in SQL, derives the
// same again in Go, and fails where they disagree. By action id.
func judge(ctx context.Context, tx ledger.Tx, tenant string, c *contract.Contract, claims, unavailable []string, at engine.Instant, settings report.Settings) (map[string]contracttest.Verdict, error) {
	evaluated, err := tx.Evaluate(ctx, tenant, c, claims, unavailable)
	if err != nil {
		return nil, err
	}
	bySQL := make(map[string]engine.Evaluation, len(evaluated))
	for _, e := range evaluated {
		bySQL[e.ActionID] = e
	}
	snapshot, err := tx.Snapshot(ctx, tenant, c, claims, unavailable)
	if err != nil {
		return nil, err
	}
	judged := make(map[string]contracttest.Verdict, len(claims))
	for i, derived := range goeval.Evaluate(c, snapshot) {
		inSQL, ok := bySQL[derived.ActionID]
		if !ok {
			return nil, fmt.Errorf("action %q was not judged in SQL", derived.ActionID)
		}
		if differences := goeval.Differences(c, inSQL, derived); len(differences) > 0 {
			return nil, fmt.Errorf("the evaluators disagree about action %q: %s", derived.ActionID, strings.Join(differences, "; "))
		}
		judged[derived.ActionID] = contracttest.Verdict{
			Evaluation: derived,
			Report:     report.Make(c, snapshot, snapshot.Actions[i], derived, at, settings),
		}
	}
	return judged, nil
}

func inTestOrder(test *contracttest.Test, judged map[string]contracttest.Verdict) []contracttest.Verdict {
	verdicts := make([]contracttest.Verdict, len(test.Actions))
	for i, c := range test.Actions {
		verdicts[i] = judged[c.Action.ActionID]
	}
	return verdicts
}
