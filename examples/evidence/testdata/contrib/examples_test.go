// Package contrib loads the examples behind receivers of
// opentelemetry-collector-contrib with the real factories, as the collector's
// own validate does. It is a module of its own, because those receivers bring
// every database driver and message broker with them.
package contrib

import (
	"path/filepath"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/filelogreceiver"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/kafkareceiver"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/otelcol/otelcoltest"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/receiver"

	"github.com/countersign-otel/countersign/exporter/ledgerexporter"
	"github.com/countersign-otel/countersign/processor/evidenceprocessor"
	"github.com/countersign-otel/countersign/receiver/evidencereceiver"
)

func factories(t *testing.T) otelcol.Factories {
	t.Helper()
	var f otelcol.Factories
	var errs [4]error
	f.Receivers, errs[0] = otelcol.MakeFactoryMap[receiver.Factory](
		evidencereceiver.NewFactory(), kafkareceiver.NewFactory(), filelogreceiver.NewFactory(), standIn("sqlquery"), standIn("webhookevent"))
	f.Processors, errs[1] = otelcol.MakeFactoryMap[processor.Factory](evidenceprocessor.NewFactory())
	f.Exporters, errs[2] = otelcol.MakeFactoryMap[exporter.Factory](ledgerexporter.NewFactory())
	f.Extensions, errs[3] = otelcol.MakeFactoryMap[extension.Factory](filestorage.NewFactory())
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// standIn takes the place of a receiver whose module is not among those of this
// release that can be had: its own settings are not looked at, all else is.
func standIn(name string) receiver.Factory {
	type config struct {
		Anything map[string]any `mapstructure:",remain"`
	}
	return receiver.NewFactory(component.MustNewType(name), func() component.Config { return &config{} })
}

func TestExamplesLoad(t *testing.T) {
	for name, value := range map[string]string{
		"COUNTERSIGN_STORE": "sqlite:countersign.db", "COUNTERSIGN_DIR": t.TempDir(),
		"ERP_DATABASE": "host=localhost dbname=erp", "EVIDENCE_KEY": "key-of-the-pipeline", "CRM_EVIDENCE_KEY": "key-of-the-pipeline-of-the-crm",
		"STRIPE_WEBHOOK_SECRET": "whsec_0123456789abcdef", "SHOPIFY_APP_SECRET": "shpss_0123456789abcdef",
		"ZENDESK_WEBHOOK_SECRET": "0123456789abcdef0123", "GITHUB_WEBHOOK_SECRET": "0123456789abcdef0123",
	} {
		t.Setenv(name, value)
	}
	files, err := filepath.Glob("../../*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if _, err := otelcoltest.LoadConfigAndValidate(file, factories(t)); err != nil {
				t.Error(err)
			}
		})
	}
}
