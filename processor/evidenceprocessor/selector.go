package evidenceprocessor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/ottlvalue"
)

// selector names values inside JSON: names and list positions between dots, *
// for every item of a list, and items by what they hold, like
// transactions[kind=refund,status=success].amount. Without any step it is the whole.
type selector struct {
	whole string
	steps []step
	// plain: it names one value at most.
	plain bool
}

type step struct {
	// name is a member's name or a list position; empty for *.
	name string
	// filters restrict the items of the list that name leads to.
	filters []filter
}

// filter compares a member of an item by decision D4.
type filter struct {
	name   string
	want   engine.Value
	differ bool
}

func parseSelector(text string) (selector, error) {
	s := selector{whole: text, plain: true}
	if text == "" {
		return s, nil
	}
	for part := range splitSteps(text) {
		parsed, err := parseStep(part)
		if err != nil {
			return selector{}, fmt.Errorf("%.80q: %w", text, err)
		}
		s.plain = s.plain && parsed.name != "" && parsed.filters == nil
		s.steps = append(s.steps, parsed)
	}
	return s, nil
}

// splitSteps cuts at dots outside of brackets.
func splitSteps(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start, inside := 0, false
		for i := range len(text) {
			switch text[i] {
			case '[':
				inside = true
			case ']':
				inside = false
			case '.':
				if inside {
					continue
				}
				if !yield(text[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(text[start:])
	}
}

var (
	errEmptyStep = errors.New("a step is empty; write names between dots")
	errBracket   = errors.New("a bracket is not closed at the end of its step; write items[name=value]")
	errFilter    = errors.New("a filter compares names with values; write items[name=value,other!=value]")
)

func parseStep(text string) (step, error) {
	name, rest, filtered := strings.Cut(text, "[")
	if name == "" {
		return step{}, errEmptyStep
	}
	s := step{name: name}
	if name == "*" {
		s.name = ""
	}
	if !filtered {
		return s, nil
	}
	inner, ok := strings.CutSuffix(rest, "]")
	if !ok {
		return step{}, errBracket
	}
	for item := range strings.SplitSeq(inner, ",") {
		name, value, ok := strings.Cut(item, "=")
		if !ok {
			return step{}, errFilter
		}
		f := filter{want: engine.StringValue(value)}
		f.name, f.differ = strings.CutSuffix(name, "!")
		if f.name == "" {
			return step{}, errFilter
		}
		s.filters = append(s.filters, f)
	}
	return s, nil
}

// first is the one value that is named, or the first of several; nil for none.
func (s *selector) first(value any) any {
	if s.plain {
		return s.lookup(value)
	}
	if all := s.all(value); len(all) > 0 {
		return all[0]
	}
	return nil
}

// lookup is first for a plain selector. A member whose name is the whole text
// comes first, because names may hold dots.
func (s *selector) lookup(value any) any {
	if object, ok := value.(map[string]any); ok && len(s.steps) > 1 {
		if found, ok := object[s.whole]; ok {
			return found
		}
	}
	for i := range s.steps {
		if value = member(value, s.steps[i].name); value == nil {
			return nil
		}
	}
	return value
}

// all are the values that are named, in their order; null and what is not there are left out.
func (s *selector) all(value any) []any {
	found := []any{value}
	for i := range s.steps {
		found = s.steps[i].apply(found)
	}
	return found
}

func (s *step) apply(values []any) []any {
	var found []any
	for _, value := range values {
		if s.name != "" {
			value = member(value, s.name)
		}
		list, isList := value.([]any)
		if !isList || (s.name != "" && s.filters == nil) {
			list = []any{value}
		}
		for _, item := range list {
			if item != nil && s.holds(item) {
				found = append(found, item)
			}
		}
	}
	return found
}

func (s *step) holds(item any) bool {
	for i := range s.filters {
		f := &s.filters[i]
		text, err := ottlvalue.Text(member(item, f.name))
		equal := err == nil && text != "" && engine.StringValue(text).Equal(f.want)
		if equal == f.differ {
			return false
		}
	}
	return true
}

func member(value any, name string) any {
	switch v := value.(type) {
	case map[string]any:
		return v[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}
