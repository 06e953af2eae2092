package evidencereceiver

import (
	"context"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/metadata"
)

// outcome is what became of a delivery; see metadata.yaml.
type outcome string

const (
	accepted           outcome = "accepted"
	challenge          outcome = "challenge"
	unsigned           outcome = "unsigned"
	malformedSignature outcome = "malformed_signature"
	badSignature       outcome = "bad_signature"
	expired            outcome = "expired"
	tooLarge           outcome = "too_large"
	unreadable         outcome = "unreadable"
	tooManyEvents      outcome = "too_many_events"
	busy               outcome = "busy"
	pipelineBusy       outcome = "pipeline_busy"
	pipelineRefused    outcome = "pipeline_refused"
)

var outcomes = []outcome{
	accepted, challenge, unsigned, malformedSignature, badSignature, expired,
	tooLarge, unreadable, tooManyEvents, busy, pipelineBusy, pipelineRefused,
}

// counters are the receiver's own metrics, with their attributes made once.
type counters struct {
	builder   *metadata.TelemetryBuilder
	endpoints map[string]endpointCounters
}

type endpointCounters struct {
	outcomes map[outcome]metric.MeasurementOption
	secrets  []metric.MeasurementOption
	plain    metric.MeasurementOption
}

func newCounters(settings component.TelemetrySettings, config *Config) (*counters, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	c := &counters{builder: builder, endpoints: map[string]endpointCounters{}}
	for name := range config.Endpoints {
		e := endpointCounters{outcomes: map[outcome]metric.MeasurementOption{}, plain: with(name)}
		for _, what := range outcomes {
			e.outcomes[what] = with(name, attribute.String("outcome", string(what)))
		}
		for i := range config.Endpoints[name].Secrets {
			e.secrets = append(e.secrets, with(name, attribute.String("secret", strconv.Itoa(i))))
		}
		c.endpoints[name] = e
	}
	return c, nil
}

func with(endpoint string, pairs ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(pairs, attribute.String("endpoint", endpoint))...))
}

func (c *counters) answered(ctx context.Context, endpoint string, a *answer, took time.Duration) {
	e := c.endpoints[endpoint]
	c.builder.ReceiverEvidenceDeliveries.Add(ctx, 1, e.outcomes[a.outcome])
	c.builder.ReceiverEvidenceDuration.Record(ctx, took.Seconds(), e.plain)
	if a.outcome == accepted {
		c.builder.ReceiverEvidenceEvents.Add(ctx, int64(a.events), e.plain)
	}
	if a.verified {
		c.builder.ReceiverEvidenceSecretUses.Add(ctx, 1, e.secrets[a.secret])
	}
}
