// Package speccases holds what the specification says of every primitive, and
// what the decisions add, as one table. engine/goeval is held to it in memory,
// internal/agreement holds both stores' SQL to it.
package speccases

import (
	"fmt"

	"github.com/countersign-otel/countersign/engine"
)

// Row is one situation: what a contract's blocks say, what happened, what must come out.
type Row struct {
	Name string
	// Blocks stand under action:, Envelope beside it; both YAML.
	Blocks, Envelope string
	Params           string // JSON; "" is not captured
	Agent            string
	// Facts are "source.type@seconds subject {attributes}"; a seconds of +7 is 7 after the request.
	Facts   []string
	Peers   []string // "action@seconds subject agent"
	Links   map[string][]string
	Sources map[string]engine.Source
	// Outcome and Policy are verdict and reasons of outcome and policy.
	Outcome, Policy string
	// Findings are "evidence value" of the calls, where they matter.
	Findings map[int]string
}

const expectRefund = "expected_effects: [{effect_observed: {source: stripe, type: refund_created}}]"

const (
	passRefund = "PASS effect_observed:stripe.refund_created"
	failRefund = "FAIL verified_condition_not_met,expected_effect_missing:stripe.refund_created"
)

var effectRows = []Row{
	{Name: "AC_WindowIsInclusiveAtItsStart", Blocks: expectRefund, Facts: []string{"stripe.refund_created@0"}, Outcome: passRefund, Policy: passRefund},
	{Name: "AC_WindowIsInclusiveAtItsEnd", Blocks: expectRefund, Facts: []string{"stripe.refund_created@600"}, Outcome: passRefund, Policy: passRefund},
	{Name: "AC_AfterTheWindow", Blocks: expectRefund, Facts: []string{"stripe.refund_created@601"}, Outcome: failRefund, Policy: failRefund},
	{Name: "AC_BeforeTheRequest", Blocks: expectRefund, Facts: []string{"stripe.refund_created@-1"}, Outcome: failRefund, Policy: failRefund},
	{Name: "AC_OwnWithin", Blocks: "expected_effects: [{effect_observed: {source: stripe, type: refund_created, within: 1h}}]", Facts: []string{"stripe.refund_created@3600"}, Outcome: passRefund, Policy: passRefund},
	{Name: "AC_Shorthand", Blocks: "expected_effects: [{effect_observed: refund_created}]", Facts: []string{"paypal.refund_created@1"}, Outcome: "PASS effect_observed:refund_created", Policy: "PASS effect_observed:refund_created"},
	{Name: "AC_OtherSource", Blocks: expectRefund, Facts: []string{"paypal.refund_created@1"}, Outcome: "UNKNOWN no_structured_signal", Policy: "UNKNOWN no_structured_signal"},
	{Name: "AC_EveryWherePair", Blocks: "expected_effects: [{effect_observed: {type: r, where: {status: succeeded, amount: '180'}}}]", Facts: []string{`s.r@1 {"status":"succeeded","amount":"179"}`, `s.r@2 {"status":"SUCCEEDED","amount":180.00}`}, Outcome: "PASS effect_observed:r", Policy: "PASS effect_observed:r", Findings: map[int]string{0: "s.r@2"}},
	{Name: "D04_KelvinSignIsNoK", Blocks: "expected_effects: [{effect_observed: {type: r, where: {unit: k}}}]", Facts: []string{"s.r@1 {\"unit\":\"\u212a\"}"}, Outcome: "FAIL verified_condition_not_met,expected_effect_missing:r", Policy: "FAIL verified_condition_not_met,expected_effect_missing:r"},
	{Name: "D04_BooleansAreWords", Blocks: "expected_effects: [{effect_observed: {type: r, where: {done: 'true'}}}]", Facts: []string{`s.r@1 {"done":true}`}, Outcome: "PASS effect_observed:r", Policy: "PASS effect_observed:r"},
	{Name: "D04_NullEqualsNothing", Blocks: "expected_effects: [{effect_observed: {type: r, where: {done: 'null'}}}]", Facts: []string{`s.r@1 {"done":null}`}, Outcome: "FAIL verified_condition_not_met,expected_effect_missing:r", Policy: "FAIL verified_condition_not_met,expected_effect_missing:r"},
	{Name: "D05_EarliestIsByteOrdered", Blocks: "expected_effects: [{effect_observed: r}]", Facts: []string{"z.r@5", "b.r@5", "a.r@6", "B.r@5"}, Outcome: "PASS effect_observed:r", Policy: "PASS effect_observed:r", Findings: map[int]string{0: "B.r@5"}},
	{Name: "D07_LinkedSubjectCounts", Blocks: expectRefund, Links: map[string][]string{"order": {"ticket"}}, Facts: []string{"stripe.refund_created@1 ticket"}, Outcome: passRefund, Policy: passRefund},
	{Name: "D07_LinksAreOneHop", Blocks: expectRefund, Links: map[string][]string{"order": {"ticket"}, "ticket": {"order", "case"}}, Facts: []string{"stripe.refund_created@1 case"}, Outcome: "UNKNOWN identity_unmatched", Policy: "UNKNOWN identity_unmatched"},
	{Name: "D10_BelowTrust", Blocks: "expected_effects: [{effect_observed: {source: stripe, type: refund_created, min_trust: independent}}]", Sources: map[string]engine.Source{"stripe": {Trust: engine.Shared}}, Facts: []string{"stripe.refund_created@1"},
		Outcome: "FAIL verified_condition_not_met,effect_below_trust:stripe.refund_created", Policy: "FAIL verified_condition_not_met,effect_below_trust:stripe.refund_created", Findings: map[int]string{0: "stripe.refund_created@1"}},
	{Name: "D10_TrustedFactIsTheEvidence", Blocks: "expected_effects: [{effect_observed: {type: r, min_trust: shared}}]", Sources: map[string]engine.Source{"a": {Trust: engine.SelfReported}, "b": {Trust: engine.Shared}}, Facts: []string{"a.r@1", "b.r@2"}, Outcome: "PASS effect_observed:r", Policy: "PASS effect_observed:r", Findings: map[int]string{0: "b.r@2"}},
	{Name: "D29_ClockSkew", Blocks: expectRefund, Sources: map[string]engine.Source{"stripe": {ClockSkew: 60}}, Facts: []string{"stripe.refund_created@-60"}, Outcome: passRefund, Policy: passRefund},
	{Name: "D29_BeyondClockSkew", Blocks: expectRefund, Sources: map[string]engine.Source{"stripe": {ClockSkew: 60}}, Facts: []string{"stripe.refund_created@-61"}, Outcome: failRefund, Policy: failRefund},
	{Name: "D30_SomebodyElsesRefund", Blocks: "expected_effects: [{effect_observed: {source: stripe, type: refund_created, where_action: {request: action_id}}}]", Facts: []string{`stripe.refund_created@1 {"request":"act-2"}`}, Outcome: failRefund, Policy: failRefund},
	{Name: "D30_OwnRefund", Blocks: "expected_effects: [{effect_observed: {source: stripe, type: refund_created, where_action: {request: action_id, amount: 'param:amount'}}}]", Params: `{"amount":180}`, Facts: []string{`stripe.refund_created@1 {"request":"ACT-1","amount":"180.0"}`}, Outcome: passRefund, Policy: passRefund},
	{Name: "D30_FieldNotSentEqualsNothing", Blocks: "expected_effects: [{effect_observed: {source: stripe, type: refund_created, where_action: {by: workflow_id}}}]", Facts: []string{`stripe.refund_created@1 {"by":""}`}, Outcome: failRefund, Policy: failRefund},
}

var forbiddenRows = []Row{
	{Name: "AC_DuplicateEffect", Blocks: expectRefund + "\nforbidden_effects: [{effect_count_exceeds: {source: stripe, type: refund_created}}]", Facts: []string{"stripe.refund_created@1", "stripe.refund_created@9", "stripe.refund_created@5"}, Outcome: passRefund, Policy: "FAIL duplicate_effect:stripe.refund_created", Findings: map[int]string{0: "stripe.refund_created@5 3"}},
	{Name: "AC_OneIsNoDuplicate", Blocks: expectRefund + "\nforbidden_effects: [{effect_count_exceeds: {source: stripe, type: refund_created, max: 1}}]", Facts: []string{"stripe.refund_created@1"}, Outcome: passRefund, Policy: passRefund},
	{Name: "AC_MaxZero", Blocks: expectRefund + "\nforbidden_effects: [{effect_count_exceeds: {type: chargeback, max: 0}}]", Facts: []string{"stripe.refund_created@1", "s.chargeback@2"}, Outcome: passRefund, Policy: "FAIL duplicate_effect:chargeback", Findings: map[int]string{0: "s.chargeback@2 1"}},
	{Name: "AC_ValueAboveCeiling", Blocks: expectRefund + "\nforbidden_effects: [{effect_attr_exceeds: {source: stripe, type: refund_created, attr: amount, max: 250}}]", Facts: []string{`stripe.refund_created@1 {"amount":"250"}`, `stripe.refund_created@2 {"amount":250.01}`}, Outcome: passRefund, Policy: "FAIL forbidden_effect_observed:stripe.refund_created", Findings: map[int]string{0: "stripe.refund_created@2 250.01"}},
	{Name: "AC_EarliestAboveCeilingIsTheEvidence", Blocks: expectRefund + "\nforbidden_effects: [{effect_attr_exceeds: {source: stripe, type: refund_created, attr: amount, max: 250}}]", Facts: []string{`stripe.refund_created@9 {"amount":900}`, `stripe.refund_created@2 {"amount":251}`, `stripe.refund_created@5 {"amount":300}`}, Outcome: passRefund, Policy: "FAIL forbidden_effect_observed:stripe.refund_created", Findings: map[int]string{0: "stripe.refund_created@2 251"}},
	{Name: "D03_NoNumberViolatesNothing", Blocks: expectRefund + "\nforbidden_effects: [{effect_attr_exceeds: {source: stripe, type: refund_created, attr: amount, max: 250}}]", Facts: []string{`stripe.refund_created@1 {"amount":"1,000"}`, `stripe.refund_created@2 {"amount":true}`, `stripe.refund_created@3 {}`}, Outcome: passRefund, Policy: passRefund},
	{Name: "AC_ForbiddenEffectObserved", Blocks: expectRefund + "\nforbidden_effects: [{effect_observed: {source: shopify, type: order_deleted}}]", Facts: []string{"stripe.refund_created@1", "shopify.order_deleted@2"}, Outcome: passRefund, Policy: "FAIL effect_observed:shopify.order_deleted"},
	{Name: "AC_DiffersFromParam", Blocks: expectRefund + "\nforbidden_effects: [{effect_attr_differs: {source: stripe, type: refund_created, attr: amount, equals_param: amount}}]", Params: `{"amount":180}`, Facts: []string{`stripe.refund_created@1 {"amount":180.01}`}, Outcome: passRefund, Policy: "FAIL effect_attr_mismatch:stripe.refund_created.amount", Findings: map[int]string{0: "stripe.refund_created@1 180 180.01"}},
	{Name: "AC_EarliestMismatchIsTheEvidence", Blocks: expectRefund + "\nforbidden_effects: [{effect_attr_differs: {source: stripe, type: refund_created, attr: amount, equals_param: amount}}]", Params: `{"amount":180}`, Facts: []string{`stripe.refund_created@9 {"amount":1}`, `stripe.refund_created@3 {"amount":180.00}`, `stripe.refund_created@5 {"amount":2}`}, Outcome: passRefund, Policy: "FAIL effect_attr_mismatch:stripe.refund_created.amount", Findings: map[int]string{0: "stripe.refund_created@5 180 2"}},
	{Name: "AC_WithinTolerance", Blocks: expectRefund + "\nforbidden_effects: [{effect_attr_differs: {source: stripe, type: refund_created, attr: amount, equals_param: amount, tolerance: 0.01}}]", Params: `{"amount":180}`, Facts: []string{`stripe.refund_created@1 {"amount":180.01}`}, Outcome: passRefund, Policy: passRefund},
	{Name: "AC_NoReferenceNoViolation", Blocks: expectRefund + "\nforbidden_effects: [{effect_attr_differs: {source: stripe, type: refund_created, attr: amount, equals_param: amount}}]", Facts: []string{`stripe.refund_created@1 {"amount":180.01}`}, Outcome: passRefund, Policy: passRefund},
	{Name: "AC_DiffersFromStateMinusParam", Blocks: expectRefund + "\nforbidden_effects: [{effect_attr_differs: {source: bank, type: balance, attr: b, equals_state: {source: bank, type: balance, attr: b}, minus_param: amount}}]", Params: `{"amount":0.1}`,
		Facts: []string{"stripe.refund_created@1", `bank.balance@-20 {"b":9}`, `bank.balance@-10 {"b":0.3}`, `bank.balance@5 {"b":0.2}`, `bank.balance@6 {"b":0.21}`}, Outcome: passRefund, Policy: "FAIL effect_attr_mismatch:bank.balance.b", Findings: map[int]string{0: "bank.balance@6 0.2 0.21"}},
	{Name: "D02_PointOnePlusPointTwo", Blocks: expectRefund + "\nforbidden_effects: [{effect_attr_differs: {source: bank, type: balance, attr: b, equals_param: start, plus_param: amount}}]", Params: `{"start":0.1,"amount":0.2}`, Facts: []string{"stripe.refund_created@1", `bank.balance@5 {"b":0.3}`}, Outcome: passRefund, Policy: passRefund},
}

const eligible = "preconditions: [{state_before_action: {source: shopify, type: order_status, where: {status: eligible}}}]\n" + expectRefund

var stateRows = []Row{
	{Name: "AC_StateAtTheRequestIsBefore", Blocks: eligible, Facts: []string{`shopify.order_status@0 {"status":"Eligible"}`, "stripe.refund_created@1"}, Outcome: passRefund, Policy: passRefund},
	{Name: "AC_StateAfterDoesNotCount", Blocks: eligible, Facts: []string{`shopify.order_status@1 {"status":"eligible"}`, "stripe.refund_created@1"}, Outcome: passRefund, Policy: "FAIL precondition_unmet:shopify.order_status", Findings: map[int]string{0: ""}},
	{Name: "AC_LatestStateDecides", Blocks: eligible, Facts: []string{`shopify.order_status@-9 {"status":"eligible"}`, `shopify.order_status@-3 {"status":"fulfilled"}`, "stripe.refund_created@1"}, Outcome: passRefund, Policy: "FAIL precondition_unmet:shopify.order_status", Findings: map[int]string{0: "shopify.order_status@-3"}},
	{Name: "AC_LookbackIsBounded", Blocks: eligible, Facts: []string{`shopify.order_status@-2592001 {"status":"eligible"}`, "stripe.refund_created@1"}, Outcome: passRefund, Policy: "FAIL precondition_unmet:shopify.order_status"},
	{Name: "AC_LookbackIsInclusive", Blocks: eligible, Facts: []string{`shopify.order_status@-2592000 {"status":"eligible"}`, "stripe.refund_created@1"}, Outcome: passRefund, Policy: passRefund},
}

var paramRows = []Row{
	{Name: "AC_LimitExceeded", Blocks: "limits: [{param_max: {param: amount, max: 250}}]\n" + expectRefund, Params: `{"amount":"250.01"}`, Facts: []string{"stripe.refund_created@1"}, Outcome: passRefund, Policy: "FAIL limit_exceeded:amount", Findings: map[int]string{0: "agent_api:action:act-1 250.01"}},
	{Name: "AC_LimitMet", Blocks: "limits: [{param_exceeds: {param: amount, max: 250}}]\n" + expectRefund, Params: `{"amount":250.00}`, Facts: []string{"stripe.refund_created@1"}, Outcome: passRefund, Policy: passRefund, Findings: map[int]string{0: "agent_api:action:act-1 250"}},
	{Name: "D03_MissingParamReadsAsZero", Blocks: "limits: [{param_max: {param: amount, max: 0}}]\n" + expectRefund, Facts: []string{"stripe.refund_created@1"}, Outcome: passRefund, Policy: passRefund},
	{Name: "D03_MissingParamIsAboveANegativeMax", Blocks: "limits: [{param_max: {param: amount, max: -1}}]\n" + expectRefund, Params: `{"amount":"x"}`, Facts: []string{"stripe.refund_created@1"}, Outcome: passRefund, Policy: "FAIL limit_exceeded:amount"},
	{Name: "AC_ParamNotAllowed", Blocks: "limits: [{param_in: {param: reason, values: [damaged, not_delivered]}}]\n" + expectRefund, Params: `{"reason":"bored"}`, Facts: []string{"stripe.refund_created@1"}, Outcome: passRefund, Policy: "FAIL param_not_allowed:reason", Findings: map[int]string{0: "agent_api:action:act-1 bored"}},
	{Name: "AC_ParamAllowedInAnyCase", Blocks: "limits: [{param_in: {param: reason, values: [damaged, not_delivered]}}]\n" + expectRefund, Params: `{"reason":"DAMAGED"}`, Facts: []string{"stripe.refund_created@1"}, Outcome: passRefund, Policy: passRefund},
	{Name: "AC_MissingParamIsAllowed", Blocks: "limits: [{param_in: {param: reason, values: [damaged]}}]\n" + expectRefund, Params: `{"reason":null}`, Facts: []string{"stripe.refund_created@1"}, Outcome: passRefund, Policy: passRefund},
	{Name: "D33_NotCapturedIsMissing", Blocks: "limits: [{param_in: {param: reason, values: [damaged]}}, {param_max: {param: amount, max: 1}}]\n" + expectRefund, Facts: []string{"stripe.refund_created@1"}, Outcome: passRefund, Policy: passRefund},
}

const daily = "aggregate_limits: [{aggregate_exceeds: {source: stripe, type: refund_created, attr: amount, max: 100, over: 1h%s}}]\n" + expectRefund

var aggregateRows = []Row{
	{Name: "D17_TotalByAgent", Blocks: fmt.Sprintf(daily, ""), Agent: "bot", Peers: []string{"act-0@-60 order-0 bot", "act-x@-60 order-x other"}, Facts: []string{`stripe.refund_created@-50 order-0 {"amount":60}`, `stripe.refund_created@-50 order-x {"amount":99}`, `stripe.refund_created@1 {"amount":40.01}`}, Outcome: passRefund, Policy: "FAIL aggregate_exceeded:stripe.refund_created.amount", Findings: map[int]string{0: "stripe.refund_created@1 100.01"}},
	{Name: "D17_VendorStandsForNoAgent", Blocks: fmt.Sprintf(daily, ""), Peers: []string{"act-0@-60 order-0 internal"}, Facts: []string{`stripe.refund_created@-50 order-0 {"amount":60}`, `stripe.refund_created@1 {"amount":40.01}`}, Outcome: passRefund, Policy: "FAIL aggregate_exceeded:stripe.refund_created.amount"},
	{Name: "D17_EachFactOnce", Blocks: fmt.Sprintf(daily, ""), Peers: []string{"act-0@-60 order "}, Facts: []string{`stripe.refund_created@1 {"amount":60}`}, Outcome: passRefund, Policy: passRefund, Findings: map[int]string{0: "stripe.refund_created@1 60"}},
	{Name: "D17_IntervalExcludesItsStart", Blocks: fmt.Sprintf(daily, ", by: contract"), Peers: []string{"act-0@-3600 order-0 "}, Facts: []string{`stripe.refund_created@-3000 order-0 {"amount":99}`, `stripe.refund_created@1 {"amount":40}`}, Outcome: passRefund, Policy: passRefund, Findings: map[int]string{0: "stripe.refund_created@1 40"}},
	{Name: "D17_CountBySubject", Blocks: "aggregate_limits: [{aggregate_max: {type: refund_created, max: 1, over: 1d, by: subject}}]\n" + expectRefund, Peers: []string{"act-0@-600 order bot"}, Facts: []string{"stripe.refund_created@-500", "stripe.refund_created@1"}, Outcome: passRefund, Policy: "FAIL aggregate_exceeded:refund_created", Findings: map[int]string{0: "stripe.refund_created@1 2"}},
	{Name: "D03_AggregateSkipsNoNumbers", Blocks: fmt.Sprintf(daily, ""), Facts: []string{`stripe.refund_created@1 {"amount":"many"}`}, Outcome: passRefund, Policy: passRefund, Findings: map[int]string{0: "0"}},
}

const returned = "reversed_by: [{effect_observed: {source: stripe, type: refund_failed}}]\n" + expectRefund

var reversalRows = []Row{
	{Name: "AC_ReversalFailsBothLenses", Blocks: returned, Facts: []string{"stripe.refund_created@1", "stripe.refund_failed@2592000"}, Outcome: "FAIL reversed:stripe.refund_failed", Policy: "FAIL reversed:stripe.refund_failed"},
	{Name: "AC_ReversalTooLate", Blocks: returned, Facts: []string{"stripe.refund_created@1", "stripe.refund_failed@2592001"}, Outcome: passRefund, Policy: passRefund},
}

const needsStripe = "unverifiable_if: {missing_fact_source: [stripe, shopify]}\n" + expectRefund

var present = map[string]engine.Source{"stripe": {Present: true}, "shopify": {Present: true}}

var orderRows = []Row{
	{Name: "AC_Step1_ExclusionComesFirst", Blocks: expectRefund, Envelope: "exclusions: [{all: [{param_in: {param: test, values: [no]}}]}]\n", Params: `{"test":"yes"}`, Outcome: "FAIL excluded_by_contract,param_not_allowed:test", Policy: "FAIL excluded_by_contract,param_not_allowed:test"},
	{Name: "AC_Step2_IdentityBeforeMissingSource", Blocks: needsStripe, Outcome: "UNKNOWN identity_unmatched", Policy: "UNKNOWN identity_unmatched"},
	{Name: "AC_Step3_MissingSource", Blocks: needsStripe, Sources: map[string]engine.Source{"stripe": {Present: true}}, Facts: []string{"stripe.refund_created@1"}, Outcome: "UNKNOWN missing_fact_source", Policy: "UNKNOWN missing_fact_source"},
	{Name: "AC_Step4_ViolationBeforeExpectedEffects", Blocks: "limits: [{param_max: {param: amount, max: 1}}]\n" + needsStripe, Sources: present, Params: `{"amount":2}`, Facts: []string{"crm.note@1"}, Outcome: "UNKNOWN no_structured_signal", Policy: "FAIL limit_exceeded:amount"},
	{Name: "D09_EverIsAllTime", Blocks: needsStripe, Sources: present, Facts: []string{"stripe.refund_created@-99999999"}, Outcome: failRefund, Policy: failRefund},
	{Name: "D19_StateInATree", Blocks: "unverifiable_if: {all: [{state_before_action: {type: freeze, where: {on: 'true'}}}, {not: {effect_observed: thaw}}]}\n" + expectRefund, Facts: []string{`ops.freeze@-5 {"on":true}`}, Outcome: "UNKNOWN precondition_met:freeze,expected_effect_missing:thaw", Policy: "UNKNOWN precondition_met:freeze,expected_effect_missing:thaw"},
}
