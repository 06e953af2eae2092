package dialect

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// A condition says which spans a dialect is about. Conditions are compiled to
// bits, one for each distinct test, so that a span is looked at once for all
// dialects and a span that is no tool call costs next to nothing.
type condition struct {
	test   test
	absent bool // the test must fail
	of     []condition
	either bool // one of them, else all
}

// test is one question about a span.
type test struct {
	about  subject
	key    string // of an attribute
	how    comparison
	values string // joined by "\x00", so that tests can be compared
}

type subject uint8

const (
	aboutAttribute subject = iota
	aboutName
	aboutScope
	aboutKind
)

type comparison uint8

const (
	exists comparison = iota
	equals
	startsWith
	contains
)

func (t test) list() []string { return strings.Split(t.values, "\x00") }

func about(s subject, key string, how comparison, values ...string) condition {
	return condition{test: test{s, key, how, strings.Join(values, "\x00")}}
}

func attrIs(key string, values ...string) condition {
	return about(aboutAttribute, key, equals, values...)
}

func attrContains(key string, parts ...string) condition {
	return about(aboutAttribute, key, contains, parts...)
}

func attrExists(key string) condition { return about(aboutAttribute, key, exists) }

func attrMissing(key string) condition { return not(attrExists(key)) }

// not turns a single test round.
func not(c condition) condition {
	c.absent = true
	return c
}

func nameIs(name string) condition       { return about(aboutName, "", equals, name) }
func nameStarts(prefix string) condition { return about(aboutName, "", startsWith, prefix) }
func scopeIs(name string) condition      { return about(aboutScope, "", equals, name) }

func kindIs(kind ptrace.SpanKind) condition {
	return about(aboutKind, "", equals, kind.String())
}

func all(of ...condition) condition    { return condition{of: of} }
func either(of ...condition) condition { return condition{of: of, either: true} }

// marks are the answers to all tests about one span.
type marks uint64

// clause holds when all bits of need and none of not are set.
type clause struct{ need, not marks }

type clauses []clause

func (c clauses) hold(m marks) bool {
	for _, one := range c {
		if m&one.need == one.need && m&one.not == 0 {
			return true
		}
	}
	return false
}

// any is the union of all bits that a span must have one of.
func (c clauses) any() marks {
	var m marks
	for _, one := range c {
		m |= one.need
	}
	return m
}

// scanner answers the tests of all compiled conditions.
type scanner struct {
	tests []test

	attributes [maxKeyBytes + 1][]keyScan // by length of key
	names      []scan
	scopes     []scan
	kinds      [8]marks

	// first bytes that a key, a name or a scope must have to be looked at
	keyFirst, nameFirst, scopeFirst [256]bool
}

// maxKeyBytes is the length of the longest attribute key a condition may name.
const maxKeyBytes = 40

// keyScan is all tests of one attribute.
type keyScan struct {
	key   string
	tests []scan
}

type scan struct {
	test
	values []string
	bit    marks
}

func (s *scan) holds(text string) bool {
	for _, v := range s.values {
		switch s.how {
		case exists:
			return true
		case equals:
			if text == v {
				return true
			}
		case startsWith:
			if strings.HasPrefix(text, v) {
				return true
			}
		case contains:
			if strings.Contains(text, v) {
				return true
			}
		}
	}
	return false
}

// compile adds a condition's tests and returns it as alternatives of bits.
func (s *scanner) compile(c condition) clauses {
	if c.of == nil {
		bit := s.bit(c.test)
		if c.absent {
			return clauses{{not: bit}}
		}
		return clauses{{need: bit}}
	}
	var result clauses
	if !c.either {
		result = clauses{{}}
	}
	for _, part := range c.of {
		compiled := s.compile(part)
		if c.either {
			result = append(result, compiled...)
			continue
		}
		var product clauses
		for _, left := range result {
			for _, right := range compiled {
				product = append(product, clause{left.need | right.need, left.not | right.not})
			}
		}
		result = product
	}
	return result
}

func (s *scanner) bit(t test) marks {
	if i := slices.Index(s.tests, t); i >= 0 {
		return 1 << i
	}
	if len(s.tests) == 64 || len(t.key) > maxKeyBytes {
		panic(fmt.Sprintf("dialect: no room for a test of %q", t.key)) // a fixed table, seen by any test
	}
	s.tests = append(s.tests, t)
	one := scan{test: t, values: t.list(), bit: 1 << (len(s.tests) - 1)}
	switch t.about {
	case aboutAttribute:
		s.addAttribute(one)
	case aboutName:
		s.names = append(s.names, one)
		s.nameFirst[t.values[0]] = true
	case aboutScope:
		s.scopes = append(s.scopes, one)
		s.scopeFirst[t.values[0]] = true
	case aboutKind:
		for kind := ptrace.SpanKindUnspecified; kind <= ptrace.SpanKindConsumer; kind++ {
			if one.holds(kind.String()) {
				s.kinds[kind] |= one.bit
			}
		}
	}
	return one.bit
}

func (s *scanner) addAttribute(one scan) {
	s.keyFirst[one.key[0]] = true
	keys := &s.attributes[len(one.key)]
	i := slices.IndexFunc(*keys, func(k keyScan) bool { return k.key == one.key })
	if i < 0 {
		*keys = append(*keys, keyScan{key: one.key})
		i = len(*keys) - 1
	}
	(*keys)[i].tests = append((*keys)[i].tests, one)
}

func (s *scanner) scope(scope pcommon.InstrumentationScope) marks {
	return scanText(s.scopes, &s.scopeFirst, scope.Name())
}

func (s *scanner) span(span ptrace.Span) marks {
	m := scanText(s.names, &s.nameFirst, span.Name())
	if kind := span.Kind(); 0 <= kind && int(kind) < len(s.kinds) {
		m |= s.kinds[kind]
	}
	for key, value := range span.Attributes().All() {
		if len(key) == 0 || len(key) > maxKeyBytes || !s.keyFirst[key[0]] {
			continue
		}
		keys := s.attributes[len(key)]
		for i := range keys {
			if keys[i].key == key {
				m |= scanAttribute(keys[i].tests, value)
				break
			}
		}
	}
	return m
}

func scanText(tests []scan, first *[256]bool, text string) marks {
	if text == "" || !first[text[0]] {
		return 0
	}
	var m marks
	for i := range tests {
		if tests[i].holds(text) {
			m |= tests[i].bit
		}
	}
	return m
}

// scanAttribute leaves out empty values: some exporters write them for
// attributes they have nothing to say about.
func scanAttribute(tests []scan, v pcommon.Value) marks {
	kind := v.Type()
	if kind == pcommon.ValueTypeEmpty {
		return 0
	}
	var m marks
	for i := range tests {
		if tests[i].how == exists || kind == pcommon.ValueTypeStr && tests[i].holds(v.Str()) {
			m |= tests[i].bit
		}
	}
	return m
}
