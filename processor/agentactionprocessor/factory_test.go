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

// TestSharedDataIsNotTouched: the processor says that it changes data, so that
// the collector gives it a copy where others see the same batch.
func TestSharedDataIsNotTouched(t *testing.T) {
	t.Parallel()
	config := NewDefaultConfig()
	config.Rules = []RuleConfig{refundRule()}
	set := processortest.NewNopSettings(metadata.Type)
	traces, err := NewFactory().CreateTraces(t.Context(), set, config, consumertest.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	logs, err := NewFactory().CreateLogs(t.Context(), set, config, consumertest.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if !traces.Capabilities().MutatesData || !logs.Capabilities().MutatesData {
		t.Error("it does not say that it changes data")
	}
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
