package evidenceprocessor

import (
	"bytes"
	"encoding/json"
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/internal/record/delivery"
)

// oneLog is a batch of one record.
func oneLog(fill func(plog.LogRecord)) plog.Logs {
	ld := plog.NewLogs()
	fill(ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
	return ld
}

func firstLog(ld plog.Logs) plog.LogRecord {
	return ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
}

// fromCRM is a delivery of the source crm.
var fromCRM = delivery.Delivery{Source: "crm", Connection: "crm-poller", Trust: engine.Shared, ID: "dlv_7"}

// deliver seals a record as an evidence receiver of this process does.
func deliver(t testing.TB, entry plog.LogRecord, d delivery.Delivery) {
	t.Helper()
	s, err := delivery.NewSealer("")
	if err != nil {
		t.Fatal(err)
	}
	s.Put(entry, d)
}

// delivered is a batch of one record of the source crm.
func delivered(t testing.TB, body string) plog.Logs {
	t.Helper()
	return oneLog(func(entry plog.LogRecord) {
		entry.Body().SetStr(body)
		deliver(t, entry, fromCRM)
	})
}

func newTestJudge(t testing.TB, config *Config) *judge {
	t.Helper()
	j, err := newJudge(componenttest.NewNopTelemetrySettings(), config)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// process runs the processor over a batch and reads what it wrote.
func process(t testing.TB, config *Config, ld plog.Logs) record.Batch {
	t.Helper()
	if _, err := newTestJudge(t, config).logs(t.Context(), ld); err != nil {
		t.Fatal(err)
	}
	return record.FromLogs(ld)
}

// withRules is a configuration of these rules.
func withRules(rules ...RuleConfig) *Config {
	config := NewDefaultConfig()
	config.Rules = rules
	return config
}

// noteRule makes a fact of a note of the CRM.
func noteRule() RuleConfig {
	return RuleConfig{
		FactType: "note_added", SubjectID: `Body("order")`, SubjectKind: "order", OccurredAt: `Body("at")`,
		Attributes: AttributesConfig{Values: map[string]string{"by": `Body("by")`}},
	}
}

const note = `{"order":"order_10231","at":"2026-09-28T10:42:09.9Z","by":"jo"}`

// problem is what the processor wrote on the first record of a batch.
func problem(ld plog.Logs) string {
	text, ok := firstLog(ld).Attributes().Get(record.ErrorKey)
	if !ok {
		return ""
	}
	return text.Str()
}

func object(t testing.TB, text string) engine.Object {
	t.Helper()
	o, err := engine.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func decode(t testing.TB, text []byte, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		t.Fatal(err)
	}
}
