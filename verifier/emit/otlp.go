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

// deliver sends a batch, within what a lease leaves of time: what could not be
// tried by then is told later.
func (o *otlp) deliver(ctx context.Context, items []item) []error {
	ctx, cancel := context.WithTimeout(ctx, patience(o.config))
	defer cancel()
	failures := make([]error, len(items))
	o.halve(ctx, items, failures)
	return failures
}

// halve sends items. When the other side refuses them, it goes on with the
// halves, so that one event does not hold the others, and few requests find it.
func (o *otlp) halve(ctx context.Context, items []item, failures []error) {
	err := o.send(ctx, items)
	if middle := len(items) / 2; middle > 0 && errors.Is(err, errRefused) {
		o.halve(ctx, items[:middle], failures[:middle])
		o.halve(ctx, items[middle:], failures[middle:])
		return
	}
	for i := range failures {
		failures[i] = err
	}
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
