package agentactionprocessor

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"

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
}

func (p *annotator) begin(ctx context.Context) *batch {
	b := &batch{Context: ctx}
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
			b.rule(d.rule.index, failed)
			if outcome == noRule {
				outcome = failed
			}
			return
		}
		outcome = recorded
		b.rule(d.rule.index, d.outcome())
		record.AppendAction(carrier, record.Action{Tenant: b.tenant, Action: d.action, StartedNanos: c.started()})
	})
	b.call(c.Dialect, outcome)
}

// outcome of a recorded action: what a limit of the contract cannot see is worth an alert.
func (d *decision) outcome() string {
	if d.rule.paramsMode != noParams && !d.action.Params.Captured() {
		return withoutParams
	}
	return recorded
}
