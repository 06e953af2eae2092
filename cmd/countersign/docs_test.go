package main

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/verifier/serve"
)

// TestConfigurationIsDocumented: no setting of the sidecar is missing in docs/configuration.md.
func TestConfigurationIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range serve.Settings() {
		if !strings.Contains(string(text), "`"+setting.Key+"`") {
			t.Errorf("docs/configuration.md does not describe %s", setting.Key)
		}
	}
}
