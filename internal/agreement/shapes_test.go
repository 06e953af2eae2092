package agreement

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
	"github.com/countersign-otel/countersign/engine/sqleval"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger/open"
)

var shapeSizes = flag.String("shapes.facts", "10000,100000,1000000", "numbers of facts in the table, growing")

const batchSize = 1000

// BenchmarkSQLShapes judges 1,000 refunds with 6,000 facts in PostgreSQL as
// the table grows, in the shape that the product uses (one scan of each
// subject's facts with filtered aggregates) and in the other one that was
// considered (one correlated lookup per check). Both must give the same verdicts.
func BenchmarkSQLShapes(b *testing.B) {
	ctx := context.Background()
	url := pgserver.Start(b).Database(b)
	l, err := open.Ledger(ctx, url)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	if err := l.Migrate(ctx); err != nil {
		b.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(ctx)
	scan := sqleval.Compile(refundWorkflow(b), primitive.Postgres).Text
	stored := 0
	for _, text := range strings.Split(*shapeSizes, ",") {
		facts, err := strconv.Atoi(text)
		if err != nil {
			b.Fatalf("-shapes.facts: %v", err)
		}
		seed(b, conn, stored/6, facts/6)
		stored = facts
		claims := batch(facts / 6)
		want := verdicts(b, conn, scan, 4, claims)
		if got := verdicts(b, conn, correlated, 1, claims); fmt.Sprint(got) != fmt.Sprint(want) {
			b.Fatalf("the shapes disagree: %v, %v", want, got)
		}
		for _, shape := range []struct{ name, text string }{{"scan", scan}, {"correlated", correlated}} {
			b.Run(fmt.Sprintf("facts=%d/shape=%s", facts, shape.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					verdicts(b, conn, shape.text, 1, claims)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*batchSize), "µs/action")
			})
		}
	}
}

func refundWorkflow(b *testing.B) *contract.Contract {
	b.Helper()
	text, err := os.ReadFile("../../contracts/refund_workflow.yaml")
	if err != nil {
		b.Fatal(err)
	}
	c, diagnostics := contract.Parse("refund_workflow.yaml", text)
	if len(diagnostics) > 0 {
		b.Fatal(diagnostics)
	}
	return c
}

// seed adds subjects from..to with one action and six facts each; every
// seventh order lacks its cancellation.
func seed(b *testing.B, conn *pgx.Conn, from, to int) {
	b.Helper()
	ctx := context.Background()
	run := func(sql string) {
		if _, err := conn.Exec(ctx, sql, from, to-1, int64(base)); err != nil {
			b.Fatal(err)
		}
	}
	run(`INSERT INTO claims (tenant_id, claim_id, action_id, contract_id, contract_version, subject_id, requested_at, params, recorded_at)
		SELECT 'bench', 'clm_' || i, 'act_' || i, 'refund_workflow', 1, 'order_' || i, $3::bigint + i, '{"amount":180.00}', $3::bigint FROM generate_series($1::int, $2::int) i`)
	run(`INSERT INTO facts (tenant_id, raw_ref, source, fact_type, subject_id, subject_kind, occurred_at, attributes, content_hash, connection, ingested_at)
		SELECT 'bench', k.fact_type || '_' || i, k.source, k.fact_type, 'order_' || i, 'order', $3::bigint + i + k.seconds, k.attributes::json, ''::bytea, '', $3::bigint
		FROM generate_series($1::int, $2::int) i CROSS JOIN (VALUES
			('shopify', 'order_status', -30, '{"status":"eligible","total":180.00}'), ('shopify', 'order_viewed', -20, '{}'),
			('stripe', 'refund_created', 7, '{"amount":180.00,"currency":"USD"}'), ('shopify', 'order_cancelled', 20, '{}'),
			('crm', 'note_added', 40, '{}'), ('messaging', 'customer_notified', 60, '{}')) k (source, fact_type, seconds, attributes)
		WHERE k.fact_type <> 'order_cancelled' OR i % 7 <> 0`)
	if _, err := conn.Exec(ctx, `INSERT INTO sources (tenant_id, source, connection, trust, delivered)
		SELECT 'bench', s, '', 2, 1 FROM unnest(ARRAY['stripe', 'shopify', 'crm', 'messaging']) s ON CONFLICT DO NOTHING`); err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		b.Fatal(err)
	}
}

// batch spreads the actions over the whole table.
func batch(subjects int) []string {
	claims := make([]string, batchSize)
	for i := range claims {
		claims[i] = fmt.Sprintf("clm_%d", i*subjects/batchSize)
	}
	return claims
}

// verdicts runs a statement and reads the policy verdict from a column, by action.
func verdicts(b *testing.B, conn *pgx.Conn, statement string, column int, claims []string) map[string]string {
	b.Helper()
	rows, err := conn.Query(context.Background(), statement, "bench", claims, []string{})
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	found := make(map[string]string, len(claims))
	for rows.Next() {
		values := rows.RawValues()
		found[string(values[0])] = string(values[column])
	}
	if rows.Err() != nil || len(found) != batchSize {
		b.Fatalf("%d actions judged: %v", len(found), rows.Err())
	}
	return found
}

// correlated is the other shape, written by hand for the refund workflow.
const correlated = `
WITH batch AS (
  SELECT c.* FROM claims c WHERE c.tenant_id = $1 AND c.claim_id = ANY ($2::text[])
), subjects AS (
  SELECT b.claim_id, b.subject_id FROM batch b
  UNION
  SELECT b.claim_id, l.linked_subject_id FROM batch b JOIN subject_links l ON l.tenant_id = $1 AND l.subject_id = b.subject_id
), checked AS (
  SELECT b.action_id,
    (SELECT count(*) FROM subjects s JOIN facts f ON f.tenant_id = $1 AND f.subject_id = s.subject_id WHERE s.claim_id = b.claim_id) AS facts,
    (SELECT f.attributes ->> 'status' FROM subjects s JOIN facts f ON f.tenant_id = $1 AND f.subject_id = s.subject_id
      WHERE s.claim_id = b.claim_id AND f.source = 'shopify' AND f.fact_type = 'order_status' AND f.occurred_at BETWEEN b.requested_at - 2592000 AND b.requested_at
      ORDER BY f.occurred_at DESC, f.raw_ref DESC LIMIT 1) AS state,
    countersign_decimal(b.params ->> 'amount') AS amount,
    (SELECT count(*) FROM subjects s JOIN facts f ON f.tenant_id = $1 AND f.subject_id = s.subject_id
      WHERE s.claim_id = b.claim_id AND f.source = 'stripe' AND f.fact_type = 'refund_created' AND f.occurred_at BETWEEN b.requested_at AND b.requested_at + 900) AS refunds,
    (SELECT max(countersign_decimal(f.attributes ->> 'amount')) FROM subjects s JOIN facts f ON f.tenant_id = $1 AND f.subject_id = s.subject_id
      WHERE s.claim_id = b.claim_id AND f.source = 'stripe' AND f.fact_type = 'refund_created' AND f.occurred_at BETWEEN b.requested_at AND b.requested_at + 900) AS largest,
    (SELECT min(f.occurred_at) FROM subjects s JOIN facts f ON f.tenant_id = $1 AND f.subject_id = s.subject_id
      WHERE s.claim_id = b.claim_id AND f.source = 'shopify' AND f.fact_type = 'order_cancelled' AND f.occurred_at BETWEEN b.requested_at AND b.requested_at + 900) AS cancelled,
    (SELECT min(f.occurred_at) FROM subjects s JOIN facts f ON f.tenant_id = $1 AND f.subject_id = s.subject_id
      WHERE s.claim_id = b.claim_id AND f.source = 'crm' AND f.fact_type = 'note_added' AND f.occurred_at BETWEEN b.requested_at AND b.requested_at + 900) AS noted,
    (SELECT min(f.occurred_at) FROM subjects s JOIN facts f ON f.tenant_id = $1 AND f.subject_id = s.subject_id
      WHERE s.claim_id = b.claim_id AND f.source = 'messaging' AND f.fact_type = 'customer_notified' AND f.occurred_at BETWEEN b.requested_at AND b.requested_at + 900) AS notified
  FROM batch b
)
SELECT c.action_id, CASE
    WHEN c.facts = 0 THEN 'UNVERIFIABLE'
    WHEN c.state IS DISTINCT FROM 'eligible' OR coalesce(c.amount, 0) > 250 OR c.refunds > 1 OR coalesce(c.largest, 0) > 250 THEN 'NOT_VERIFIED'
    WHEN c.refunds > 0 AND c.cancelled IS NOT NULL AND c.noted IS NOT NULL AND c.notified IS NOT NULL THEN 'VERIFIED'
    ELSE 'NOT_VERIFIED' END
FROM checked c WHERE $3::text[] IS NOT NULL`

// TestShapesBatchIsWhole pins what the benchmark relies on: a batch names each action once.
func TestShapesBatchIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, claim := range batch(10000 / 6) {
		seen[claim] = true
	}
	if len(seen) != batchSize {
		t.Fatalf("the batch names %d actions, want %d", len(seen), batchSize)
	}
}
