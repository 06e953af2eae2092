package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gopkg.in/yaml.v3"

	"github.com/countersign-otel/countersign/internal/pgserver"
)

// TestSQLQueryExampleReadsATable runs the statement of examples/evidence/sqlquery.yaml
// on PostgreSQL and hands its rows over as the sqlquery receiver does: facts,
// and in the last row, which the next poll goes on from, how far the table has come.
func TestSQLQueryExampleReadsATable(t *testing.T) {
	t.Parallel()
	const example = "../../examples/evidence/sqlquery.yaml"
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Receivers struct {
			Query struct {
				Queries []struct {
					SQL      string `yaml:"sql"`
					Tracking string `yaml:"tracking_column"`
				} `yaml:"queries"`
			} `yaml:"sqlquery"`
		} `yaml:"receivers"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	query := config.Receivers.Query.Queries[0]
	conn, err := pgx.Connect(t.Context(), pgserver.Start(t).Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	began := time.Now().UTC().Add(-time.Minute).Truncate(time.Second)
	if _, err := conn.Exec(t.Context(), `CREATE TABLE audit (id bigint PRIMARY KEY, action text, order_id text, at timestamptz, details jsonb, ticket_id text);
		INSERT INTO audit VALUES (2, 'order_cancelled', 'order_10231', '2026-09-28 12:42:09+02', '{"by": "jo"}', NULL),
			(1, 'refund_created', 'order_10231', '2026-09-28 10:42:07+00', NULL, 'ticket_9')`); err != nil {
		t.Fatal(err)
	}
	// The receiver hands the tracking value over as text.
	rows, err := conn.Query(t.Context(), strings.ReplaceAll(query.SQL, "$$", "$"), pgx.QueryExecModeSimpleProtocol, "0")
	if err != nil {
		t.Fatal(err)
	}
	read, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		t.Fatal(err)
	}
	if len(read) != 3 || read[2]["event_type"] != "complete" || read[2][query.Tracking] != int64(2) {
		t.Fatalf("rows %v", read)
	}
	logs := filepath.Join(t.TempDir(), "logs.json")
	if err := os.WriteFile(logs, logsOfRows(t, read), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command(t, "facts", "try", "--input", logs, "--config", example, "-o", "json")
	var results []struct {
		Rules []struct {
			Fact *struct {
				FactType   string `json:"fact_type"`
				SubjectID  string `json:"subject_id"`
				OccurredAt string `json:"occurred_at"`
			} `json:"fact"`
			Watermark time.Time `json:"watermark"`
		} `json:"rules"`
	}
	if err := json.Unmarshal([]byte(stdout), &results); code != 0 || err != nil {
		t.Fatalf("exit code %d: %s%v", code, stderr, err)
	}
	var made []string
	var reported time.Time
	for _, r := range results {
		for _, rule := range r.Rules {
			if f := rule.Fact; f != nil {
				made = append(made, f.FactType+" "+f.SubjectID+" "+f.OccurredAt)
			}
			if !rule.Watermark.IsZero() {
				reported = rule.Watermark
			}
		}
	}
	if got, want := strings.Join(made, ", "), "refund_created order_10231 2026-09-28T10:42:07Z, order_cancelled order_10231 2026-09-28T10:42:09Z"; got != want {
		t.Errorf("facts %s, want %s", got, want)
	}
	if reported.Before(began) || reported.After(time.Now().Add(-time.Minute)) {
		t.Errorf("reported up to %s, a minute before the poll at about %s", reported, began.Add(time.Minute))
	}
}

// logsOfRows are log records with columns as attributes.
func logsOfRows(t *testing.T, rows []map[string]any) []byte {
	t.Helper()
	type attribute struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	}
	type entry struct {
		Attributes []attribute `json:"attributes"`
	}
	var entries []entry
	for _, row := range rows {
		var e entry
		for column, value := range row {
			text, ok := value.(string)
			if !ok {
				encoded, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				text = string(encoded)
			}
			e.Attributes = append(e.Attributes, attribute{column, map[string]any{"stringValue": text}})
		}
		entries = append(entries, e)
	}
	document, err := json.Marshal(map[string]any{"resourceLogs": []any{map[string]any{"scopeLogs": []any{map[string]any{"logRecords": entries}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return document
}
