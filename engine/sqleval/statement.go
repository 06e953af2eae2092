// Package sqleval composes the one SQL statement that evaluates a batch of
// actions under one contract version: checks, evidence, values, reasons and
// both verdicts (decision D23).
//
// It shares the parsed contract with engine/goeval and nothing else.
package sqleval

import (
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
)

// Statement is a compiled contract version for one dialect. It is immutable
// and safe for concurrent use.
type Statement struct {
	// Text takes the parameters that the dialect names: tenant, claim ids, unavailable sources.
	Text string
	// layout says, for each column after the fixed ones, whose finding it fills.
	layout []cell
	calls  int
}

// cell is one column of a finding.
type cell struct {
	call int
	fill func(*engine.Finding, string)
}

// fixedColumns are action_id, flags, and verdict and reasons per lens.
const fixedColumns = 6

// Compile composes the statement.
func Compile(c *contract.Contract, d primitive.Dialect) *Statement {
	k := compiler{contract: c, builder: &primitive.Builder{Dialect: d, ContractID: c.ID, Vendor: c.Vendor}}
	for _, call := range c.Calls {
		k.columns = append(k.columns, call.SQL(k.builder))
	}
	s := &Statement{calls: len(c.Calls)}
	s.Text = k.text(s)
	return s
}

// Columns is the number of columns of a row.
func (s *Statement) Columns() int { return fixedColumns + len(s.layout) }

// Evaluation reads one row: every column as nullable text.
func (s *Statement) Evaluation(row []*string) (engine.Evaluation, error) {
	if len(row) != s.Columns() {
		return engine.Evaluation{}, fmt.Errorf("evaluation row has %d columns, want %d", len(row), s.Columns())
	}
	for _, column := range row[:fixedColumns] {
		if column == nil {
			return engine.Evaluation{}, fmt.Errorf("evaluation row has a NULL among its fixed columns")
		}
	}
	flags := *row[1]
	if len(flags) != s.calls {
		return engine.Evaluation{}, fmt.Errorf("evaluation row has %d flags, want %d", len(flags), s.calls)
	}
	findings := make([]engine.Finding, s.calls)
	for i := range findings {
		findings[i].Fired = flags[i] == '1'
		findings[i].BelowTrust = flags[i] == '2'
	}
	for i, cell := range s.layout {
		if text := row[fixedColumns+i]; text != nil {
			cell.fill(&findings[cell.call], *text)
		}
	}
	return engine.Evaluation{
		ActionID: *row[0],
		Findings: findings,
		Outcome:  engine.Verdict{Raw: engine.RawVerdict(*row[2]), Reasons: splitReasons(*row[3])},
		Policy:   engine.Verdict{Raw: engine.RawVerdict(*row[4]), Reasons: splitReasons(*row[5])},
	}, nil
}

// splitReasons takes apart ",code,code": identifiers hold no comma.
func splitReasons(text string) []string {
	return strings.Split(strings.TrimPrefix(text, ","), ",")
}

type compiler struct {
	contract *contract.Contract
	builder  *primitive.Builder
	columns  []primitive.Columns
}

func (k *compiler) text(s *Statement) string {
	d := k.builder.Dialect
	first, second, tables := k.builder.Aggregates()
	var b strings.Builder
	fmt.Fprintf(&b, `WITH batch AS (
  SELECT c.claim_id, c.action_id, c.subject_id, c.requested_at, c.params, c.agent_id, coalesce(c.agent_id, %s) AS agent,
    c.workflow_id, c.session_id, c.reference_id
  FROM claims c WHERE c.tenant_id = %s AND %s
), subjects AS (
  SELECT b.claim_id, b.subject_id FROM batch b
  UNION
  SELECT b.claim_id, l.linked_subject_id FROM batch b JOIN subject_links l ON l.tenant_id = %s AND l.subject_id = b.subject_id
), src AS (
%s
), f AS %s (
  SELECT s.claim_id, %s AS order_key, x.raw_ref, x.source, x.fact_type, x.occurred_at, x.attributes,
    coalesce(src.clock_skew, 0) AS clock_skew, coalesce(src.trust, 0) AS trust
  FROM subjects s JOIN facts x ON x.tenant_id = %s AND x.subject_id = s.subject_id LEFT JOIN src ON src.source = x.source
), g AS (
  SELECT %s
  FROM batch b LEFT JOIN f ON f.claim_id = b.claim_id GROUP BY b.claim_id
)`,
		primitive.Literal(k.contract.Vendor), d.Tenant, d.ClaimIDIn("c.claim_id"), d.Tenant, sources(d),
		d.Materialized, d.OrderKey("x.occurred_at", "x.raw_ref"), d.Tenant,
		strings.Join(append([]string{"b.claim_id", "count(f.order_key) AS facts", k.everObserved() + " AS ever"}, first...), ",\n    "))
	joins := " JOIN g ON g.claim_id = b.claim_id"
	if len(second) > 0 {
		fmt.Fprintf(&b, `, h AS (
  SELECT %s
  FROM batch b JOIN g ON g.claim_id = b.claim_id LEFT JOIN f ON f.claim_id = b.claim_id GROUP BY b.claim_id
)`, strings.Join(append([]string{"b.claim_id"}, second...), ",\n    "))
		joins += " JOIN h ON h.claim_id = b.claim_id"
	}
	for i, table := range tables {
		fmt.Fprintf(&b, ", t%d AS (\n%s\n)", i, table)
		joins += fmt.Sprintf(" LEFT JOIN t%d ON t%d.claim_id = b.claim_id", i, i)
	}
	found, cells := k.findings(s)
	fmt.Fprintf(&b, `, c AS (
  SELECT %s
  FROM batch b%s
)
SELECT %s FROM c`, strings.Join(found, ",\n    "), joins, strings.Join(append(k.answers(), cells...), ",\n  "))
	return b.String()
}

// sources is the state of each source at verification time (decisions D10,
// D11, D29), made of the connections that provide it.
func sources(d primitive.Dialect) string {
	return fmt.Sprintf(`  SELECT s.source,
    CASE WHEN s.source = %s THEN %d
      ELSE coalesce(min(CASE WHEN s.trust_override > 0 THEN s.trust_override END), min(CASE WHEN s.trust > 0 THEN s.trust END), 0) END AS trust,
    max(s.clock_skew) AS clock_skew,
    CASE WHEN %s THEN 0
      WHEN max(CASE WHEN s.health IN ('healthy', 'syncing') THEN 1 ELSE 0 END) = 1 THEN 1
      WHEN count(*) FILTER (WHERE s.health IS NOT NULL OR s.delivered = 1 OR s.watermark IS NOT NULL) = 1 AND min(s.health) = 'error' THEN 0
      ELSE max(s.delivered) END AS present
  FROM sources s WHERE s.tenant_id = %s GROUP BY s.source`,
		primitive.Literal(engine.AgentSource), engine.SelfReported, d.Unavailable("s.source"), d.Tenant)
}

// everObserved counts facts of the expected effects' types at any time (decision D9).
func (k *compiler) everObserved() string {
	var any []string
	for _, check := range k.contract.Checks {
		effect, ok := check.Call.(primitive.Effect)
		if !ok || check.Section != contract.ExpectedEffects {
			continue
		}
		source, factType := effect.EffectType()
		condition := "f.fact_type = " + primitive.Literal(factType)
		if source != "" {
			condition = "(" + condition + " AND f.source = " + primitive.Literal(source) + ")"
		}
		any = append(any, condition)
	}
	return fmt.Sprintf("count(*) FILTER (WHERE %s)", strings.Join(any, " OR "))
}

// findings are the columns of c, and those of the answer that repeat them.
func (k *compiler) findings(s *Statement) (found, cells []string) {
	found = []string{"b.action_id", "g.facts", "g.ever"}
	for i, column := range k.columns {
		found = append(found, fmt.Sprintf("(%s) AS f%d", column.Fired, i))
		if column.BelowTrust != "" {
			found = append(found, fmt.Sprintf("(%s) AS w%d", column.BelowTrust, i))
		}
		for _, part := range []struct {
			name, expression string
			fill             func(*engine.Finding, string)
		}{
			{"e", column.Evidence, func(f *engine.Finding, text string) { f.Evidence = text }},
			{"o", column.Observed, func(f *engine.Finding, text string) { f.Value.Set, f.Value.Observed = true, text }},
			{"x", column.Expected, func(f *engine.Finding, text string) { f.Value.Compared, f.Value.Expected = true, text }},
		} {
			if part.expression == "" {
				continue
			}
			name := fmt.Sprintf("%s%d", part.name, i)
			found = append(found, fmt.Sprintf("%s AS %s", part.expression, name))
			cells = append(cells, "c."+name)
			s.layout = append(s.layout, cell{i, part.fill})
		}
	}
	return found, cells
}
