package agentactionprocessor

import (
	"context"
	"errors"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"

	"github.com/countersign-otel/countersign/internal/ottlvalue"
)

// functions are OTTL's standard converters and those that read the tool call.
func functions[K any]() map[string]ottl.Factory[K] {
	all := ottlfuncs.StandardConverters[K]()
	for _, own := range []ottl.Factory[K]{
		text[K]("ToolName", func(c *call) string { return c.Tool }),
		text[K]("ToolCallID", func(c *call) string { return c.CallID }),
		text[K]("AgentID", func(c *call) string { return c.Agent }),
		text[K]("SessionID", func(c *call) string { return c.Session }),
		text[K]("ReportedOutcome", func(c *call) string { return string(c.Outcome) }),
		value[K]("ToolArgument", (*call).argument),
		value[K]("ToolResult", func(c *call, p *path) any { return p.lookup(c.Result.Value) }),
	} {
		all[own.Name()] = own
	}
	return all
}

// text is a function without arguments; what the telemetry does not say is nil.
func text[K any](name string, read func(*call) string) ottl.Factory[K] {
	return ottl.NewFactory(name, nil, func(ottl.FunctionContext, ottl.Arguments) (ottl.ExprFunc[K], error) {
		return func(ctx context.Context, _ K) (any, error) {
			c := callFrom(ctx)
			if c == nil {
				return nil, errOutsideCall
			}
			if text := read(c); text != "" {
				return text, nil
			}
			return nil, nil
		}, nil
	})
}

// pathArguments are the arguments of ToolArgument and ToolResult. Without a
// path they return the whole.
type pathArguments struct {
	Path ottl.Optional[string]
}

func value[K any](name string, read func(*call, *path) any) ottl.Factory[K] {
	return ottl.NewFactory(name, &pathArguments{}, func(_ ottl.FunctionContext, arguments ottl.Arguments) (ottl.ExprFunc[K], error) {
		given, ok := arguments.(*pathArguments)
		if !ok {
			return nil, errArguments
		}
		p := newPath(given.Path.GetOr(""))
		return func(ctx context.Context, _ K) (any, error) {
			c := callFrom(ctx)
			if c == nil {
				return nil, errOutsideCall
			}
			return ottlvalue.Computable(read(c, &p)), nil
		}, nil
	})
}

var (
	errOutsideCall = errors.New("there is no tool call here")
	errArguments   = errors.New("arguments of another function")
)
