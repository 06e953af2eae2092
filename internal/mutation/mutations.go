package main

// mutation breaks one primitive on one side. Its text stands once in the file.
type mutation struct {
	file, side, from, to string
}

// mutations break the SQL and the Go of every primitive in turn, and what the
// primitives share.
var mutations = []mutation{
	{"arguments.go", "Go", "f.OccurredAt > c.Action.RequestedAt.Add(e.within)", "f.OccurredAt >= c.Action.RequestedAt.Add(e.within)"},
	{"arguments.go", "SQL", `"f.occurred_at <= b.requested_at + %d", e.within`, `"f.occurred_at < b.requested_at + %d", e.within`},
	{"arguments.go", "Go", "skew > 0 && f.OccurredAt >=", "skew > 0 && f.OccurredAt >"},
	{"arguments.go", "SQL", `"f.occurred_at >= b.requested_at - f.clock_skew"`, `"f.occurred_at >= b.requested_at"`},
	{"effect_observed.go", "Go", "c.Snapshot.Sources[f.Source].Trust >= e.minTrust", "c.Snapshot.Sources[f.Source].Trust > e.minTrust"},
	{"effect_observed.go", "SQL", `"%s AND f.trust >= %d"`, `"%s AND f.trust > %d"`},
	{"effect_count_exceeds.go", "Go", "count++; count == e.max+1", "count++; count == e.max+2"},
	{"effect_count_exceeds.go", "SQL", `fmt.Sprintf("%s > %d", count, e.max)`, `fmt.Sprintf("%s >= %d", count, e.max)`},
	{"effect_attr_exceeds.go", "Go", "value.Cmp(e.max) > 0", "value.Cmp(e.max) >= 0"},
	{"effect_attr_exceeds.go", "SQL", `b.First(fmt.Sprintf("min(%s)`, `b.First(fmt.Sprintf("max(%s)`},
	{"effect_attr_differs.go", "Go", "expected = expected.Sub(less)", "expected = expected.Add(less)"},
	{"effect_attr_differs.go", "SQL", "pass = b.Second", "pass = b.First"},
	{"aggregate_exceeds.go", "Go", "at <= end-int64(e.over)", "at < end-int64(e.over)"},
	{"aggregate_exceeds.go", "SQL", "SELECT DISTINCT p.claim_id", "SELECT ALL p.claim_id"},
	{"reversal_observed.go", "Go", "e.matches(c, &c.Facts[i])", "!e.matches(c, &c.Facts[i])"},
	{"reversal_observed.go", "SQL", "b.earliest(e.condition(b))", "b.latest(e.condition(b))"},
	{"state.go", "Go", "f.OccurredAt <= c.Action.RequestedAt && f.OccurredAt >= from", "f.OccurredAt <= c.Action.RequestedAt && f.OccurredAt > from"},
	{"state.go", "SQL", `"f.occurred_at <= b.requested_at",`, `"f.occurred_at < b.requested_at",`},
	{"state_before_action.go", "Go", "Fired: holds, Evidence: evidence}\n}\n\n// SQL", "Fired: !holds, Evidence: evidence}\n}\n\n// SQL"},
	{"state_before_action.go", "SQL", "Columns{Fired: holds,", `Columns{Fired: "NOT " + holds,`},
	{"precondition_unmet.go", "Go", "Fired: !holds", "Fired: holds"},
	{"precondition_unmet.go", "SQL", `"NOT " + holds`, "holds"},
	{"param_exceeds.go", "Go", "found.Fired = value.Cmp(e.max) > 0", "found.Fired = value.Cmp(e.max) >= 0"},
	{"param_exceeds.go", "SQL", `b.Dialect.constant("0"))`, `b.Dialect.constant("1"))`},
	{"param_not_in.go", "Go", "kind == engine.Absent || kind == engine.Null", "kind == engine.Absent"},
	{"param_not_in.go", "SQL", `strings.Join(allowed, " OR ")`, `strings.Join(allowed, " AND ")`},
	{"missing_fact_source.go", "Go", "!c.Snapshot.Sources[source].Present", "c.Snapshot.Sources[source].Present"},
	{"missing_fact_source.go", "SQL", "src.present = 1 AND", "src.present >= 0 AND"},
	{"dialect.go", "SQL", `fmt.Sprintf("(%s) %s (%s)", a, operator, b)`, `fmt.Sprintf("(%s)::float8 %s (%s)::float8", a, operator, b)`},
	{"dialect.go", "SQL", `fmt.Sprintf("countersign_compare(%s, %s) %s 0", a, b, operator)`, `fmt.Sprintf("%s %s %s", a, operator, b)`},
	{"dialect.go", "SQL", "lower((%s) COLLATE \"C\")", "lower((%s) COLLATE \"en-x-icu\")"},
}
