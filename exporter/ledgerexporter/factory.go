package ledgerexporter

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/countersign-otel/countersign/exporter/ledgerexporter/internal/metadata"
	"github.com/countersign-otel/countersign/ledger/open"
)

// NewFactory makes the factory of the ledger exporter. Creating one does not touch the store.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithTraces(createTraces, metadata.TracesStability),
		exporter.WithLogs(createLogs, metadata.LogsStability),
	)
}

var errConfig = errors.New("the configuration is of another component")

func createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	w, config, err := newFromFactory(set, cfg)
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewTraces(ctx, set, cfg, w.traces, options(w, config)...)
}

func createLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	w, config, err := newFromFactory(set, cfg)
	if err != nil {
		return nil, err
	}
	return exporterhelper.NewLogs(ctx, set, cfg, w.logs, options(w, config)...)
}

func newFromFactory(set exporter.Settings, cfg component.Config) (*writer, *Config, error) {
	config, ok := cfg.(*Config)
	if !ok {
		return nil, nil, errConfig
	}
	w, err := newWriter(set.TelemetrySettings, config, open.Ledger)
	return w, config, err
}

func options(w *writer, config *Config) []exporterhelper.Option {
	return []exporterhelper.Option{
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		exporterhelper.WithTimeout(config.TimeoutConfig),
		exporterhelper.WithQueue(config.QueueConfig),
		exporterhelper.WithRetry(config.RetryConfig),
		exporterhelper.WithStart(w.start),
		exporterhelper.WithShutdown(w.shutdown),
	}
}
