package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/cmd/countersign/collectorcheck"
)

const leakyCollector = `receivers: {otlp: {protocols: {grpc: }}}
processors: {evidence: {trust: shared}}
exporters: {ledger: {store: "${env:STORE}", role: evidence, sources: [stripe], sending_queue: {enabled: false}}}
service: {pipelines: {logs: {receivers: [otlp], processors: [evidence], exporters: [ledger]}}}
`

func TestCollectorCheck(t *testing.T) {
	t.Parallel()
	leaky := filepath.Join(t.TempDir(), "leaky.yaml")
	if err := os.WriteFile(leaky, []byte(leakyCollector), 0o600); err != nil {
		t.Fatal(err)
	}
	found := leaky + ":4:42: agent-telemetry-as-evidence: receiver otlp takes telemetry from whoever can reach it, and reaches ledger, which writes evidence, in pipeline logs; " +
		"whoever can send telemetry can then write evidence of its own acts; " +
		"give systems of record a receiver and a pipeline of their own; between collectors, set seal_key on the evidence receiver and the evidence processor, and no trust\n"
	for _, bad := range []badInput{
		{name: "findings", args: []string{"collector", "check", leaky}, code: exitNo, stdout: found, stderr: "countersign: 1 finding in 1 file\n"},
		{
			name: "nothing", args: []string{"collector", "check", "../../examples/collector.yaml", "../../examples/evidence/webhooks.yaml"},
			stdout: "2 files: nothing found\n",
		},
		{name: "ignored", args: []string{"collector", "check", leaky, "--ignore", "agent-telemetry-as-evidence"}, stdout: "1 file: nothing found\n"},
		{
			name: "no such rule", args: []string{"collector", "check", leaky, "--ignore", "open-listner"}, code: exitUsage,
			stderr: "countersign: --ignore: there is no rule \"open-listner\"; did you mean \"open-listener\"?\n",
		},
		{
			name: "no collector", args: []string{"collector", "check", "../../examples/verify.json"}, code: exitUsage,
			stderr: "countersign: ../../examples/verify.json:1:1: is no collector configuration: it has no service; name a file with receivers, exporters and service\n",
		},
	} {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			bad.check(t)
		})
	}
	t.Run("json", func(t *testing.T) {
		t.Parallel()
		code, stdout, _ := command(t, "collector", "check", leaky, "-o", "json")
		view := decodeAll(t, stdout)
		if code != exitNo || len(view) != 1 {
			t.Fatalf("exit code %d: %s", code, stdout)
		}
		one, _ := view[0]["findings"].([]any)
		if len(one) != 1 {
			t.Fatalf("findings %v", view[0]["findings"])
		}
		finding, _ := one[0].(map[string]any)
		want := []any{leaky, 4.0, 42.0, "service::pipelines::logs::receivers[0]", "agent-telemetry-as-evidence"}
		got := []any{finding["file"], finding["line"], finding["column"], finding["path"], finding["rule"]}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestCollectorRulesAreDocumented: docs/collector-check.md names every rule and what comes of breaking it.
func TestCollectorRulesAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/collector-check.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range collectorcheck.Rules() {
		if !strings.Contains(string(text), "| `"+rule.Name+"` | ") {
			t.Errorf("docs/collector-check.md does not describe %s", rule.Name)
		}
	}
}
