package evidenceprocessor

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/countersign-otel/countersign/internal/settings"
	"github.com/countersign-otel/countersign/processor/evidenceprocessor/internal/metadata"
)

// NewFactory makes the factory of the evidence processor.
func NewFactory() processor.Factory {
	return processor.NewFactory(metadata.Type, createDefaultConfig, processor.WithLogs(createLogs, metadata.LogsStability))
}

func createLogs(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
	j, err := newJudge(set.TelemetrySettings, cfg)
	if err != nil {
		return nil, err
	}
	return processorhelper.NewLogs(ctx, set, cfg, next, j.logs,
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}), processorhelper.WithShutdown(j.shutdown))
}

// judge is the processor. It keeps nothing between batches.
type judge struct {
	*compiled
	tenancy   *settings.Tenancy
	telemetry *metadata.TelemetryBuilder
	counters  counters
	now       func() time.Time
}

var errConfig = errors.New("the configuration is of another component")

func newJudge(settings component.TelemetrySettings, cfg component.Config) (*judge, error) {
	config, ok := cfg.(*Config)
	if !ok {
		return nil, errConfig
	}
	j, err := newBareJudge(config)
	if err != nil {
		return nil, err
	}
	if j.telemetry, err = metadata.NewTelemetryBuilder(settings); err != nil {
		return nil, err
	}
	j.counters = newCounters(j.telemetry, j.labels)
	return j, nil
}

// newBareJudge makes one that counts nothing.
func newBareJudge(config *Config) (*judge, error) {
	compiled, err := config.compile()
	if err != nil {
		return nil, err
	}
	return &judge{compiled: compiled, tenancy: &config.Tenancy, now: time.Now}, nil
}

func (j *judge) shutdown(context.Context) error {
	j.telemetry.Shutdown()
	return nil
}
