// Package refunds is the story that the demo plays and the end-to-end tests
// hold on to: a support agent refunds orders, in the words of four
// instrumentations, and what four systems of record say about it. Its five
// verdicts are those that the contract refund_workflow promises.
package refunds

import (
	"embed"
	"fmt"
	"strings"
	"time"
)

//go:embed data
var data embed.FS

// Step is one row of the table.
type Step struct {
	Number int
	// About says what happened, for people.
	About string
	// Dialect names the instrumentation whose words the spans use.
	Dialect string
	// Facts is a body of POST /v1/facts; nil for none. Facts come first.
	Facts []byte
	// Spans is an OTLP/JSON request; nil when the action of the step before is verified again.
	Spans []byte
	// TraceID is the trace of the action.
	TraceID string
	Want    Want
}

// Want is what the verification has to say, to the character.
type Want struct {
	// Status is pending or settled.
	Status          string
	Outcome, Policy string
	// OutcomeReasons and PolicyReasons are codes in the order of evaluation.
	OutcomeReasons, PolicyReasons []string
	Headline                      string
}

// Again says that the step looks once more at the action of the step before.
func (s Step) Again() bool { return s.Spans == nil }

// trace of a step's action, as in the data.
func trace(step int) string { return fmt.Sprintf("7b1f0c5de2a94d3c8e6f1a2b3c4d5e%02d", step) }

var observed = []string{
	"effect_observed:stripe.refund_created", "effect_observed:shopify.order_cancelled",
	"effect_observed:crm.note_added", "effect_observed:messaging.customer_notified",
}

// Story is the five steps, told at now: the last action was requested just
// now, the others on a fixed day, so that their verdicts and hashes are the
// same on every machine.
func Story(now time.Time) []Step {
	notCancelled := []string{"verified_condition_not_met", "expected_effect_missing:shopify.order_cancelled"}
	unmatched := []string{"identity_unmatched"}
	tooEarly := []string{
		"verified_condition_not_met", "expected_effect_missing:shopify.order_cancelled",
		"expected_effect_missing:crm.note_added", "expected_effect_missing:messaging.customer_notified",
	}
	c := clock(now)
	return []Step{
		{
			Number: 1, Dialect: "OpenTelemetry GenAI", TraceID: trace(1),
			About: "Refunded, noted and notified, but the shop never cancelled the order",
			Facts: c.read("1-facts.json"), Spans: c.read("1-genai.json"),
			Want: Want{
				Status: "settled", Outcome: "FAIL", Policy: "FAIL", OutcomeReasons: notCancelled, PolicyReasons: notCancelled,
				Headline: "FAIL — Shopify order remained active despite a successful payment refund",
			},
		},
		{
			Number: 2, Dialect: "OpenTelemetry GenAI", TraceID: trace(1),
			About: "The cancellation arrives late, and the same action is verified again",
			Facts: c.read("2-facts.json"),
			Want: Want{
				Status: "settled", Outcome: "PASS", Policy: "PASS", OutcomeReasons: observed, PolicyReasons: observed,
				Headline: "PASS — all 4 expected effects observed within 15m; preconditions, limits and prohibitions respected",
			},
		},
		{
			Number: 3, Dialect: "OpenInference", TraceID: trace(3),
			About: "Everything happened, but twice, over the limit, on an order that was not eligible",
			Facts: c.read("3-facts.json"), Spans: c.read("3-openinference.json"),
			Want: Want{
				Status: "settled", Outcome: "PASS", Policy: "FAIL", OutcomeReasons: observed,
				PolicyReasons: []string{
					"precondition_unmet:shopify.order_status", "limit_exceeded:amount",
					"duplicate_effect:stripe.refund_created", "forbidden_effect_observed:stripe.refund_created",
				},
				Headline: "FAIL — Order was not eligible for a refund at the time of the action",
			},
		},
		{
			Number: 4, Dialect: "Vercel AI SDK", TraceID: trace(4),
			About: "The agent says it refunded an order that no system of record knows",
			Spans: c.read("4-vercel.json"),
			Want: Want{
				Status: "settled", Outcome: "UNKNOWN", Policy: "UNKNOWN", OutcomeReasons: unmatched, PolicyReasons: unmatched,
				Headline: "UNKNOWN — Subject not found in fact sources",
			},
		},
		{
			Number: 5, Dialect: "Pydantic AI", TraceID: trace(5),
			About: "Requested just now: the refund is there, three effects are not yet",
			Facts: c.read("5-facts.json"), Spans: c.read("5-pydantic-ai.json"),
			Want: Want{
				Status: "pending", Outcome: "FAIL", Policy: "FAIL", OutcomeReasons: tooEarly, PolicyReasons: tooEarly,
				Headline: "PENDING — 1 of 4 expected effects observed so far; window closes " + c.requested.Add(15*time.Minute).Format(time.RFC3339),
			},
		},
	}
}

// told fills in the times of the last step.
type told struct {
	requested time.Time
	replace   *strings.Replacer
}

func clock(now time.Time) told {
	requested := now.UTC().Truncate(time.Second).Add(-3 * time.Second)
	return told{requested, strings.NewReplacer(
		"@nanos", fmt.Sprint(requested.UnixNano()),
		"@before", requested.Add(-time.Minute).Format(time.RFC3339),
		"@after", requested.Add(2*time.Second).Format(time.RFC3339),
	)}
}

func (c told) read(name string) []byte {
	text, err := data.ReadFile("data/" + name)
	if err != nil {
		panic(err) // the file is part of the program
	}
	return []byte(c.replace.Replace(string(text)))
}
