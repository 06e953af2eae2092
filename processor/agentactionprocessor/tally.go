package agentactionprocessor

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/countersign-otel/countersign/processor/agentactionprocessor/dialect"
	"github.com/countersign-otel/countersign/processor/agentactionprocessor/internal/metadata"
)

// Outcomes of a recognised call, of a rule that concerns it, and of a fact.
const (
	recorded      = "recorded"
	noRule        = "no_rule"
	failed        = "failed"
	noValue       = "no_value"
	notExecuted   = "not_executed"
	invalid       = "invalid"
	withoutParams = "without_params"
	withoutParam  = "without_param"
	withoutField  = "without_field"
)

// callCount and ruleCount name what is counted.
type (
	callCount struct{ dialect, outcome string }
	ruleCount struct {
		rule    int
		outcome string
	}
)

// tally counts inside one batch; counters take it over at the end.
type tally struct {
	calls             counts[callCount]
	rules             counts[ruleCount]
	facts, badFacts   int64
	contexts, removed int64
}

func (t *tally) call(dialect, outcome string) { t.calls.add(callCount{dialect, outcome}) }

func (t *tally) rule(rule int, outcome string) { t.rules.add(ruleCount{rule, outcome}) }

// counts of what comes in runs: of the same thing as before, no map is asked.
type counts[K comparable] struct {
	last K
	n    int64 // of last, not yet in all
	all  map[K]int64
}

func (c *counts[K]) add(key K) {
	if key != c.last {
		c.total()
		c.last = key
	}
	c.n++
}

func (c *counts[K]) total() map[K]int64 {
	if c.n > 0 {
		if c.all == nil {
			c.all = map[K]int64{}
		}
		c.all[c.last] += c.n
		c.n = 0
	}
	return c.all
}

// counters are the processor's own metrics with their attributes made once.
// The zero value counts nothing.
type counters struct {
	builder *metadata.TelemetryBuilder
	calls   map[callCount]metric.MeasurementOption
	rules   map[ruleCount]metric.MeasurementOption
	facts   map[string]metric.MeasurementOption
}

func newCounters(builder *metadata.TelemetryBuilder, rules []*ruleHead) counters {
	c := counters{
		builder: builder,
		calls:   map[callCount]metric.MeasurementOption{},
		rules:   map[ruleCount]metric.MeasurementOption{},
		facts:   map[string]metric.MeasurementOption{},
	}
	names := []string{verifiedDialect}
	for _, info := range dialect.Names() {
		names = append(names, info.Name)
	}
	for _, outcome := range []string{recorded, noRule, failed, notExecuted, invalid, noValue, withoutParams, withoutParam, withoutField} {
		c.facts[outcome] = set(attribute.String("outcome", outcome))
		for _, name := range names {
			c.calls[callCount{name, outcome}] = set(attribute.String("dialect", name), attribute.String("outcome", outcome))
		}
		for _, rule := range rules {
			c.rules[ruleCount{rule.index, outcome}] = set(attribute.String("rule", rule.label()), attribute.String("outcome", outcome))
		}
	}
	return c
}

func set(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}

func (c *counters) add(ctx context.Context, t *tally) {
	if c.builder == nil {
		return
	}
	for count, n := range t.calls.total() {
		c.builder.ProcessorAgentActionToolCalls.Add(ctx, n, c.calls[count])
	}
	for count, n := range t.rules.total() {
		c.builder.ProcessorAgentActionRuleMatches.Add(ctx, n, c.rules[count])
	}
	if t.facts > 0 {
		c.builder.ProcessorAgentActionFacts.Add(ctx, t.facts, c.facts[recorded])
	}
	if t.badFacts > 0 {
		c.builder.ProcessorAgentActionFacts.Add(ctx, t.badFacts, c.facts[failed])
	}
	if t.contexts > 0 {
		c.builder.ProcessorAgentActionTraceContexts.Add(ctx, t.contexts)
	}
	if t.removed > 0 {
		c.builder.ProcessorAgentActionStrippedAttributes.Add(ctx, t.removed)
	}
}
