package agentactionprocessor

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/processor/agentactionprocessor/dialect"
)

// batch is what is known while one batch is annotated.
type batch struct {
	context.Context
	tally
	tenant string
	// noTenant says why nothing of this batch can be recorded.
	noTenant error
	scratch  scratch
	logger   *zap.Logger
	logged   int
	warnings *warnings
	now      time.Time
}

func (p *annotator) begin(ctx context.Context) *batch {
	b := &batch{Context: ctx, logger: p.logger, warnings: &p.warnings, now: p.now()}
	b.tenant, b.noTenant = p.tenancy.Of(ctx)
	return b
}

// annotate writes on the carrier of a call what is recorded of it. Nothing of
// what goes wrong stops the telemetry.
func annotate[K any](b *batch, rules []rule[K], tc K, c *call, carrier pcommon.Map) {
	if c.Outcome == dialect.NotExecuted {
		b.call(c.Dialect, notExecuted)
		return
	}
	outcome := noRule
	decide(b.Context, &b.scratch, rules, tc, c, func(d *decision) {
		if d.skipped {
			return
		}
		if d.err == nil {
			d.err = b.noTenant
		}
		if text := d.problem(); text != "" {
			record.PutError(carrier, text)
		}
		if d.err != nil {
			b.rule(d.rule.index, d.outcome())
			b.warnings.unrecorded(b.now, d, c)
			if outcome == noRule {
				outcome = failed
			}
			return
		}
		outcome = recorded
		b.rule(d.rule.index, d.outcome())
		if len(d.lost) > 0 {
			b.logLost(d)
		}
		record.AppendAction(carrier, record.Action{Tenant: b.tenant, Action: d.action, StartedNanos: c.started()})
	})
	b.call(c.Dialect, outcome)
}

// outcome under the rule: what is not recorded, and what a limit of the contract cannot see is worth an alert.
func (d *decision) outcome() string {
	switch {
	case d.err != nil:
		return outcomeOf(d.err)
	case d.rule.paramsMode != noParams && !d.action.Params.Captured():
		return withoutParams
	case len(d.lost) > 0:
		return withoutParam
	case d.note != nil:
		return withoutField
	}
	return recorded
}

// outcomeOf an error tells what the agent's words are the cause of from the rest.
func outcomeOf(err error) string {
	var gap *missing
	if errors.As(err, &gap) {
		return noValue
	}
	return failed
}

// logLost tells the operator which params were there and are not recorded: a
// limit that reads one of them passes (decision D3). What the agent sent is
// not logged; why it was lost stands on the span. What a batch can make us log
// is bounded.
func (b *batch) logLost(d *decision) {
	if b.logged == maxReported {
		return
	}
	b.logged++
	b.logger.Warn("recorded without parameters that were sent; a limit that reads one of them passes",
		zap.String("rule", d.rule.label()), zap.String("contract_id", d.rule.contract), zap.Strings("params", d.lost),
		zap.String("action_id", d.action.ActionID), zap.String("trace_id", d.action.TraceID), zap.String("span_id", d.action.SpanID),
		zap.String("why", "see "+record.ErrorKey+" on the span or log record"))
}
