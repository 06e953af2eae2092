package evidenceprocessor

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/countersign-otel/countersign/processor/evidenceprocessor/internal/metadata"
)

// Outcomes of a fact.
const (
	factMade    = "made"
	factFailed  = "failed"
	factNoTrust = "no_trust"
)

// Outcomes of a record.
const (
	recordFacts      = "facts"
	recordNoRule     = "no_rule"
	recordFailed     = "failed"
	recordUnreadable = "unreadable"
)

// factCount names what is counted: the label's place, and the outcome.
type factCount struct {
	label   int
	outcome string
}

// tally counts inside one batch; counters take it over at the end.
type tally struct {
	facts             map[factCount]int64
	links, watermarks map[int]int64
	records           map[string]int64
	stripped, unseals int64
}

func newTally() *tally {
	return &tally{facts: map[factCount]int64{}, links: map[int]int64{}, watermarks: map[int]int64{}, records: map[string]int64{}}
}

// counters are the processor's own metrics with their attributes made once.
// The zero value counts nothing.
type counters struct {
	builder *metadata.TelemetryBuilder
	facts   map[factCount]metric.MeasurementOption
	// rules are for what needs no outcome.
	rules   []metric.MeasurementOption
	records map[string]metric.MeasurementOption
}

func newCounters(builder *metadata.TelemetryBuilder, labels []string) counters {
	c := counters{
		builder: builder,
		facts:   map[factCount]metric.MeasurementOption{},
		records: map[string]metric.MeasurementOption{},
	}
	for _, outcome := range []string{recordFacts, recordNoRule, recordFailed, recordUnreadable} {
		c.records[outcome] = set(attribute.String("outcome", outcome))
	}
	for i, label := range labels {
		rule := attribute.String("rule", label)
		c.rules = append(c.rules, set(rule))
		for _, outcome := range []string{factMade, factFailed, factNoTrust} {
			c.facts[factCount{i, outcome}] = set(rule, attribute.String("outcome", outcome))
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
	for count, n := range t.facts {
		c.builder.ProcessorEvidenceFacts.Add(ctx, n, c.facts[count])
	}
	for label, n := range t.links {
		if n == 0 {
			continue
		}
		c.builder.ProcessorEvidenceLinks.Add(ctx, n, c.rules[label])
	}
	for label, n := range t.watermarks {
		c.builder.ProcessorEvidenceWatermarks.Add(ctx, n, c.rules[label])
	}
	for outcome, n := range t.records {
		c.builder.ProcessorEvidenceRecords.Add(ctx, n, c.records[outcome])
	}
	if t.stripped > 0 {
		c.builder.ProcessorEvidenceStrippedAttributes.Add(ctx, t.stripped)
	}
	if t.unseals > 0 {
		c.builder.ProcessorEvidenceUnsealedDeliveries.Add(ctx, t.unseals)
	}
}
