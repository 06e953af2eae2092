package emit

import (
	"context"
	"errors"
	"log/slog"
)

// otlp sends spans and events to an OTLP endpoint.
type otlp struct {
	client client
	writer writer
	config Config
	logger *slog.Logger
}

func (o *otlp) String() string { return o.config.Endpoint }

func (o *otlp) wants(*item) bool { return true }

func (o *otlp) close() error { return o.client.close() }

// deliver sends a batch. When the other side refuses it, the events go one by
// one, so that one of them does not hold the others.
func (o *otlp) deliver(ctx context.Context, items []item) []error {
	failures := make([]error, len(items))
	err := o.send(ctx, items)
	for i := range failures {
		failures[i] = err
		if len(items) > 1 && errors.Is(err, errRefused) {
			failures[i] = o.alone(ctx, items[i:i+1])
		}
	}
	return failures
}

func (o *otlp) alone(ctx context.Context, one []item) error {
	err := o.send(ctx, one)
	if errors.Is(err, errRefused) {
		o.logger.Error("a verdict is refused as telemetry and kept for later", "endpoint", o.config.Endpoint,
			"tenant", one[0].Tenant, "action_id", one[0].Action.Action.ActionID, "kind", one[0].Kind, "error", err)
	}
	return err
}

// send sends spans first, then events: what fails is repeated as a whole, and
// spans are told apart by their ids.
func (o *otlp) send(ctx context.Context, items []item) error {
	logs, traces := o.writer.write(items)
	ctx, cancel := context.WithTimeout(ctx, o.config.Timeout)
	defer cancel()
	if traces.SpanCount() > 0 {
		dropped, err := o.client.traces(ctx, traces)
		if err != nil {
			return err
		}
		o.warn("spans", dropped)
	}
	if logs.LogRecordCount() == 0 {
		return nil
	}
	dropped, err := o.client.logs(ctx, logs)
	if err == nil {
		o.warn("events", dropped)
	}
	return err
}

func (o *otlp) warn(what string, dropped partial) {
	if dropped.rejected > 0 {
		o.logger.Warn("the endpoint took a batch and dropped part of it", "endpoint", o.config.Endpoint, "what", what, "dropped", dropped.rejected, "message", dropped.message)
	}
}
