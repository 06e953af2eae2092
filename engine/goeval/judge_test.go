package goeval_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
)

// row is one situation: what a contract's blocks say, what happened, what must come out.
type row struct {
	name string
	// blocks stand under action:, envelope beside it; both YAML.
	blocks, envelope string
	params           string // JSON; "" is not captured
	agent            string
	// facts are "source.type@seconds subject {attributes}"; a seconds of +7 is 7 after the request.
	facts   []string
	peers   []string // "action@seconds subject agent"
	links   map[string][]string
	sources map[string]engine.Source
	// want is the verdict and reasons of outcome and policy.
	outcome, policy string
	// findings are "evidence value" of the calls, where they matter.
	findings map[int]string
}

const expectRefund = "expected_effects: [{effect_observed: {source: stripe, type: refund_created}}]"

// TestSpecification_Primitives holds what AC says of every primitive and what
// the decisions add, judged by the Go evaluator. That SQL says the same is
// TestD23_EvaluatorsAgree.
func TestSpecification_Primitives(t *testing.T) {
	t.Parallel()
	for _, r := range slices.Concat(effectRows, forbiddenRows, stateRows, paramRows, aggregateRows, reversalRows, orderRows) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			e := r.judge(t)
			if got := line(e.Outcome); got != r.outcome {
				t.Errorf("outcome is %q, want %q", got, r.outcome)
			}
			if got := line(e.Policy); got != r.policy {
				t.Errorf("policy is %q, want %q", got, r.policy)
			}
			for i, want := range r.findings {
				f := e.Findings[i]
				got := strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Evidence, f.Value.Expected, f.Value.Observed))
				if diff := cmp.Diff(want, strings.Join(strings.Fields(got), " ")); diff != "" {
					t.Errorf("finding %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

func line(v engine.Verdict) string { return v.Raw.Label() + " " + strings.Join(v.Reasons, ",") }

const (
	passRefund = "PASS effect_observed:stripe.refund_created"
	failRefund = "FAIL verified_condition_not_met,expected_effect_missing:stripe.refund_created"
)

var effectRows = []row{
	{name: "AC_WindowIsInclusiveAtItsStart", blocks: expectRefund, facts: []string{"stripe.refund_created@0"}, outcome: passRefund, policy: passRefund},
	{name: "AC_WindowIsInclusiveAtItsEnd", blocks: expectRefund, facts: []string{"stripe.refund_created@600"}, outcome: passRefund, policy: passRefund},
	{name: "AC_AfterTheWindow", blocks: expectRefund, facts: []string{"stripe.refund_created@601"}, outcome: failRefund, policy: failRefund},
	{name: "AC_BeforeTheRequest", blocks: expectRefund, facts: []string{"stripe.refund_created@-1"}, outcome: failRefund, policy: failRefund},
	{name: "AC_OwnWithin", blocks: "expected_effects: [{effect_observed: {source: stripe, type: refund_created, within: 1h}}]", facts: []string{"stripe.refund_created@3600"}, outcome: passRefund, policy: passRefund},
	{name: "AC_Shorthand", blocks: "expected_effects: [{effect_observed: refund_created}]", facts: []string{"paypal.refund_created@1"}, outcome: "PASS effect_observed:refund_created", policy: "PASS effect_observed:refund_created"},
	{name: "AC_OtherSource", blocks: expectRefund, facts: []string{"paypal.refund_created@1"}, outcome: "UNKNOWN no_structured_signal", policy: "UNKNOWN no_structured_signal"},
	{name: "AC_EveryWherePair", blocks: "expected_effects: [{effect_observed: {type: r, where: {status: succeeded, amount: '180'}}}]", facts: []string{`s.r@1 {"status":"succeeded","amount":"179"}`, `s.r@2 {"status":"SUCCEEDED","amount":180.00}`}, outcome: "PASS effect_observed:r", policy: "PASS effect_observed:r", findings: map[int]string{0: "s.r@2"}},
	{name: "D04_KelvinSignIsNoK", blocks: "expected_effects: [{effect_observed: {type: r, where: {unit: k}}}]", facts: []string{"s.r@1 {\"unit\":\"\u212a\"}"}, outcome: "FAIL verified_condition_not_met,expected_effect_missing:r", policy: "FAIL verified_condition_not_met,expected_effect_missing:r"},
	{name: "D04_BooleansAreWords", blocks: "expected_effects: [{effect_observed: {type: r, where: {done: 'true'}}}]", facts: []string{`s.r@1 {"done":true}`}, outcome: "PASS effect_observed:r", policy: "PASS effect_observed:r"},
	{name: "D04_NullEqualsNothing", blocks: "expected_effects: [{effect_observed: {type: r, where: {done: 'null'}}}]", facts: []string{`s.r@1 {"done":null}`}, outcome: "FAIL verified_condition_not_met,expected_effect_missing:r", policy: "FAIL verified_condition_not_met,expected_effect_missing:r"},
	{name: "D05_EarliestIsByteOrdered", blocks: "expected_effects: [{effect_observed: r}]", facts: []string{"z.r@5", "b.r@5", "a.r@6", "B.r@5"}, outcome: "PASS effect_observed:r", policy: "PASS effect_observed:r", findings: map[int]string{0: "B.r@5"}},
	{name: "D07_LinkedSubjectCounts", blocks: expectRefund, links: map[string][]string{"order": {"ticket"}}, facts: []string{"stripe.refund_created@1 ticket"}, outcome: passRefund, policy: passRefund},
	{name: "D07_LinksAreOneHop", blocks: expectRefund, links: map[string][]string{"order": {"ticket"}, "ticket": {"order", "case"}}, facts: []string{"stripe.refund_created@1 case"}, outcome: "UNKNOWN identity_unmatched", policy: "UNKNOWN identity_unmatched"},
	{name: "D10_BelowTrust", blocks: "expected_effects: [{effect_observed: {source: stripe, type: refund_created, min_trust: independent}}]", sources: map[string]engine.Source{"stripe": {Trust: engine.Shared}}, facts: []string{"stripe.refund_created@1"},
		outcome: "FAIL verified_condition_not_met,effect_below_trust:stripe.refund_created", policy: "FAIL verified_condition_not_met,effect_below_trust:stripe.refund_created", findings: map[int]string{0: "stripe.refund_created@1"}},
	{name: "D10_TrustedFactIsTheEvidence", blocks: "expected_effects: [{effect_observed: {type: r, min_trust: shared}}]", sources: map[string]engine.Source{"a": {Trust: engine.SelfReported}, "b": {Trust: engine.Shared}}, facts: []string{"a.r@1", "b.r@2"}, outcome: "PASS effect_observed:r", policy: "PASS effect_observed:r", findings: map[int]string{0: "b.r@2"}},
	{name: "D29_ClockSkew", blocks: expectRefund, sources: map[string]engine.Source{"stripe": {ClockSkew: 60}}, facts: []string{"stripe.refund_created@-60"}, outcome: passRefund, policy: passRefund},
	{name: "D29_BeyondClockSkew", blocks: expectRefund, sources: map[string]engine.Source{"stripe": {ClockSkew: 60}}, facts: []string{"stripe.refund_created@-61"}, outcome: failRefund, policy: failRefund},
	{name: "D30_SomebodyElsesRefund", blocks: "expected_effects: [{effect_observed: {source: stripe, type: refund_created, where_action: {request: action_id}}}]", facts: []string{`stripe.refund_created@1 {"request":"act-2"}`}, outcome: failRefund, policy: failRefund},
	{name: "D30_OwnRefund", blocks: "expected_effects: [{effect_observed: {source: stripe, type: refund_created, where_action: {request: action_id, amount: 'param:amount'}}}]", params: `{"amount":180}`, facts: []string{`stripe.refund_created@1 {"request":"ACT-1","amount":"180.0"}`}, outcome: passRefund, policy: passRefund},
	{name: "D30_FieldNotSentEqualsNothing", blocks: "expected_effects: [{effect_observed: {source: stripe, type: refund_created, where_action: {by: workflow_id}}}]", facts: []string{`stripe.refund_created@1 {"by":""}`}, outcome: failRefund, policy: failRefund},
}

var forbiddenRows = []row{
	{name: "AC_DuplicateEffect", blocks: expectRefund + "\nforbidden_effects: [{effect_count_exceeds: {source: stripe, type: refund_created}}]", facts: []string{"stripe.refund_created@1", "stripe.refund_created@9", "stripe.refund_created@5"}, outcome: passRefund, policy: "FAIL duplicate_effect:stripe.refund_created", findings: map[int]string{0: "stripe.refund_created@5 3"}},
	{name: "AC_OneIsNoDuplicate", blocks: expectRefund + "\nforbidden_effects: [{effect_count_exceeds: {source: stripe, type: refund_created, max: 1}}]", facts: []string{"stripe.refund_created@1"}, outcome: passRefund, policy: passRefund},
	{name: "AC_MaxZero", blocks: expectRefund + "\nforbidden_effects: [{effect_count_exceeds: {type: chargeback, max: 0}}]", facts: []string{"stripe.refund_created@1", "s.chargeback@2"}, outcome: passRefund, policy: "FAIL duplicate_effect:chargeback", findings: map[int]string{0: "s.chargeback@2 1"}},
	{name: "AC_ValueAboveCeiling", blocks: expectRefund + "\nforbidden_effects: [{effect_attr_exceeds: {source: stripe, type: refund_created, attr: amount, max: 250}}]", facts: []string{`stripe.refund_created@1 {"amount":"250"}`, `stripe.refund_created@2 {"amount":250.01}`}, outcome: passRefund, policy: "FAIL forbidden_effect_observed:stripe.refund_created", findings: map[int]string{0: "stripe.refund_created@2 250.01"}},
	{name: "D03_NoNumberViolatesNothing", blocks: expectRefund + "\nforbidden_effects: [{effect_attr_exceeds: {source: stripe, type: refund_created, attr: amount, max: 250}}]", facts: []string{`stripe.refund_created@1 {"amount":"1,000"}`, `stripe.refund_created@2 {"amount":true}`, `stripe.refund_created@3 {}`}, outcome: passRefund, policy: passRefund},
	{name: "AC_ForbiddenEffectObserved", blocks: expectRefund + "\nforbidden_effects: [{effect_observed: {source: shopify, type: order_deleted}}]", facts: []string{"stripe.refund_created@1", "shopify.order_deleted@2"}, outcome: passRefund, policy: "FAIL effect_observed:shopify.order_deleted"},
	{name: "AC_DiffersFromParam", blocks: expectRefund + "\nforbidden_effects: [{effect_attr_differs: {source: stripe, type: refund_created, attr: amount, equals_param: amount}}]", params: `{"amount":180}`, facts: []string{`stripe.refund_created@1 {"amount":180.01}`}, outcome: passRefund, policy: "FAIL effect_attr_mismatch:stripe.refund_created.amount", findings: map[int]string{0: "stripe.refund_created@1 180 180.01"}},
	{name: "AC_WithinTolerance", blocks: expectRefund + "\nforbidden_effects: [{effect_attr_differs: {source: stripe, type: refund_created, attr: amount, equals_param: amount, tolerance: 0.01}}]", params: `{"amount":180}`, facts: []string{`stripe.refund_created@1 {"amount":180.01}`}, outcome: passRefund, policy: passRefund},
	{name: "AC_NoReferenceNoViolation", blocks: expectRefund + "\nforbidden_effects: [{effect_attr_differs: {source: stripe, type: refund_created, attr: amount, equals_param: amount}}]", facts: []string{`stripe.refund_created@1 {"amount":180.01}`}, outcome: passRefund, policy: passRefund},
	{name: "AC_DiffersFromStateMinusParam", blocks: expectRefund + "\nforbidden_effects: [{effect_attr_differs: {source: bank, type: balance, attr: b, equals_state: {source: bank, type: balance, attr: b}, minus_param: amount}}]", params: `{"amount":0.1}`,
		facts: []string{"stripe.refund_created@1", `bank.balance@-20 {"b":9}`, `bank.balance@-10 {"b":0.3}`, `bank.balance@5 {"b":0.2}`, `bank.balance@6 {"b":0.21}`}, outcome: passRefund, policy: "FAIL effect_attr_mismatch:bank.balance.b", findings: map[int]string{0: "bank.balance@6 0.2 0.21"}},
	{name: "D02_PointOnePlusPointTwo", blocks: expectRefund + "\nforbidden_effects: [{effect_attr_differs: {source: bank, type: balance, attr: b, equals_param: start, plus_param: amount}}]", params: `{"start":0.1,"amount":0.2}`, facts: []string{"stripe.refund_created@1", `bank.balance@5 {"b":0.3}`}, outcome: passRefund, policy: passRefund},
}

const eligible = "preconditions: [{state_before_action: {source: shopify, type: order_status, where: {status: eligible}}}]\n" + expectRefund

var stateRows = []row{
	{name: "AC_StateAtTheRequestIsBefore", blocks: eligible, facts: []string{`shopify.order_status@0 {"status":"Eligible"}`, "stripe.refund_created@1"}, outcome: passRefund, policy: passRefund},
	{name: "AC_StateAfterDoesNotCount", blocks: eligible, facts: []string{`shopify.order_status@1 {"status":"eligible"}`, "stripe.refund_created@1"}, outcome: passRefund, policy: "FAIL precondition_unmet:shopify.order_status", findings: map[int]string{0: ""}},
	{name: "AC_LatestStateDecides", blocks: eligible, facts: []string{`shopify.order_status@-9 {"status":"eligible"}`, `shopify.order_status@-3 {"status":"fulfilled"}`, "stripe.refund_created@1"}, outcome: passRefund, policy: "FAIL precondition_unmet:shopify.order_status", findings: map[int]string{0: "shopify.order_status@-3"}},
	{name: "AC_LookbackIsBounded", blocks: eligible, facts: []string{`shopify.order_status@-2592001 {"status":"eligible"}`, "stripe.refund_created@1"}, outcome: passRefund, policy: "FAIL precondition_unmet:shopify.order_status"},
	{name: "AC_LookbackIsInclusive", blocks: eligible, facts: []string{`shopify.order_status@-2592000 {"status":"eligible"}`, "stripe.refund_created@1"}, outcome: passRefund, policy: passRefund},
}

var paramRows = []row{
	{name: "AC_LimitExceeded", blocks: "limits: [{param_max: {param: amount, max: 250}}]\n" + expectRefund, params: `{"amount":"250.01"}`, facts: []string{"stripe.refund_created@1"}, outcome: passRefund, policy: "FAIL limit_exceeded:amount", findings: map[int]string{0: "agent_api:action:act-1 250.01"}},
	{name: "AC_LimitMet", blocks: "limits: [{param_exceeds: {param: amount, max: 250}}]\n" + expectRefund, params: `{"amount":250.00}`, facts: []string{"stripe.refund_created@1"}, outcome: passRefund, policy: passRefund, findings: map[int]string{0: "agent_api:action:act-1 250"}},
	{name: "D03_MissingParamReadsAsZero", blocks: "limits: [{param_max: {param: amount, max: 0}}]\n" + expectRefund, facts: []string{"stripe.refund_created@1"}, outcome: passRefund, policy: passRefund},
	{name: "D03_MissingParamIsAboveANegativeMax", blocks: "limits: [{param_max: {param: amount, max: -1}}]\n" + expectRefund, params: `{"amount":"x"}`, facts: []string{"stripe.refund_created@1"}, outcome: passRefund, policy: "FAIL limit_exceeded:amount"},
	{name: "AC_ParamNotAllowed", blocks: "limits: [{param_in: {param: reason, values: [damaged, not_delivered]}}]\n" + expectRefund, params: `{"reason":"bored"}`, facts: []string{"stripe.refund_created@1"}, outcome: passRefund, policy: "FAIL param_not_allowed:reason", findings: map[int]string{0: "agent_api:action:act-1 bored"}},
	{name: "AC_ParamAllowedInAnyCase", blocks: "limits: [{param_in: {param: reason, values: [damaged, not_delivered]}}]\n" + expectRefund, params: `{"reason":"DAMAGED"}`, facts: []string{"stripe.refund_created@1"}, outcome: passRefund, policy: passRefund},
	{name: "AC_MissingParamIsAllowed", blocks: "limits: [{param_in: {param: reason, values: [damaged]}}]\n" + expectRefund, params: `{"reason":null}`, facts: []string{"stripe.refund_created@1"}, outcome: passRefund, policy: passRefund},
	{name: "D33_NotCapturedIsMissing", blocks: "limits: [{param_in: {param: reason, values: [damaged]}}, {param_max: {param: amount, max: 1}}]\n" + expectRefund, facts: []string{"stripe.refund_created@1"}, outcome: passRefund, policy: passRefund},
}

const daily = "aggregate_limits: [{aggregate_exceeds: {source: stripe, type: refund_created, attr: amount, max: 100, over: 1h%s}}]\n" + expectRefund

var aggregateRows = []row{
	{name: "D17_TotalByAgent", blocks: fmt.Sprintf(daily, ""), agent: "bot", peers: []string{"act-0@-60 order-0 bot", "act-x@-60 order-x other"}, facts: []string{`stripe.refund_created@-50 order-0 {"amount":60}`, `stripe.refund_created@-50 order-x {"amount":99}`, `stripe.refund_created@1 {"amount":40.01}`}, outcome: passRefund, policy: "FAIL aggregate_exceeded:stripe.refund_created.amount", findings: map[int]string{0: "stripe.refund_created@1 100.01"}},
	{name: "D17_VendorStandsForNoAgent", blocks: fmt.Sprintf(daily, ""), peers: []string{"act-0@-60 order-0 internal"}, facts: []string{`stripe.refund_created@-50 order-0 {"amount":60}`, `stripe.refund_created@1 {"amount":40.01}`}, outcome: passRefund, policy: "FAIL aggregate_exceeded:stripe.refund_created.amount"},
	{name: "D17_EachFactOnce", blocks: fmt.Sprintf(daily, ""), peers: []string{"act-0@-60 order "}, facts: []string{`stripe.refund_created@1 {"amount":60}`}, outcome: passRefund, policy: passRefund, findings: map[int]string{0: "stripe.refund_created@1 60"}},
	{name: "D17_IntervalExcludesItsStart", blocks: fmt.Sprintf(daily, ", by: contract"), peers: []string{"act-0@-3600 order-0 "}, facts: []string{`stripe.refund_created@-3000 order-0 {"amount":99}`, `stripe.refund_created@1 {"amount":40}`}, outcome: passRefund, policy: passRefund, findings: map[int]string{0: "stripe.refund_created@1 40"}},
	{name: "D17_CountBySubject", blocks: "aggregate_limits: [{aggregate_max: {type: refund_created, max: 1, over: 1d, by: subject}}]\n" + expectRefund, peers: []string{"act-0@-600 order bot"}, facts: []string{"stripe.refund_created@-500", "stripe.refund_created@1"}, outcome: passRefund, policy: "FAIL aggregate_exceeded:refund_created", findings: map[int]string{0: "stripe.refund_created@1 2"}},
	{name: "D03_AggregateSkipsNoNumbers", blocks: fmt.Sprintf(daily, ""), facts: []string{`stripe.refund_created@1 {"amount":"many"}`}, outcome: passRefund, policy: passRefund, findings: map[int]string{0: "0"}},
}

const returned = "reversed_by: [{effect_observed: {source: stripe, type: refund_failed}}]\n" + expectRefund

var reversalRows = []row{
	{name: "AC_ReversalFailsBothLenses", blocks: returned, facts: []string{"stripe.refund_created@1", "stripe.refund_failed@2592000"}, outcome: "FAIL reversed:stripe.refund_failed", policy: "FAIL reversed:stripe.refund_failed"},
	{name: "AC_ReversalTooLate", blocks: returned, facts: []string{"stripe.refund_created@1", "stripe.refund_failed@2592001"}, outcome: passRefund, policy: passRefund},
}

const needsStripe = "unverifiable_if: {missing_fact_source: [stripe, shopify]}\n" + expectRefund

var present = map[string]engine.Source{"stripe": {Present: true}, "shopify": {Present: true}}

var orderRows = []row{
	{name: "AC_Step1_ExclusionComesFirst", blocks: expectRefund, envelope: "exclusions: [{all: [{param_in: {param: test, values: [no]}}]}]\n", params: `{"test":"yes"}`, outcome: "FAIL excluded_by_contract,param_not_allowed:test", policy: "FAIL excluded_by_contract,param_not_allowed:test"},
	{name: "AC_Step2_IdentityBeforeMissingSource", blocks: needsStripe, outcome: "UNKNOWN identity_unmatched", policy: "UNKNOWN identity_unmatched"},
	{name: "AC_Step3_MissingSource", blocks: needsStripe, sources: map[string]engine.Source{"stripe": {Present: true}}, facts: []string{"stripe.refund_created@1"}, outcome: "UNKNOWN missing_fact_source", policy: "UNKNOWN missing_fact_source"},
	{name: "AC_Step4_ViolationBeforeExpectedEffects", blocks: "limits: [{param_max: {param: amount, max: 1}}]\n" + needsStripe, sources: present, params: `{"amount":2}`, facts: []string{"crm.note@1"}, outcome: "UNKNOWN no_structured_signal", policy: "FAIL limit_exceeded:amount"},
	{name: "D09_EverIsAllTime", blocks: needsStripe, sources: present, facts: []string{"stripe.refund_created@-99999999"}, outcome: failRefund, policy: failRefund},
	{name: "D19_StateInATree", blocks: "unverifiable_if: {all: [{state_before_action: {type: freeze, where: {on: 'true'}}}, {not: {effect_observed: thaw}}]}\n" + expectRefund, facts: []string{`ops.freeze@-5 {"on":true}`}, outcome: "UNKNOWN precondition_met:freeze,expected_effect_missing:thaw", policy: "UNKNOWN precondition_met:freeze,expected_effect_missing:thaw"},
}

func (r row) judge(t *testing.T) engine.Evaluation {
	t.Helper()
	c := r.contract(t)
	s := &engine.Snapshot{Tenant: "t", Links: r.links, Sources: r.sources, Facts: map[string][]engine.Fact{}}
	s.Actions = []engine.Action{{ActionID: "act-1", SubjectID: "order", RequestedAt: requested, AgentID: r.agent}}
	if r.params != "" {
		s.Actions[0].Params = parseObject(t, r.params)
	}
	s.Peers = append(s.Peers, s.Actions[0])
	for _, text := range r.peers {
		s.Peers = append(s.Peers, parsePeer(t, text))
	}
	for _, text := range r.facts {
		f := parseFact(t, text)
		s.Facts[f.SubjectID] = append(s.Facts[f.SubjectID], f)
	}
	for _, facts := range s.Facts {
		slices.SortFunc(facts, engine.CompareFacts)
	}
	return goeval.Evaluate(c, s)[0]
}

func (r row) contract(t *testing.T) *contract.Contract {
	t.Helper()
	text := "id: under_test\nversion: 1\nkind: action\nvendor: internal\nvendor_display: x\ndescription: x\nsource_citation: {url: 'internal://x', retrieved: '2026-09-28', title: x}\n" +
		r.envelope + "action:\n  window: 10m\n  " + strings.ReplaceAll(r.blocks, "\n", "\n  ") + "\n"
	c, diagnostics := contract.Parse("under_test.yaml", []byte(text))
	if len(diagnostics) > 0 {
		t.Fatalf("contract is refused: %v\n%s", diagnostics, text)
	}
	return c
}

// parseFact reads "source.type@seconds subject {attributes}"; its raw_ref is the text before the first space.
func parseFact(t *testing.T, text string) engine.Fact {
	t.Helper()
	head, rest, _ := strings.Cut(text, " ")
	f := engine.Fact{RawRef: head, SubjectID: "order"}
	if rest != "" && rest[0] != '{' {
		f.SubjectID, rest, _ = strings.Cut(rest, " ")
	}
	if rest != "" {
		f.Attributes = parseObject(t, rest)
	}
	name, seconds, _ := strings.Cut(head, "@")
	f.Source, f.Type, _ = strings.Cut(name, ".")
	f.OccurredAt = requested + parseSeconds(t, seconds)
	normalized, err := f.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	return normalized
}

func parsePeer(t *testing.T, text string) engine.Action {
	t.Helper()
	parts := strings.Split(text, " ")
	id, seconds, _ := strings.Cut(parts[0], "@")
	return engine.Action{ActionID: id, SubjectID: parts[1], AgentID: parts[2], RequestedAt: requested + parseSeconds(t, seconds)}
}

func parseSeconds(t *testing.T, text string) engine.Instant {
	t.Helper()
	var seconds engine.Instant
	if err := json.Unmarshal([]byte(text), (*int64)(&seconds)); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return seconds
}
