package agentactionprocessor

import (
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/countersign-otel/countersign/processor/agentactionprocessor/internal/metadata"
)

func TestNothingComesAfterShutdown(t *testing.T) {
	config := NewDefaultConfig()
	config.Rules = []RuleConfig{refundRule()}
	processortest.VerifyShutdown(t, NewFactory(), config)
}

func TestFactoryRefusesWhatValidateWould(t *testing.T) {
	t.Parallel()
	bad := NewDefaultConfig()
	bad.Rules = []RuleConfig{{Tool: "x", Contract: "c", SubjectID: "Nope()"}}
	for want, config := range map[string]component.Config{
		`rules[0].subject_id: Nope(): 1:1: undefined function "Nope"`: bad,
		errConfig.Error(): &struct{}{},
	} {
		_, tracesErr := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), config, consumertest.NewNop())
		_, logsErr := NewFactory().CreateLogs(t.Context(), processortest.NewNopSettings(metadata.Type), config, consumertest.NewNop())
		for _, err := range []error{tracesErr, logsErr} {
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
}
