// Package sampling runs examples/sampling.yaml in a real tail_sampling processor.
package sampling

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/xconfmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
)

// example is the file as a collector reads it.
func example(t *testing.T) *confmap.Conf {
	t.Helper()
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              []string{"file:" + filepath.Join("..", "..", "..", "examples", "sampling.yaml")},
		ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory(), envprovider.NewFactory()},
		DefaultScheme:     "env",
	})
	if err != nil {
		t.Fatal(err)
	}
	conf, err := resolver.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conf
}

// TestKeepsActionsAndVerdicts: of three traces, the one with an action and the
// one of a verdict are kept, the whole of them; a verdict that comes as a child
// after the decision follows it.
func TestKeepsActionsAndVerdicts(t *testing.T) {
	t.Setenv("SAMPLING_WAIT", "100ms")
	t.Setenv("SAMPLING_PERCENT", "0")
	settings, err := example(t).Sub("processors::tail_sampling")
	if err != nil {
		t.Fatal(err)
	}
	factory := tailsamplingprocessor.NewFactory()
	config := factory.CreateDefaultConfig()
	if err := settings.Unmarshal(config); err != nil {
		t.Fatal(err)
	}
	if err := xconfmap.Validate(config); err != nil {
		t.Fatal(err)
	}
	backend := new(consumertest.TracesSink)
	sampler := start(t, factory, config, backend)
	// The decision cache knows a trace by the right half of its id.
	action, chat, verdict := pcommon.TraceID{15: 1}, pcommon.TraceID{15: 2}, pcommon.TraceID{15: 3}
	send := func(traces ptrace.Traces) {
		t.Helper()
		if err := sampler.ConsumeTraces(t.Context(), traces); err != nil {
			t.Fatal(err)
		}
	}
	send(trace(chat, "agent", "chat"))
	withAction := trace(action, "agent", "invoke_agent", "execute_tool")
	// As the agent_action processor leaves it.
	withAction.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(1).Attributes().PutEmptySlice("countersign.actions").AppendEmpty().SetEmptyMap().PutStr("action_id", "a")
	send(withAction)
	send(trace(verdict, "github.com/countersign-otel/countersign/verifier", "verify_action"))
	within(t, "two traces are kept", func() bool { return backend.SpanCount() == 3 })
	send(trace(action, "github.com/countersign-otel/countersign/verifier", "verify_action late"))
	send(trace(chat, "agent", "chat late"))
	within(t, "the late child follows", func() bool { return backend.SpanCount() == 4 })
	for _, traces := range backend.AllTraces() {
		for _, resource := range traces.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					if span.TraceID() == chat {
						t.Errorf("%s was kept", span.Name())
					}
				}
			}
		}
	}
}

// TestLedgerIsNotSampled: the pipeline that records has no sampler, and that of
// the backend has it behind what recognises actions.
func TestLedgerIsNotSampled(t *testing.T) {
	t.Parallel()
	conf := example(t)
	for key, want := range map[string]string{
		"service::pipelines::traces::exporters":          "[ledger]",
		"service::pipelines::traces/backend::receivers":  "[otlp]",
		"service::pipelines::traces/backend::processors": "[memory_limiter agent_action tail_sampling]",
	} {
		if got := fmt.Sprint(conf.Get(key)); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if conf.IsSet("service::pipelines::traces::processors") || conf.IsSet("service::pipelines::traces/verdicts") {
		t.Error("the pipelines that record and that take verdicts are to stay as they are")
	}
}

func start(t *testing.T, factory processor.Factory, config any, backend *consumertest.TracesSink) processor.Traces {
	t.Helper()
	sampler, err := factory.CreateTraces(t.Context(), processortest.NewNopSettings(factory.Type()), config, backend)
	if err != nil {
		t.Fatal(err)
	}
	if err := sampler.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sampler.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return sampler
}

// trace is one scope with spans of these names.
func trace(id pcommon.TraceID, scope string, names ...string) ptrace.Traces {
	traces := ptrace.NewTraces()
	spans := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	spans.Scope().SetName(scope)
	for i, name := range names {
		span := spans.Spans().AppendEmpty()
		span.SetTraceID(id)
		span.SetSpanID(pcommon.SpanID{id[15], byte(len(name)), byte(i)})
		span.SetName(name)
	}
	return traces
}

func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		<-ticker.C
	}
}
