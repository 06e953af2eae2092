package agentactionprocessor

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.uber.org/zap"

	"github.com/countersign-otel/countersign/internal/settings"
	"github.com/countersign-otel/countersign/processor/agentactionprocessor/internal/metadata"
)

// NewFactory makes the factory of the agent_action processor.
func NewFactory() processor.Factory {
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithTraces(createTraces, metadata.TracesStability),
		processor.WithLogs(createLogs, metadata.LogsStability),
	)
}

var capabilities = consumer.Capabilities{MutatesData: true}

func createTraces(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	p, err := newAnnotator(set.TelemetrySettings, cfg)
	if err != nil {
		return nil, err
	}
	return processorhelper.NewTraces(ctx, set, cfg, next, p.traces,
		processorhelper.WithCapabilities(capabilities), processorhelper.WithShutdown(p.shutdown))
}

func createLogs(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
	p, err := newAnnotator(set.TelemetrySettings, cfg)
	if err != nil {
		return nil, err
	}
	return processorhelper.NewLogs(ctx, set, cfg, next, p.logs,
		processorhelper.WithCapabilities(capabilities), processorhelper.WithShutdown(p.shutdown))
}

// annotator is the processor of both signals. Between batches it
// keeps only when it warned.
type annotator struct {
	*compiled
	tenancy   *settings.Tenancy
	metadata  metadataKeys
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	counters  counters
	warnings  warnings
	now       func() time.Time
}

var errConfig = errors.New("the configuration is of another component")

func newAnnotator(settings component.TelemetrySettings, cfg component.Config) (*annotator, error) {
	config, ok := cfg.(*Config)
	if !ok {
		return nil, errConfig
	}
	p, err := newBareAnnotator(config)
	if err != nil {
		return nil, err
	}
	if p.telemetry, err = metadata.NewTelemetryBuilder(settings); err != nil {
		return nil, err
	}
	p.logger = settings.Logger
	p.warnings.logger = p.logger
	p.counters = newCounters(p.telemetry, p.heads)
	return p, nil
}

// newBareAnnotator makes one that counts and logs nothing.
func newBareAnnotator(config *Config) (*annotator, error) {
	compiled, err := config.compile()
	if err != nil {
		return nil, err
	}
	return &annotator{
		compiled: compiled,
		tenancy:  &config.Tenancy,
		metadata: newMetadataKeys(&config.VerifiedActions),
		logger:   zap.NewNop(),
		warnings: warnings{logger: zap.NewNop(), rules: make([]warned, len(config.Rules))},
		now:      time.Now,
	}, nil
}

func (p *annotator) shutdown(context.Context) error {
	p.telemetry.Shutdown()
	return nil
}
