package agreement

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// Case is a random contract with a world to judge.
type Case struct {
	// Contract is the YAML text, valid by construction.
	Contract string
	Actions  []engine.Action
	Facts    []engine.Fact
	Links    []engine.Link
	// Connection is over which the facts come.
	Connection string
	// Settings change connections after the facts were ingested.
	Settings    []ledger.ConnectionSetting
	Unavailable []string
	// Foreign are facts of subjects that no action concerns.
	Foreign []engine.Fact
	// At is the evaluation time, Later one after it.
	At, Later engine.Instant
}

// Names are few, so that contracts and facts meet often.
var (
	sources  = []string{"stripe", "shopify", "crm", "otel"}
	types    = []string{"refund_created", "order_status", "note_added"}
	attrs    = []string{"amount", "status", "who", "a.b"}
	params   = []string{"amount", "reason", "who"}
	subjects = []string{"order_1", "order_1", "order_1", "order_2", "ticket_9", "Straße 'x' \\ \"y\"", "order_1 "}
	// The facts API, and a connector.
	connections = []string{engine.FactsAPI, "connector"}
	agents      = []string{"", "bot-a", "bot-b", "internal"}
)

// base is the time around which everything happens; it is 10 minutes, the
// window of most contracts, away from the bounds that matter.
const base engine.Instant = 1_800_000_000

// constants are values that a contract may compare with.
var constants = []string{"180", "180.0", "1.8e2", "eligible", "ELIGIBLE", "Eligible", "true", "0", "-5", "k", "a/b c", "1e101", "0x10", "250.00"}

// literals are JSON texts that attributes and params may hold.
var literals = []string{
	`180`, `180.0`, `1.8e2`, `"180"`, `" 180 "`, `"180.00"`, `"+180"`, `-0`, `0`, `"-0.0"`, `-5`, `250`, `250.01`, `"250"`,
	`0.1`, `0.2`, `0.30`, `1e100`, `1e101`, `1e-100`, `1e-101`, `"1e999"`, `0e999`,
	`12345678901234567890123456789012345678`, `123456789012345678901234567890123456789`, `"1.0000000000000000000000000000000000001"`,
	`100000000000000000000000000000000000000000000`, `0.00000000000000000000000000000000000000000001`,
	`true`, `false`, `null`, `[]`, `{}`, `[180]`, `{"amount":180}`, `[1.80e2` + strings.Repeat(`,0.0`, 70) + `]`,
	`"eligible"`, `"ELIGIBLE"`, `"Eligible "`, `"True"`, `"\u212a"`, `"k"`, `"K"`, `"\u00c4"`, `"\u00e4"`, `""`, `" "`, `"NaN"`, `"Infinity"`, `"0x10"`, `"1_000"`, `"1,000"`,
	`"a/b c"`, `"bot-a"`, `"order_1"`, `"line\nbreak"`, `"\u0001"`, `"quote ' and \" \\"`, `"\ud83d\ude00"`, `"1e"`, `".5"`, `"5."`, `"--5"`, `"\t5"`, `"5\n"`, `"\u0665"`,
}

// plainAmounts are drawn more often, so that several facts break one limit.
var plainAmounts = []string{`180`, `180.00`, `"200"`, `250.01`, `300`, `1e3`}

// Generate draws a case whose contract has the given id.
func Generate(t *rapid.T, contractID string) Case {
	drawn := Case{
		Contract:    contractText(t, contractID),
		Actions:     rapid.SliceOfN(rapid.Custom(func(t *rapid.T) engine.Action { return action(t, contractID) }), 1, 24).Draw(t, "actions"),
		Facts:       rapid.SliceOfN(rapid.Custom(fact), 0, 24).Draw(t, "facts"),
		Links:       rapid.SliceOfN(rapid.Custom(link), 0, 3).Draw(t, "links"),
		Connection:  rapid.SampledFrom(connections).Draw(t, "came over"),
		Settings:    rapid.SliceOfN(rapid.Custom(setting), 0, 3).Draw(t, "settings"),
		Unavailable: rapid.SliceOfNDistinct(rapid.SampledFrom(sources), 0, 1, rapid.ID[string]).Draw(t, "unavailable"),
		Foreign:     rapid.SliceOfN(rapid.Custom(foreignFact), 1, 3).Draw(t, "foreign"),
		At:          base + engine.Instant(rapid.SampledFrom([]int64{0, 59, 599, 600, 601, 3600, 7200, 172_800, 260_000}).Draw(t, "at")),
	}
	drawn.Later = drawn.At + engine.Instant(rapid.Int64Range(1, 300_000).Draw(t, "later"))
	// The first fact under a raw_ref stands (decision D8), so two facts under
	// one would make the order of ingestion matter.
	seen := map[string]bool{}
	drawn.Facts = unique(seen, drawn.Facts)
	drawn.Foreign = unique(seen, drawn.Foreign)
	return drawn
}

// unique drops facts whose raw_ref was seen.
func unique(seen map[string]bool, facts []engine.Fact) []engine.Fact {
	return slices.DeleteFunc(facts, func(f engine.Fact) bool {
		twice := seen[f.RawRef]
		seen[f.RawRef] = true
		return twice
	})
}

func action(t *rapid.T, contractID string) engine.Action {
	number := rapid.IntRange(0, 1_000_000).Draw(t, "number")
	return engine.Action{
		ActionID:    fmt.Sprintf("act-%d", number),
		ContractID:  contractID,
		AgentID:     rapid.SampledFrom(agents).Draw(t, "agent"),
		WorkflowID:  rapid.SampledFrom([]string{"", "180", "wf"}).Draw(t, "workflow"),
		SessionID:   rapid.SampledFrom([]string{"", "k", "eligible"}).Draw(t, "session"),
		SubjectID:   rapid.SampledFrom(subjects).Draw(t, "subject"),
		RequestedAt: base + engine.Instant(rapid.SampledFrom([]int64{0, 0, 1, -600, 600, 3600}).Draw(t, "requested")),
		Params:      object(t, params, "params"),
	}
}

// object draws a JSON object over the given names; sometimes it was not captured.
func object(t *rapid.T, names []string, label string) engine.Object {
	if rapid.IntRange(0, 9).Draw(t, label+" captured") == 0 {
		return engine.Object{}
	}
	var members []string
	for _, name := range names {
		if rapid.IntRange(0, 3).Draw(t, label+" has "+name) == 0 {
			continue
		}
		values := literals
		if name == "amount" && rapid.Bool().Draw(t, label+" amount is plain") {
			values = plainAmounts
		}
		members = append(members, fmt.Sprintf("%q:%s", name, rapid.SampledFrom(values).Draw(t, label+" "+name)))
	}
	if rapid.IntRange(0, 7).Draw(t, label+" dense") == 0 {
		members = slices.Insert(members, rapid.IntRange(0, len(members)).Draw(t, label+" dense at"), dense)
	}
	o, err := engine.ParseObject([]byte("{" + strings.Join(members, ",") + "}"))
	if err != nil {
		t.Fatalf("generated object: %v", err)
	}
	return o
}

// dense makes an object one of very many values, which is held as text.
var dense = `"de\"n\u0073e,}":[` + strings.Repeat(`{"a\\":"]\""},`, 64) + `0]`

func fact(t *rapid.T) engine.Fact {
	return factOf(t, rapid.SampledFrom(subjects).Draw(t, "subject"))
}

// foreignFact is about a subject that no generated action or link names.
func foreignFact(t *rapid.T) engine.Fact { return factOf(t, "unrelated") }

// offsets put facts on, beside and far from every bound.
var offsets = []int64{-31 * 86400, -86400, -601, -600, -599, -120, -60, -60, -1, -1, 0, 0, 0, 1, 1, 5, 5, 7, 59, 60, 60, 599, 600, 601, 3599, 3600, 4200, 86400, 40 * 86400}

func factOf(t *rapid.T, subject string) engine.Fact {
	f := engine.Fact{
		RawRef:     rapid.SampledFrom([]string{"", "", "", "", "", "re_1", "re_2", "RE_1", "r\u00e9", "\U0001f600", "z", "re_10"}).Draw(t, "raw_ref"),
		Source:     rapid.SampledFrom(sources).Draw(t, "source"),
		Type:       rapid.SampledFrom(types).Draw(t, "type"),
		SubjectID:  subject,
		OccurredAt: base + engine.Instant(rapid.SampledFrom(offsets).Draw(t, "offset")),
		Attributes: object(t, attrs, "attributes"),
	}
	normalized, err := f.Normalize()
	if err != nil {
		t.Fatalf("generated fact: %v", err)
	}
	return normalized
}

func link(t *rapid.T) engine.Link {
	return engine.Link{
		SubjectID:       rapid.SampledFrom(subjects).Draw(t, "from"),
		LinkedSubjectID: rapid.SampledFrom(subjects).Draw(t, "to"),
	}
}

func setting(t *rapid.T) ledger.ConnectionSetting {
	s := ledger.ConnectionSetting{
		Source: rapid.SampledFrom(sources).Draw(t, "source"),
		Name:   rapid.SampledFrom(connections).Draw(t, "connection"),
	}
	health := rapid.SampledFrom([]engine.Health{engine.NoHealth, engine.Healthy, engine.Syncing, engine.Failing}).Draw(t, "health")
	trust := rapid.SampledFrom([]engine.Trust{engine.SelfReported, engine.Shared, engine.Independent}).Draw(t, "trust")
	skew := engine.Duration(rapid.SampledFrom([]int64{0, 60, 120}).Draw(t, "skew"))
	s.ClockSkew = &skew
	if rapid.Bool().Draw(t, "overridden") {
		override := rapid.SampledFrom([]engine.Trust{engine.SelfReported, engine.Independent}).Draw(t, "override")
		s.Override = &override
	}
	if rapid.IntRange(0, 2).Draw(t, "of the operator alone") == 0 {
		return s
	}
	s.Health, s.Trust = &health, &trust
	if rapid.Bool().Draw(t, "has watermark") {
		watermark := base + engine.Instant(rapid.SampledFrom([]int64{-60, 600, 1200, 9000}).Draw(t, "watermark"))
		s.Watermark = &watermark
	}
	return s
}

func contractText(t *rapid.T, id string) string {
	action := map[string]any{
		"window":           rapid.SampledFrom([]string{"10m", "1h"}).Draw(t, "window"),
		"expected_effects": list(t, "expected", 1, 3, expectedEffect),
	}
	optional := func(key string, most int, entry func(*rapid.T) map[string]any) {
		if entries := list(t, key, 0, most, entry); len(entries) > 0 {
			action[key] = entries
		}
	}
	optional("preconditions", 2, precondition)
	optional("limits", 3, limit)
	optional("forbidden_effects", 3, forbiddenEffect)
	optional("aggregate_limits", 2, aggregateLimit)
	optional("reversed_by", 1, reversal)
	if rapid.Bool().Draw(t, "unverifiable") {
		action["unverifiable_if"] = tree(t, 2)
	}
	if rapid.IntRange(0, 3).Draw(t, "held") == 0 {
		action["settle"] = "at_close"
	}
	if rapid.IntRange(0, 3).Draw(t, "held fast") == 0 {
		action["updates"] = "until_settled" // says nothing of verdicts
	}
	document := map[string]any{
		"id": id, "version": 1, "kind": "action", "vendor": "internal", "vendor_display": "Random",
		"description":     "Made by a property test.",
		"source_citation": map[string]any{"url": "internal://random", "retrieved": "2026-09-28", "title": "Random"},
		"action":          action,
	}
	if rapid.IntRange(0, 4).Draw(t, "excluded") == 0 {
		document["exclusions"] = []any{tree(t, 2)}
	}
	text, err := yaml.Marshal(document)
	if err != nil {
		t.Fatalf("generated contract: %v", err)
	}
	return string(text)
}

func list(t *rapid.T, label string, least, most int, entry func(*rapid.T) map[string]any) []any {
	var entries []any
	for range rapid.IntRange(least, most).Draw(t, label) {
		entries = append(entries, entry(t))
	}
	return entries
}

func one(name string, argument any) map[string]any { return map[string]any{name: argument} }

// maybe sets a key in half of the cases.
func maybe(t *rapid.T, m map[string]any, key string, value func() any) {
	if rapid.Bool().Draw(t, "has "+key) {
		m[key] = value()
	}
}

func oneOf(t *rapid.T, label string, texts ...string) func() any {
	return func() any { return rapid.SampledFrom(texts).Draw(t, label) }
}

func where(t *rapid.T) map[string]any {
	pairs := map[string]any{}
	for range rapid.IntRange(1, 2).Draw(t, "pairs") {
		pairs[rapid.SampledFrom(attrs).Draw(t, "attr")] = rapid.SampledFrom(constants).Draw(t, "constant")
	}
	return pairs
}

// effect draws the arguments that all effects share.
func effect(t *rapid.T) map[string]any {
	e := map[string]any{"type": rapid.SampledFrom(types).Draw(t, "type")}
	maybe(t, e, "source", oneOf(t, "source", sources...))
	maybe(t, e, "within", oneOf(t, "within", "1m", "10m", "60m", "1d"))
	if rapid.IntRange(0, 2).Draw(t, "has where") == 0 {
		e["where"] = where(t)
	}
	if rapid.IntRange(0, 4).Draw(t, "has where_action") == 0 {
		fields := []string{"action_id", "agent_id", "workflow_id", "session_id", "reference_id", "param:amount", "param:who"}
		e["where_action"] = map[string]any{rapid.SampledFrom(attrs).Draw(t, "attr"): rapid.SampledFrom(fields).Draw(t, "field")}
	}
	return e
}

func with(m map[string]any, key string, value any) map[string]any {
	m[key] = value
	return m
}

func expectedEffect(t *rapid.T) map[string]any {
	e := effect(t)
	if rapid.IntRange(0, 2).Draw(t, "has min_trust") == 0 {
		e["min_trust"] = rapid.SampledFrom([]string{"self_reported", "shared", "independent"}).Draw(t, "min_trust")
	}
	return one("effect_observed", e)
}

func numberText(t *rapid.T) string {
	return rapid.SampledFrom([]string{"0", "180", "179.99", "250", "-5", "0.3", "1e100", "0.00000001"}).Draw(t, "number")
}

func attr(t *rapid.T) string { return rapid.SampledFrom(attrs).Draw(t, "attr") }

func param(t *rapid.T) string { return rapid.SampledFrom(params).Draw(t, "param") }

func forbiddenEffect(t *rapid.T) map[string]any {
	switch rapid.IntRange(0, 3).Draw(t, "forbidden") {
	case 0:
		return one("effect_observed", effect(t))
	case 1:
		return one("effect_count_exceeds", with(effect(t), "max", rapid.IntRange(0, 2).Draw(t, "max")))
	case 2:
		return one("effect_attr_exceeds", with(with(effect(t), "attr", attr(t)), "max", numberText(t)))
	}
	return one("effect_attr_differs", differs(t))
}

func differs(t *rapid.T) map[string]any {
	e := with(effect(t), "attr", attr(t))
	if rapid.Bool().Draw(t, "reference") {
		e["equals_param"] = param(t)
	} else {
		s := map[string]any{"type": rapid.SampledFrom(types).Draw(t, "type"), "attr": attr(t)}
		maybe(t, s, "source", oneOf(t, "source", sources...))
		maybe(t, s, "lookback", oneOf(t, "lookback", "1m", "10m", "30d"))
		e["equals_state"] = s
	}
	switch rapid.IntRange(0, 2).Draw(t, "shift") {
	case 0:
		e["plus_param"] = param(t)
	case 1:
		e["minus_param"] = param(t)
	}
	maybe(t, e, "tolerance", oneOf(t, "tolerance", "0", "0.005", "1", "1e100"))
	return e
}

func precondition(t *rapid.T) map[string]any {
	return one(rapid.SampledFrom([]string{"state_before_action", "precondition_unmet"}).Draw(t, "spelling"), state(t))
}

func state(t *rapid.T) map[string]any {
	s := map[string]any{"type": rapid.SampledFrom(types).Draw(t, "type"), "where": where(t)}
	maybe(t, s, "source", oneOf(t, "source", sources...))
	maybe(t, s, "lookback", oneOf(t, "lookback", "1m", "10m", "30d"))
	return s
}

func limit(t *rapid.T) map[string]any {
	if rapid.Bool().Draw(t, "limit") {
		return one(rapid.SampledFrom([]string{"param_max", "param_exceeds"}).Draw(t, "spelling"), map[string]any{"param": param(t), "max": numberText(t)})
	}
	values := rapid.SliceOfN(rapid.SampledFrom(constants), 1, 4).Draw(t, "values")
	return one(rapid.SampledFrom([]string{"param_in", "param_not_in"}).Draw(t, "spelling"), map[string]any{"param": param(t), "values": values})
}

func aggregateLimit(t *rapid.T) map[string]any {
	e := with(with(effect(t), "max", numberText(t)), "over", rapid.SampledFrom([]string{"1m", "10m", "1h", "24h"}).Draw(t, "over"))
	maybe(t, e, "attr", oneOf(t, "attr", attrs...))
	maybe(t, e, "by", oneOf(t, "by", "agent", "subject", "contract"))
	return one("aggregate_exceeds", e)
}

func reversal(t *rapid.T) map[string]any {
	return one(rapid.SampledFrom([]string{"effect_observed", "reversal_observed"}).Draw(t, "spelling"), effect(t))
}

// tree draws a condition tree over all primitives.
func tree(t *rapid.T, depth int) map[string]any {
	if depth == 0 || rapid.IntRange(0, 2).Draw(t, "leaf") == 0 {
		return leaf(t)
	}
	switch rapid.IntRange(0, 2).Draw(t, "operator") {
	case 0:
		return one("not", tree(t, depth-1))
	case 1:
		return one("all", branches(t, depth))
	}
	return one("any", branches(t, depth))
}

func branches(t *rapid.T, depth int) []any {
	return list(t, "branches", 1, 3, func(t *rapid.T) map[string]any { return tree(t, depth-1) })
}

func leaf(t *rapid.T) map[string]any {
	switch rapid.IntRange(0, 6).Draw(t, "primitive") {
	case 0:
		return one("missing_fact_source", rapid.SliceOfNDistinct(rapid.SampledFrom(sources), 1, 2, rapid.ID[string]).Draw(t, "sources"))
	case 1:
		return one("state_before_action", state(t))
	case 2:
		return one("effect_observed", effect(t))
	case 3:
		return limit(t)
	case 4:
		return aggregateLimit(t)
	case 5:
		return one("reversal_observed", effect(t))
	}
	return forbiddenEffect(t)
}
