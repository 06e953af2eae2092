package agentactionprocessor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/ottlvalue"
	"github.com/countersign-otel/countersign/processor/agentactionprocessor/dialect"
)

// wholeParams is what stands for all params where they are lost as one.
const wholeParams = "params"

// evalParams returns no object where the arguments were hidden (decision D33)
// or break a limit (decision D35). Lost are the params that were there and are
// not recorded; note says why. A parameter is lost alone: whoever makes one
// unreadable must not thereby hide another from the limit that reads it.
func (r *rule[K]) evalParams(ctx *callContext, tc K) (params engine.Object, lost []string, note error) {
	switch r.paramsMode {
	case noParams:
		return engine.Object{}, nil, nil
	case allParams:
		return objectOf(ctx.call.Arguments)
	}
	values := make(map[string]any, len(r.params))
	var errs []error
	for i := range r.params {
		p := &r.params[i]
		value, err := p.value.eval(ctx, tc)
		if err == nil && p.value.argument == nil {
			err = ottlvalue.Complete(value)
		}
		if missed := ctx.call.missed; missed != nil && !ctx.call.Arguments.Truncated {
			lost, errs = append(lost, p.name), append(errs, fmt.Errorf("params.%s: %w", p.name, missed))
			continue
		}
		switch {
		case err != nil:
			lost, errs = append(lost, p.name), append(errs, fmt.Errorf("params.%s: %w", p.name, err))
		case value != nil:
			values[p.name] = value
		}
	}
	if len(values) == 0 && (len(lost) > 0 || ctx.call.Arguments.Value == nil) {
		if why := sizeNote(ctx.call.Arguments); why != nil {
			lost, errs = append(lost, wholeParams), append(errs, why)
		}
		return engine.Object{}, lost, errors.Join(errs...)
	}
	params, err := ottlvalue.Object(values)
	if err != nil {
		var dropped []string
		params, dropped, err = withinLimits(values)
		lost, errs = append(lost, dropped...), append(errs, err)
	}
	return params, lost, errors.Join(errs...)
}

func objectOf(arguments dialect.Captured) (params engine.Object, lost []string, note error) {
	if arguments.Value == nil {
		if note = sizeNote(arguments); note != nil {
			lost = []string{wholeParams}
		}
		return engine.Object{}, lost, note
	}
	params, err := ottlvalue.Object(arguments.Value)
	if err != nil {
		return engine.Object{}, []string{wholeParams}, fmt.Errorf("params: %w", err)
	}
	if note = damageOf(arguments); note != nil {
		lost = []string{wholeParams}
	}
	return params, lost, note
}

// sizeNote says why arguments that were reported have no value.
func sizeNote(arguments dialect.Captured) error {
	if !arguments.Truncated {
		return nil
	}
	return fmt.Errorf("params: the arguments have %d bytes or are nested too deep; at most %d bytes are read", arguments.Bytes, dialect.MaxValueBytes)
}

// withinLimits leaves out the params that break a limit of decision D35 by
// themselves, and then the largest ones until the rest keeps it together.
func withinLimits(values map[string]any) (params engine.Object, lost []string, note error) {
	type sized struct {
		name  string
		bytes int
	}
	var errs []error
	var fitting []sized
	for _, name := range ottlvalue.SortedNames(values) {
		one, err := ottlvalue.Object(map[string]any{name: values[name]})
		if err != nil {
			lost, errs = append(lost, name), append(errs, fmt.Errorf("params: %w", err))
			delete(values, name)
			continue
		}
		fitting = append(fitting, sized{name, len(one.Text())})
	}
	slices.SortStableFunc(fitting, func(a, b sized) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, largest := range fitting {
		together, err := ottlvalue.Object(values)
		if err == nil {
			return together, lost, errors.Join(errs...)
		}
		lost, errs = append(lost, largest.name), append(errs, fmt.Errorf("params.%s: left out, being the largest: %w", largest.name, err))
		delete(values, largest.name)
	}
	return engine.Object{}, lost, errors.Join(errs...)
}
