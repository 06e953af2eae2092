package agentactionprocessor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	xgolden "github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/plogtest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/countersign-otel/countersign/processor/agentactionprocessor/internal/metadata"
)

var update = os.Getenv("UPDATE_GOLDEN") != ""

const updateCommand = "if it is meant, run UPDATE_GOLDEN=1 go test ./processor/agentactionprocessor"

// golden compares bytes with a file.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("differs from %s (-want +got); %s:\n%s", file, updateCommand, diff)
	}
}

// goldenConfig is what the README would make of the samples.
func goldenConfig(t *testing.T) *Config {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "golden", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := NewFactory().CreateDefaultConfig().(*Config)
	if err := conf.Unmarshal(config); err != nil {
		t.Fatal(err)
	}
	if err := confmap.Validate(config); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestGoldenTraces sends samples through the processor as the collector runs
// it, and pins the telemetry that comes out.
func TestGoldenTraces(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"genai-semconv", "mcp-semconv", "openinference-vercel", "vercel-ai-v6", "pydantic-ai-v5", "strands"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			td, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(readFile(t, samples, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			sink := &consumertest.TracesSink{}
			p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), goldenConfig(t), sink)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Start(t.Context(), componenttest.NewNopHost()); err != nil {
				t.Fatal(err)
			}
			if err := p.ConsumeTraces(t.Context(), td); err != nil {
				t.Fatal(err)
			}
			if err := p.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "golden", name+".yaml")
			if update {
				if err := xgolden.WriteTracesToFile(file, sink.AllTraces()[0]); err != nil {
					t.Fatal(err)
				}
			}
			want, err := xgolden.ReadTraces(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := ptracetest.CompareTraces(want, sink.AllTraces()[0]); err != nil {
				t.Errorf("differs from %s; %s: %v", file, updateCommand, err)
			}
		})
	}
}

func TestGoldenLogs(t *testing.T) {
	t.Parallel()
	ld, err := new(plog.JSONUnmarshaler).UnmarshalLogs(readFile(t, samples, "claude-code-logs.json"))
	if err != nil {
		t.Fatal(err)
	}
	sink := &consumertest.LogsSink{}
	p, err := NewFactory().CreateLogs(t.Context(), processortest.NewNopSettings(metadata.Type), goldenConfig(t), sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	if err := p.ConsumeLogs(t.Context(), ld); err != nil {
		t.Fatal(err)
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "golden", "claude-code-logs.yaml")
	if update {
		if err := xgolden.WriteLogsToFile(file, sink.AllLogs()[0]); err != nil {
			t.Fatal(err)
		}
	}
	want, err := xgolden.ReadLogs(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := plogtest.CompareLogs(want, sink.AllLogs()[0]); err != nil {
		t.Errorf("differs from %s; %s: %v", file, updateCommand, err)
	}
}
