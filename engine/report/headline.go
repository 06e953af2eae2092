package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
)

// headline is AC "Headline rules", to the character (decision D26). Checks
// stand in the order in which they are scanned.
func headline(c *contract.Contract, e engine.Evaluation, checks []Check, s Settlement, now engine.Instant) string {
	switch {
	case e.Outcome.Raw == engine.Verified && e.Policy.Raw == engine.Verified && !s.Settled:
		return pending(checks, s, now)
	case e.Outcome.Raw == engine.Verified && e.Policy.Raw == engine.Verified:
		return fmt.Sprintf("PASS — all %d expected effects observed within %s; preconditions, limits and prohibitions respected", expectedCount(checks), c.WindowText)
	case e.Outcome.Raw == engine.Unverifiable && e.Policy.Raw == engine.Unverifiable:
		return "UNKNOWN — " + Label(e.Policy.Reasons[0])
	case slices.Contains(e.Policy.Reasons, "excluded_by_contract"):
		return fail(Label("excluded_by_contract"), s)
	}
	first := slices.IndexFunc(checks, func(check Check) bool { return !check.OK })
	if first < 0 {
		return fail(Label(e.Policy.Reasons[0]), s)
	}
	if checks[first].Section == contract.ExpectedEffects && !s.Settled {
		return pending(checks, s, now)
	}
	return fail(failure(checks[first]), s)
}

func fail(text string, s Settlement) string {
	if len(s.StaleSources) > 0 {
		text += fmt.Sprintf(" (%s at settlement)", laggards(s.StaleSources))
	}
	return "FAIL — " + text
}

// failure is the failing check in words.
func failure(check Check) string {
	message := ""
	if check.Message != nil {
		message = *check.Message
	}
	switch check.Section {
	case contract.Limits:
		return fmt.Sprintf("limit exceeded: %s (was %s)", check.Description, was(check.Value))
	case contract.AggregateLimits:
		return fmt.Sprintf("%s (was %s)", or(message, check.Description), was(check.Value))
	case contract.ForbiddenEffects:
		return or(message, "forbidden effect observed: "+check.Description)
	case contract.ExpectedEffects:
		return or(message, "expected effect not observed: "+check.Description)
	}
	return or(message, check.Description)
}

// was prints a value; a parameter that was not sent reads as 0 (decision D3).
func was(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	return "0"
}

func or(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}

func pending(checks []Check, s Settlement, now engine.Instant) string {
	observed := 0
	for _, check := range checks {
		if check.Section == contract.ExpectedEffects && check.OK {
			observed++
		}
	}
	counts := fmt.Sprintf("PENDING — %d of %d expected effects observed", observed, expectedCount(checks))
	if now < s.SettlesAt {
		return fmt.Sprintf("%s so far; window closes %s", counts, s.SettlesAt)
	}
	return fmt.Sprintf("%s; window closed %s, waiting for %s to catch up", counts, s.SettlesAt, laggards(s.WaitingOn))
}

func expectedCount(checks []Check) int {
	n := 0
	for _, check := range checks {
		if check.Section == contract.ExpectedEffects {
			n++
		}
	}
	return n
}

// labels are the engine's own reason codes in words; those of the primitives stand in their files.
var labels = map[string]string{
	"verified_condition_not_met": "Not every expected effect was observed",
	"identity_unmatched":         "Subject not found in fact sources",
	"no_structured_signal":       "No expected effect was ever observed for the subject",
	"excluded_by_contract":       "Excluded by the contract",
}

// Label is a reason code in words, like "Limit exceeded: amount" (AC "Reason codes").
func Label(code string) string {
	if rest, ok := strings.CutPrefix(code, "not:"); ok {
		return "Not: " + Label(rest)
	}
	kind, detail, _ := strings.Cut(code, ":")
	label, ok := labels[kind]
	if !ok {
		label, ok = primitive.Label(kind)
	}
	if !ok {
		return code
	}
	if detail == "" {
		return label
	}
	return label + ": " + strings.Replace(detail, ".", " ", 1)
}
