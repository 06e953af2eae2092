package primitive

import "fmt"

// Dialect is the handful of spellings in which SQL databases differ. Postgres
// and SQLite are its two values; everything else of a statement is shared.
type Dialect struct {
	// Name is "postgres" or "sqlite".
	Name string
	// text is the scalar text of a JSON member, NULL for null, arrays, objects and absent members (decision D4).
	text func(object, key string) string
	// sent is true for a JSON member that is there and not null.
	sent func(object, key string) string
	// decimal reads a text as a number, NULL where it does not read as one (decision D2).
	decimal func(text string) string
	// compare compares two decimals; NULL when either is.
	compare func(a, operator, b string) string
	// add and subtract are exact; NULL when either side is.
	add, subtract func(a, b string) string
	// distance is |a - b|.
	distance func(a, b string) string
	// canonical prints a decimal in canonical form.
	canonical func(decimal string) string
	// sum adds the decimals of a group.
	sum func(decimal string) string
	// constant is a decimal literal.
	constant func(canonical string) string
	// fold lowercases ASCII letters only.
	fold func(text string) string
	// nth is the nth (from 1) value of a text expression in byte order, among rows that meet a condition.
	nth func(expression, condition string, n int64) string
	// position is the 1-based place of a text in another.
	position func(text, part string) string
	// bytes makes a text compare by its bytes.
	bytes func(text string) string
	// separator is a text that no raw_ref contains.
	separator string
	// OrderKey makes the text that sorts by occurred_at, then raw_ref in byte order (decision D5).
	OrderKey func(occurredAt, rawRef string) string
	// Materialized is the hint that a common table expression is evaluated once.
	Materialized string
	// Tenant, ClaimIDs and Unavailable are the statement's parameters: the
	// tenant, a predicate over a claim id column, a predicate over a source column.
	Tenant      string
	ClaimIDIn   func(column string) string
	Unavailable func(column string) string
	True, False string
}

// Postgres is the dialect of PostgreSQL 15 and later. Parameters: $1 tenant,
// $2 text[] of claim ids, $3 text[] of unavailable sources. The function
// countersign_decimal comes with the schema.
var Postgres = Dialect{
	Name: "postgres",
	text: func(object, key string) string {
		member := object + " -> " + Literal(key)
		return fmt.Sprintf("CASE WHEN json_typeof(%s) IN ('string', 'number', 'boolean') THEN %s ->> %s END", member, object, Literal(key))
	},
	sent: func(object, key string) string {
		return fmt.Sprintf("coalesce(json_typeof(%s -> %s) <> 'null', false)", object, Literal(key))
	},
	decimal:   func(text string) string { return "countersign_decimal(" + text + ")" },
	compare:   func(a, operator, b string) string { return fmt.Sprintf("(%s) %s (%s)", a, operator, b) },
	add:       func(a, b string) string { return fmt.Sprintf("((%s) + (%s))", a, b) },
	subtract:  func(a, b string) string { return fmt.Sprintf("((%s) - (%s))", a, b) },
	distance:  func(a, b string) string { return fmt.Sprintf("abs((%s) - (%s))", a, b) },
	canonical: func(decimal string) string { return "trim_scale(" + decimal + ")::text" },
	sum:       func(decimal string) string { return "sum(" + decimal + ")" },
	constant:  func(canonical string) string { return canonical + "::numeric" },
	fold:      func(text string) string { return fmt.Sprintf(`lower((%s) COLLATE "C")`, text) },
	nth: func(expression, condition string, n int64) string {
		return fmt.Sprintf("(array_agg(%s ORDER BY %s) FILTER (WHERE %s))[%d]", expression, expression, condition, n)
	},
	position:  func(text, part string) string { return fmt.Sprintf("strpos(%s, %s)", text, part) },
	bytes:     func(text string) string { return fmt.Sprintf(`((%s) COLLATE "C")`, text) },
	separator: "chr(1)",
	OrderKey: func(occurredAt, rawRef string) string {
		return fmt.Sprintf(`(lpad((%s)::text, 12, '0') || %s) COLLATE "C"`, occurredAt, rawRef)
	},
	Materialized: "MATERIALIZED",
	Tenant:       "$1",
	ClaimIDIn:    func(column string) string { return column + " = ANY ($2::text[])" },
	Unavailable:  func(column string) string { return column + " = ANY ($3::text[])" },
	True:         "true",
	False:        "false",
}

// SQLite is the dialect of SQLite 3.44 and later with the functions
// countersign_decimal, countersign_compare, countersign_add,
// countersign_subtract, countersign_distance and the aggregate countersign_sum
// registered. Parameters: ?1 tenant, ?2 a JSON array of claim ids, ?3 a JSON
// array of unavailable sources.
var SQLite = Dialect{
	Name: "sqlite",
	text: func(object, key string) string {
		path := Literal(`$."` + key + `"`)
		return fmt.Sprintf("CASE json_type(%[1]s, %[2]s) WHEN 'text' THEN %[1]s ->> %[2]s WHEN 'integer' THEN %[1]s -> %[2]s WHEN 'real' THEN %[1]s -> %[2]s WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' END", object, path)
	},
	sent: func(object, key string) string {
		return fmt.Sprintf("coalesce(json_type(%s, %s) <> 'null', 0)", object, Literal(`$."`+key+`"`))
	},
	decimal: func(text string) string { return "countersign_decimal(" + text + ")" },
	compare: func(a, operator, b string) string {
		return fmt.Sprintf("countersign_compare(%s, %s) %s 0", a, b, operator)
	},
	add:       func(a, b string) string { return fmt.Sprintf("countersign_add(%s, %s)", a, b) },
	subtract:  func(a, b string) string { return fmt.Sprintf("countersign_subtract(%s, %s)", a, b) },
	distance:  func(a, b string) string { return fmt.Sprintf("countersign_distance(%s, %s)", a, b) },
	canonical: func(decimal string) string { return decimal },
	sum:       func(decimal string) string { return "countersign_sum(" + decimal + ")" },
	constant:  func(canonical string) string { return Literal(canonical) },
	fold:      func(text string) string { return "lower(" + text + ")" },
	nth: func(expression, condition string, n int64) string {
		return fmt.Sprintf("json_extract(json_group_array(%s ORDER BY %s) FILTER (WHERE %s), '$[%d]')", expression, expression, condition, n-1)
	},
	position:  func(text, part string) string { return fmt.Sprintf("instr(%s, %s)", text, part) },
	bytes:     func(text string) string { return "(" + text + ")" },
	separator: "char(1)",
	OrderKey: func(occurredAt, rawRef string) string {
		return fmt.Sprintf("printf('%%012d', %s) || %s", occurredAt, rawRef)
	},
	Materialized: "MATERIALIZED",
	Tenant:       "?1",
	ClaimIDIn:    func(column string) string { return column + " IN (SELECT value FROM json_each(?2))" },
	Unavailable:  func(column string) string { return column + " IN (SELECT value FROM json_each(?3))" },
	True:         "1",
	False:        "0",
}
