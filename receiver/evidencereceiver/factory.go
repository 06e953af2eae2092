package evidencereceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/metadata"
)

// NewFactory makes the factory of the evidence receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(metadata.Type, createDefaultConfig, receiver.WithLogs(createLogs, metadata.LogsStability))
}

var errConfig = errors.New("the configuration is of another component")

func createLogs(_ context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	config, ok := cfg.(*Config)
	if !ok {
		return nil, errConfig
	}
	return newServer(set, config, next)
}
