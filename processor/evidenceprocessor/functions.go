package evidenceprocessor

import (
	"context"
	"errors"
	"fmt"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottllog"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/ottlvalue"
)

// logContext is the context of OTTL that rules are compiled for.
type logContext = *ottllog.TransformContext

// functions are OTTL's standard converters and those that read evidence.
func functions() map[string]ottl.Factory[logContext] {
	all := ottlfuncs.StandardConverters[logContext]()
	for _, own := range []ottl.Factory[logContext]{
		selecting("Body", (*entry).first),
		selecting("Item", func(e *entry, s *selector) (any, error) { return s.first(e.item), nil }),
		reading("List", func(s *selector, value any) (any, error) { return s.all(value), nil }),
		reading("Count", func(s *selector, value any) (any, error) { return int64(len(s.all(value))), nil }),
		sumFunction(),
		minorFunction(),
		jsonFunction(),
		saying("DeliveryID", func(e *entry) string { return e.delivery.ID }),
		saying("Source", func(e *entry) string { return e.source }),
	} {
		all[own.Name()] = own
	}
	return all
}

var (
	errOutside   = errors.New("there is no record here")
	errArguments = errors.New("arguments of another function")
)

// pathArguments are the arguments of what reads a JSON value.
type pathArguments struct {
	Path ottl.Optional[string]
}

// reading is a function that reads something of the whole body by a selector.
func reading(name string, read func(*selector, any) (any, error)) ottl.Factory[logContext] {
	return selecting(name, func(e *entry, s *selector) (any, error) {
		body, err := e.json()
		if err != nil {
			return nil, err
		}
		return read(s, body)
	})
}

// selecting is a function of a selector.
func selecting(name string, read func(*entry, *selector) (any, error)) ottl.Factory[logContext] {
	return ottl.NewFactory(name, &pathArguments{}, func(_ ottl.FunctionContext, arguments ottl.Arguments) (ottl.ExprFunc[logContext], error) {
		given, ok := arguments.(*pathArguments)
		if !ok {
			return nil, errArguments
		}
		s, err := parseSelector(given.Path.GetOr(""))
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, _ logContext) (any, error) {
			e := entryFrom(ctx)
			if e == nil {
				return nil, errOutside
			}
			value, err := read(e, &s)
			if err != nil {
				return nil, err
			}
			return ottlvalue.Computable(value), nil
		}, nil
	})
}

// sumFunction adds exactly. What does not read as a number is an error: a sum
// without it would be a smaller one.
func sumFunction() ottl.Factory[logContext] {
	return reading("Sum", func(s *selector, value any) (any, error) {
		var sum engine.Decimal
		for _, item := range s.all(value) {
			text, err := ottlvalue.Text(item)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.whole, err)
			}
			number, ok := engine.ReadDecimal(text)
			if !ok {
				return nil, fmt.Errorf("%s: %.40q does not read as a number", s.whole, text)
			}
			sum = sum.Add(number)
		}
		return ottlvalue.ComputableNumber(sum.String()), nil
	})
}

// minorArguments are the arguments of Minor.
type minorArguments struct {
	Amount     ottl.Getter[logContext]
	Currency   ottl.Getter[logContext]
	Convention ottl.Optional[string]
}

// minorFunction turns minor units into an exact decimal by the currency's exponent.
func minorFunction() ottl.Factory[logContext] {
	return ottl.NewFactory("Minor", &minorArguments{}, func(_ ottl.FunctionContext, arguments ottl.Arguments) (ottl.ExprFunc[logContext], error) {
		given, ok := arguments.(*minorArguments)
		if !ok {
			return nil, errArguments
		}
		convention := given.Convention.GetOr("iso")
		if _, ok := conventions[convention]; !ok {
			return nil, fmt.Errorf("convention %.40q: write iso or stripe", convention)
		}
		return func(ctx context.Context, tc logContext) (any, error) {
			amount, err := getText(ctx, tc, given.Amount)
			if err != nil || amount == "" {
				return nil, err
			}
			currency, err := getText(ctx, tc, given.Currency)
			if err != nil {
				return nil, err
			}
			value, err := minorUnits(amount, currency, convention)
			if err != nil {
				return nil, err
			}
			return ottlvalue.ComputableNumber(value.String()), nil
		}, nil
	})
}

func getText(ctx context.Context, tc logContext, getter ottl.Getter[logContext]) (string, error) {
	value, err := getter.Get(ctx, tc)
	if err != nil {
		return "", err
	}
	return ottlvalue.Text(value)
}

// jsonArguments are the arguments of JSON.
type jsonArguments struct {
	Target ottl.Getter[logContext]
}

// jsonFunction reads JSON text without passing numbers through binary floating point.
func jsonFunction() ottl.Factory[logContext] {
	return ottl.NewFactory("JSON", &jsonArguments{}, func(_ ottl.FunctionContext, arguments ottl.Arguments) (ottl.ExprFunc[logContext], error) {
		given, ok := arguments.(*jsonArguments)
		if !ok {
			return nil, errArguments
		}
		return func(ctx context.Context, tc logContext) (any, error) {
			text, err := getText(ctx, tc, given.Target)
			if err != nil || text == "" {
				return nil, err
			}
			if len(text) > maxBody {
				return nil, fmt.Errorf("the text has %d bytes; at most %d are read", len(text), maxBody)
			}
			value, err := parseJSON(text)
			if err != nil {
				return nil, err
			}
			return ottlvalue.Computable(value), nil
		}, nil
	})
}

// saying is a function without arguments; what is not known is nil.
func saying(name string, read func(*entry) string) ottl.Factory[logContext] {
	return ottl.NewFactory(name, nil, func(ottl.FunctionContext, ottl.Arguments) (ottl.ExprFunc[logContext], error) {
		return func(ctx context.Context, _ logContext) (any, error) {
			e := entryFrom(ctx)
			if e == nil {
				return nil, errOutside
			}
			if text := read(e); text != "" {
				return text, nil
			}
			return nil, nil
		}, nil
	})
}
