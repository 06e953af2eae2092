package agentactionprocessor

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
)

// expression is a compiled OTTL value expression; the zero value was not configured.
type expression[K any] struct {
	value *ottl.ValueExpression[K]
	text  string
	// argument is set where the whole expression is ToolArgument("..."): the
	// argument is then read as it is, at no cost and with its number's exact text.
	argument *path
}

// plainArgument is an expression that only reads an argument.
var plainArgument = regexp.MustCompile(`^\s*ToolArgument\(\s*"([^"\\]*)"\s*\)\s*$`)

// bareWord is what somebody writes who means an argument, or a text.
var bareWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func compileExpression[K any](parser *ottl.Parser[K], text string) (expression[K], error) {
	if text == "" {
		return expression[K]{}, nil
	}
	value, err := parser.ParseValueExpression(text)
	if word := strings.TrimSpace(text); err != nil && bareWord.MatchString(word) {
		return expression[K]{}, fmt.Errorf(`it is no expression; write ToolArgument(%q) for an argument of the call, or '%q' for the text itself`, word, word)
	}
	if err != nil {
		return expression[K]{}, err
	}
	e := expression[K]{value: value, text: text}
	if match := plainArgument.FindStringSubmatch(text); match != nil {
		p := newPath(match[1])
		e.argument = &p
	}
	return e, nil
}

func (e *expression[K]) configured() bool { return e.value != nil }

// eval returns nil for a value that is not there.
// Of the call, missed then says why an argument that the expression reads is not.
func (e *expression[K]) eval(ctx *callContext, tc K) (any, error) {
	ctx.call.missed = nil
	if e.argument != nil {
		return ctx.call.argument(e.argument), nil
	}
	return e.value.Eval(ctx, tc)
}

// callContext carries the tool call to the functions of an expression. It is
// its own Value, so that passing it on allocates nothing.
type callContext struct {
	context.Context
	call *call
}

type callKey struct{}

// Value returns the call for callKey.
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	return c.Context.Value(key)
}

func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}
