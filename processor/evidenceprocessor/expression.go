package evidenceprocessor

import (
	"regexp"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"

	"github.com/countersign-otel/countersign/internal/ottlvalue"
)

// expression is a compiled OTTL value expression; the zero value was not configured.
type expression struct {
	value *ottl.ValueExpression[logContext]
	// literal is a name that stands for itself.
	literal string
	// body and item are set where the whole expression is Body("...") or
	// Item("..."): what it names is then read as it is, at no cost and with its
	// number's exact text.
	body, item *selector
}

// plainReading is an expression that only reads.
var plainReading = regexp.MustCompile(`^\s*(Body|Item)\(\s*(?:"([^"\\]*)")?\s*\)\s*$`)

func compileExpression(parser ottl.Parser[logContext], text string) (expression, error) {
	if text == "" {
		return expression{}, nil
	}
	value, err := parser.ParseValueExpression(text)
	if err != nil {
		return expression{}, err
	}
	e := expression{value: value}
	if match := plainReading.FindStringSubmatch(text); match != nil {
		s, err := parseSelector(match[2])
		if err != nil {
			return expression{}, err
		}
		if match[1] == "Body" {
			e.body = &s
		} else {
			e.item = &s
		}
	}
	return e, nil
}

func (e *expression) configured() bool { return e.value != nil || e.literal != "" }

// eval returns nil for a value that is not there.
func (e *expression) eval(ctx *evalContext, tc logContext) (any, error) {
	switch {
	case e.literal != "":
		return e.literal, nil
	case e.value == nil:
		return nil, nil
	case e.item != nil:
		return e.item.first(ctx.entry.item), nil
	case e.body != nil:
		return ctx.entry.first(e.body)
	}
	value, err := e.value.Eval(ctx, tc)
	if err == nil {
		err = ottlvalue.Complete(value)
	}
	return value, err
}

// text is eval for an id; empty for a value that is not there.
func (e *expression) text(ctx *evalContext, tc logContext) (string, error) {
	if e.literal != "" {
		return e.literal, nil
	}
	if e.body != nil {
		if text, ok := ctx.entry.text(e.body); ok {
			return text, nil
		}
	}
	value, err := e.eval(ctx, tc)
	if err != nil {
		return "", err
	}
	return ottlvalue.Text(value)
}
