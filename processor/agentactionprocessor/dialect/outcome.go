package dialect

import (
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// outcomeRule is one thing a runtime may say about how a call went; read
// returns "" when it says nothing.
type outcomeRule struct {
	label string
	read  func(*view) Outcome
}

type outcomes []outcomeRule

// outcome asks the rules in order.
func (o outcomes) outcome(v *view) (Outcome, string) {
	for _, rule := range o {
		if said := rule.read(v); said != "" {
			return said, rule.label
		}
	}
	return Unknown, ""
}

func when(label string, says Outcome, holds func(*view) bool) outcomeRule {
	return outcomeRule{label, func(v *view) Outcome {
		if holds(v) {
			return says
		}
		return ""
	}}
}

func errorType() outcomeRule {
	return when("attr:error.type", Error, func(v *view) bool { return v.text("error.type") != "" })
}

func exception() outcomeRule {
	return when("event:exception", Error, hasException)
}

func hasException(v *view) bool {
	for _, event := range v.span.Events().All() {
		if event.Name() == "exception" || event.Name() == "gen_ai.execute_tool.exception" {
			return true
		}
	}
	return false
}

// statusError says nothing when the status is OK: what the result says of
// itself comes after it.
func statusError() outcomeRule {
	return when("status", Error, func(v *view) bool { return v.span.Status().Code() == ptrace.StatusCodeError })
}

func statusOK() outcomeRule {
	return when("status", Success, func(v *view) bool { return v.span.Status().Code() == ptrace.StatusCodeOk })
}

func toolMessageStatus() outcomeRule {
	return when("result.status", Error, func(v *view) bool { return v.message.status == "error" })
}

func resultSaysError() outcomeRule {
	return when("result.is_error", Error, func(v *view) bool { return saysError(v.result.outer) })
}

// otherwise ends a list of rules.
func otherwise(says Outcome) outcomeRule {
	return when("unset", says, func(*view) bool { return true })
}
