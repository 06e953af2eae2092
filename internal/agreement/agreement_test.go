package agreement

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/engine/seal"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
)

var cases = flag.Int("cases", 2000, "how many actions to judge under random contracts, in every store")

func TestMain(m *testing.M) { pgserver.Main(m) }

const tenant = "agreement"

// answer is everything that must not depend on the store.
type answer struct {
	Evaluation engine.Evaluation
	Outcome    [32]byte
	Policy     [32]byte
	// Report is the JSON of checks, headline, settlement and sources at the evaluation time.
	Report string
}

// TestD23_EvaluatorsAgree judges random actions under random contracts in
// PostgreSQL, SQLite and Go. Every answer must be the same, down to the hash
// and the words of the headline (D27), in whatever order the facts came, and
// whatever else is stored. What is settled stays settled, and an early PASS
// says the same later on.
func TestD23_EvaluatorsAgree(t *testing.T) {
	stores := openStores(t)
	judged, failed := 0, false
	for round := 0; judged < *cases && !failed; round++ {
		rapid.Check(t, func(r *rapid.T) {
			if judged >= *cases {
				return
			}
			one := Generate(r, "random")
			c := parse(r, one)
			want := judge(r, stores[0], one, c, nil)
			for _, store := range stores[1:] {
				got := judge(r, store, one, c, nil)
				if diff := cmp.Diff(want, got); diff != "" {
					r.Fatalf("%s and %s disagree (-first +second):\n%s\ncontract:\n%s", stores[0].name, store.name, diff, one.Contract)
				}
			}
			judged += len(want)
			if rapid.IntRange(0, 3).Draw(r, "shuffled") > 0 {
				return // ingesting fact by fact is slow, so it is done for every fourth contract
			}
			shuffled := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "order"), 0))
			for _, store := range stores {
				if diff := cmp.Diff(want, judge(r, store, one, c, shuffled)); diff != "" {
					r.Fatalf("%s: order of ingestion or foreign facts changed the answer (-before +after):\n%s\ncontract:\n%s", store.name, diff, one.Contract)
				}
			}
		})
		failed = t.Failed()
	}
	t.Logf("%d actions judged alike by PostgreSQL, SQLite and Go", judged)
}

type store struct {
	name   string
	ledger ledger.Ledger
}

func openStores(t *testing.T) []store {
	t.Helper()
	urls := map[string]string{"postgres": pgserver.Start(t).Database(t), "sqlite": "memory:"}
	var stores []store
	for _, name := range []string{"postgres", "sqlite"} {
		l, err := open.Ledger(t.Context(), urls[name])
		if err != nil {
			t.Fatalf("open %s: %v", name, err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if err := l.Migrate(t.Context()); err != nil {
			t.Fatalf("migrate %s: %v", name, err)
		}
		stores = append(stores, store{name, l})
	}
	return stores
}

func parse(t *rapid.T, one Case) *contract.Contract {
	c, diagnostics := contract.Parse("random.yaml", []byte(one.Contract))
	if len(diagnostics) > 0 {
		t.Fatalf("generated contract is refused: %v\n%s", diagnostics, one.Contract)
	}
	return c
}

// judge records a case in a transaction that is rolled back, evaluates it in
// SQL, derives it in Go, demands that both agree, and returns the answers by
// action. With an order, facts come shuffled, one batch each, with foreign
// facts and another tenant's between them.
func judge(t *rapid.T, s store, one Case, c *contract.Contract, order *rand.Rand) map[string]answer {
	ctx := context.Background()
	var answers map[string]answer
	err := s.ledger.Rehearse(ctx, func(tx ledger.Tx) error {
		claims, err := load(ctx, tx, one, c, order)
		if err != nil {
			return err
		}
		answers, err = evaluate(ctx, tx, one, c, claims)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v\ncontract:\n%s", s.name, err, one.Contract)
	}
	return answers
}

func load(ctx context.Context, tx ledger.Tx, one Case, c *contract.Contract, order *rand.Rand) (claims []string, err error) {
	if err := tx.PublishContracts(ctx, []*contract.Contract{c}, base); err != nil {
		return nil, err
	}
	var actions []ledger.NewAction
	for _, a := range one.Actions {
		a.ContractVersion, a.ActionType, a.SubjectKind = c.Version, c.ActionType, c.SubjectKind
		actions = append(actions, ledger.NewAction{Action: a})
	}
	recorded, err := tx.RecordActions(ctx, tenant, actions, base)
	if err != nil {
		return nil, err
	}
	for _, r := range recorded {
		if !slices.Contains(claims, r.ClaimID) {
			claims = append(claims, r.ClaimID)
		}
	}
	if err := ingest(ctx, tx, one, order); err != nil {
		return nil, err
	}
	for _, setting := range one.Settings {
		if err := tx.SetConnection(ctx, tenant, setting, base); err != nil {
			return nil, err
		}
	}
	return claims, nil
}

func ingest(ctx context.Context, tx ledger.Tx, one Case, order *rand.Rand) error {
	batches := []ledger.FactBatch{{Facts: one.Facts, Links: one.Links, Connection: one.Connection, Trust: engine.Shared}}
	if order != nil {
		batches = batches[:0]
		for _, f := range append(slices.Clone(one.Facts), one.Facts...) { // redelivered too
			batches = append(batches, ledger.FactBatch{Facts: []engine.Fact{f}, Connection: one.Connection, Trust: engine.Shared})
		}
		for _, l := range one.Links {
			reversed := engine.Link{SubjectID: l.LinkedSubjectID, LinkedSubjectID: l.SubjectID}
			batches = append(batches, ledger.FactBatch{Links: []engine.Link{reversed, l}, Trust: engine.Shared})
		}
		order.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
		if _, err := tx.IngestFacts(ctx, "other", ledger.FactBatch{Facts: one.Facts, Trust: engine.Independent}, base); err != nil {
			return err
		}
		batches = append(batches, foreign(one)...)
	}
	for _, batch := range batches {
		if _, err := tx.IngestFacts(ctx, tenant, batch, base); err != nil {
			return err
		}
	}
	return nil
}

// foreign are facts of unrelated subjects, from sources that have delivered
// anyway: a source that reports for the first time is present from then on
// (decision D11), which is no change of a subject.
func foreign(one Case) []ledger.FactBatch {
	var facts []engine.Fact
	for _, f := range one.Foreign {
		if slices.ContainsFunc(one.Facts, func(known engine.Fact) bool { return known.Source == f.Source }) {
			facts = append(facts, f)
		}
	}
	return []ledger.FactBatch{{Facts: facts, Connection: one.Connection, Trust: engine.Shared}}
}

func evaluate(ctx context.Context, tx ledger.Tx, one Case, c *contract.Contract, claims []string) (map[string]answer, error) {
	judged, err := tx.Evaluate(ctx, tenant, c, claims, one.Unavailable)
	if err != nil {
		return nil, err
	}
	snapshot, err := tx.Snapshot(ctx, tenant, c, claims, one.Unavailable)
	if err != nil {
		return nil, err
	}
	bySQL := map[string]engine.Evaluation{}
	for _, e := range judged {
		bySQL[e.ActionID] = e
	}
	answers := map[string]answer{}
	for i, derived := range goeval.Evaluate(c, snapshot) {
		sql, ok := bySQL[derived.ActionID]
		if !ok {
			return nil, fmt.Errorf("SQL did not judge %s", derived.ActionID)
		}
		if differences := goeval.Differences(c, sql, derived); len(differences) > 0 {
			return nil, errors.Join(asErrors(differences)...)
		}
		a, err := sealed(c, snapshot, snapshot.Actions[i], sql)
		if err == nil {
			a.Report, err = reported(one, c, snapshot, snapshot.Actions[i], sql)
		}
		if err != nil {
			return nil, err
		}
		answers[derived.ActionID] = a
	}
	if len(answers) != len(claims) {
		return nil, fmt.Errorf("%d of %d actions were judged", len(answers), len(claims))
	}
	return answers, nil
}

func asErrors(texts []string) []error {
	list := make([]error, len(texts))
	for i, text := range texts {
		list[i] = errors.New(text)
	}
	return list
}

func sealed(c *contract.Contract, s *engine.Snapshot, a engine.Action, e engine.Evaluation) (answer, error) {
	subject := seal.Subject{Tenant: s.Tenant, Contract: c, Action: a, Sources: s.Sources}
	outcome, policy := seal.Seal(subject, e.Outcome, e.Policy, e.Findings)
	// What findings name is among the facts that were read, so that its content can be sealed.
	_, err := seal.Contents(seal.Evidence(a.ActionID, e.Findings), s, a.SubjectID)
	return answer{Evaluation: e, Outcome: outcome.Hash, Policy: policy.Hash}, err
}

// reported is the report at the evaluation time, compared with the one of the
// same facts at a later time.
func reported(one Case, c *contract.Contract, s *engine.Snapshot, a engine.Action, e engine.Evaluation) (string, error) {
	now := report.Make(c, s, a, e, one.At, report.DefaultSettings())
	later := report.Make(c, s, a, e, one.Later, report.DefaultSettings())
	if now.Settlement.Settled && !later.Settlement.Settled {
		return "", fmt.Errorf("%s settled at %s and is pending again at %s", a.ActionID, one.At, one.Later)
	}
	text, err := json.Marshal(now)
	if err != nil {
		return "", err
	}
	again, err := json.Marshal(later)
	if err != nil {
		return "", err
	}
	early := now.Settlement.Settled && e.Outcome.Raw == engine.Verified && !c.SettleAtClose
	if early && !bytes.Equal(text, again) {
		return "", fmt.Errorf("%s passed early and says something else later:\n%s\n%s", a.ActionID, text, again)
	}
	return string(text), nil
}
