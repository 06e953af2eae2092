package verifiedactionsreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/history"
	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/metadata"
)

// outcome is what became of a request, a receipt or an action; see metadata.yaml.
type outcome string

// What became of a receipt.
const (
	created         outcome = "created"
	duplicate       outcome = "duplicate"
	malformed       outcome = "malformed"
	badSignature    outcome = "bad_signature"
	conflict        outcome = "conflict"
	notAllowed      outcome = "agent_not_allowed"
	pipelineRefused outcome = "pipeline_refused"
	refusedBefore   outcome = "refused_before"
	failed          outcome = "failed"
)

// What became of a request, or of an action, beside malformed and failed.
const (
	accepted     outcome = "accepted"
	unauthorized outcome = "unauthorized"
	tooLarge     outcome = "too_large"
	busy         outcome = "busy"
	invalid      outcome = "invalid"
)

// counters are the receiver's own metrics.
type counters struct{ builder *metadata.TelemetryBuilder }

func newCounters(settings component.TelemetrySettings) (*counters, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	return &counters{builder}, nil
}

func (c *counters) shutdown() { c.builder.Shutdown() }

func with(pairs ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(pairs...))
}

func of(what outcome) attribute.KeyValue { return attribute.String("outcome", string(what)) }

func (c *counters) request(ctx context.Context, route string, what outcome) {
	c.builder.ReceiverVerifiedActionsRequests.Add(ctx, 1, with(attribute.String("route", route), of(what)))
}

func (c *counters) receipts(ctx context.Context, items []item) {
	outcomes, statuses := map[outcome]int64{}, map[history.Status]int64{}
	for i := range items {
		outcomes[items[i].outcome]++
		if items[i].outcome == created {
			statuses[items[i].standing.Status]++
		}
	}
	for what, n := range outcomes {
		c.builder.ReceiverVerifiedActionsReceipts.Add(ctx, n, with(of(what)))
	}
	for status, n := range statuses {
		c.builder.ReceiverVerifiedActionsChain.Add(ctx, n, with(attribute.String("chain_status", string(status))))
	}
}

func (c *counters) actions(ctx context.Context, n int, what outcome) {
	if n > 0 {
		c.builder.ReceiverVerifiedActionsActions.Add(ctx, int64(n), with(of(what)))
	}
}

func (c *counters) historyError(ctx context.Context) {
	c.builder.ReceiverVerifiedActionsHistoryErrors.Add(ctx, 1)
}
