package primitive

import (
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine"
)

// Columns are the SQL expressions of one call's finding. They may use the
// aliases b (the action), g and h (aggregates), and joined tables of the builder.
type Columns struct {
	// Fired is a condition that is never NULL; BelowTrust likewise, empty for never.
	Fired, BelowTrust string
	// Evidence is a raw_ref or NULL. Observed and Expected are texts or NULL; empty for never.
	Evidence, Observed, Expected string
}

// Builder collects what the calls of a contract need from one statement.
//
// In an aggregate, b is the action (claim_id, action_id, subject_id,
// requested_at, params, agent_id, agent, workflow_id, session_id,
// reference_id) and f one fact of its own or linked subjects (order_key,
// raw_ref, source, fact_type, occurred_at, attributes, clock_skew, trust).
type Builder struct {
	Dialect Dialect
	// ContractID and Vendor are those of the contract, for aggregate limits (decision D17).
	ContractID, Vendor string

	first, second []string
	tables        []string
}

// First registers an aggregate over b and f and returns the column that holds it.
func (b *Builder) First(aggregate string) string { return "g." + register(&b.first, aggregate) }

// Second registers an aggregate over b, f and g: it may use columns that First returned.
func (b *Builder) Second(aggregate string) string { return "h." + register(&b.second, aggregate) }

// Table registers a query that yields claim_id and other columns, at most one
// row per action, and returns its alias.
func (b *Builder) Table(query string) string {
	for i, known := range b.tables {
		if known == query {
			return fmt.Sprintf("t%d", i)
		}
	}
	b.tables = append(b.tables, query)
	return fmt.Sprintf("t%d", len(b.tables)-1)
}

// Aggregates are the registered aggregates of the first and second pass, with
// their column names, and the tables by alias t0, t1, ...
func (b *Builder) Aggregates() (first, second, tables []string) {
	return named(b.first), named(b.second), b.tables
}

func named(aggregates []string) []string {
	columns := make([]string, len(aggregates))
	for i, aggregate := range aggregates {
		columns[i] = fmt.Sprintf("%s AS a%d", aggregate, i)
	}
	return columns
}

// register adds an aggregate once.
func register(list *[]string, aggregate string) string {
	for i, known := range *list {
		if known == aggregate {
			return fmt.Sprintf("a%d", i)
		}
	}
	*list = append(*list, aggregate)
	return fmt.Sprintf("a%d", len(*list)-1)
}

// Literal is a quoted SQL text.
func Literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func (b *Builder) decimalOf(object, key string) string {
	return b.Dialect.decimal(b.Dialect.text(object, key))
}

// equalsConstant is decision D4 for a constant of the contract: a text that
// does not read as a number can only equal a text, a number only a number.
func (b *Builder) equalsConstant(object string, p pair) string {
	if number, ok := p.value.Decimal(); ok {
		return b.Dialect.compare(b.decimalOf(object, p.attr), "=", b.Dialect.constant(number.String()))
	}
	text, _ := p.value.Scalar()
	return fmt.Sprintf("%s = %s", b.Dialect.fold(b.Dialect.text(object, p.attr)), Literal(engine.Fold(text)))
}

// equalsField is decision D4 for a field of the action (decision D30).
func (b *Builder) equalsField(object string, p originPair, action string) string {
	attribute := b.Dialect.text(object, p.attr)
	field := b.field(action, p.field)
	x, y := b.Dialect.decimal(attribute), b.Dialect.decimal(field)
	return fmt.Sprintf("CASE WHEN %s IS NOT NULL AND %s IS NOT NULL THEN %s ELSE %s = %s END",
		x, y, b.Dialect.compare(x, "=", y), b.Dialect.fold(attribute), b.Dialect.fold(field))
}

func (b *Builder) field(action, field string) string {
	if param, ok := strings.CutPrefix(field, "param:"); ok {
		return b.Dialect.text(action+".params", param)
	}
	return action + "." + field
}

// earliest is the order key of the earliest fact that meets a condition.
func (b *Builder) earliest(condition string) string {
	return b.First(fmt.Sprintf("min(f.order_key) FILTER (WHERE %s)", condition))
}

// latest is the order key of the latest fact that meets a condition.
func (b *Builder) latest(condition string) string {
	return b.First(fmt.Sprintf("max(f.order_key) FILTER (WHERE %s)", condition))
}

// rawRef takes the raw_ref out of an order key.
func rawRef(orderKey string) string { return fmt.Sprintf("substr(%s, 13)", orderKey) }

// withText appends a text to an order key, so that min and max carry it along.
func (b *Builder) withText(text string) string {
	return b.Dialect.bytes(fmt.Sprintf("f.order_key || %s || (%s)", b.Dialect.separator, text))
}

// carriedRef and carriedText take apart what withText made.
func (b *Builder) carriedRef(carried string) string {
	return fmt.Sprintf("substr(%s, 13, %s - 13)", carried, b.Dialect.position(carried, b.Dialect.separator))
}

func (b *Builder) carriedText(carried string) string {
	return fmt.Sprintf("substr(%s, %s + 1)", carried, b.Dialect.position(carried, b.Dialect.separator))
}
