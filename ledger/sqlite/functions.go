package sqlite

import (
	"database/sql/driver"
	"fmt"

	"modernc.org/sqlite"

	"github.com/countersign-otel/countersign/engine"
)

// The functions that the evaluation statements use (engine/primitive, Dialect).
// Decimals are texts in canonical form. NULL in, NULL out.
func init() {
	register("countersign_decimal", 1, func(args []string) driver.Value {
		d, ok := engine.ReadDecimal(args[0])
		if !ok {
			return nil
		}
		return d.String()
	})
	exact("countersign_compare", func(a, b engine.Decimal) driver.Value { return int64(a.Cmp(b)) })
	exact("countersign_add", func(a, b engine.Decimal) driver.Value { return a.Add(b).String() })
	exact("countersign_subtract", func(a, b engine.Decimal) driver.Value { return a.Sub(b).String() })
	exact("countersign_distance", func(a, b engine.Decimal) driver.Value { return a.Sub(b).Abs().String() })
	sqlite.MustRegisterFunction("countersign_sum", &sqlite.FunctionImpl{
		NArgs: 1, Deterministic: true,
		MakeAggregate: func(sqlite.FunctionContext) (sqlite.AggregateFunction, error) { return &sum{}, nil },
	})
}

// register adds a function of texts.
func register(name string, arguments int32, f func([]string) driver.Value) {
	sqlite.MustRegisterFunction(name, &sqlite.FunctionImpl{
		NArgs: arguments, Deterministic: true,
		Scalar: func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			texts := make([]string, len(args))
			for i, arg := range args {
				if arg == nil {
					return nil, nil
				}
				text, ok := arg.(string)
				if !ok {
					return nil, fmt.Errorf("%s: argument %d is a %T, not a text", name, i+1, arg)
				}
				texts[i] = text
			}
			return f(texts), nil
		},
	})
}

// exact adds a function of two decimals in canonical form.
func exact(name string, f func(a, b engine.Decimal) driver.Value) {
	register(name, 2, func(args []string) driver.Value {
		a, ok := engine.ExactDecimal(args[0])
		if !ok {
			return nil
		}
		b, ok := engine.ExactDecimal(args[1])
		if !ok {
			return nil
		}
		return f(a, b)
	})
}

// sum adds decimals exactly; the sum of no rows is NULL, as in SQL.
type sum struct {
	total engine.Decimal
	rows  int
}

func (s *sum) Step(_ *sqlite.FunctionContext, args []driver.Value) error {
	d, ok, err := summand(args[0])
	if ok {
		s.total, s.rows = s.total.Add(d), s.rows+1
	}
	return err
}

func (s *sum) WindowInverse(_ *sqlite.FunctionContext, args []driver.Value) error {
	d, ok, err := summand(args[0])
	if ok {
		s.total, s.rows = s.total.Sub(d), s.rows-1
	}
	return err
}

func (s *sum) WindowValue(*sqlite.FunctionContext) (driver.Value, error) {
	if s.rows == 0 {
		return nil, nil
	}
	return s.total.String(), nil
}

func (s *sum) Final(*sqlite.FunctionContext) {}

func summand(arg driver.Value) (engine.Decimal, bool, error) {
	if arg == nil {
		return engine.Decimal{}, false, nil
	}
	text, ok := arg.(string)
	if !ok {
		return engine.Decimal{}, false, fmt.Errorf("countersign_sum: argument is a %T, not a text", arg)
	}
	d, ok := engine.ExactDecimal(text)
	if !ok {
		return engine.Decimal{}, false, fmt.Errorf("countersign_sum: %q is no decimal", text)
	}
	return d, true, nil
}
