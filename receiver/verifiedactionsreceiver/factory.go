package verifiedactionsreceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/metadata"
)

// NewFactory makes the factory of the verified_actions receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithTraces(createTraces, metadata.TracesStability),
	)
}

var errConfig = errors.New("the configuration is of another component")

func createTraces(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
	config, ok := cfg.(*Config)
	if !ok {
		return nil, errConfig
	}
	return newServer(set, config, next)
}
