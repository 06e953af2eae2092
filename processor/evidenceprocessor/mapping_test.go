package evidenceprocessor

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/internal/record/delivery"
)

var update = flag.Bool("update", false, "write what the mappings make of testdata/mappings into it; read the difference before you commit it")

// sample is one event of a sender, and what has to become of it.
type sample struct {
	Event      string            `json:"event,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Body       json.RawMessage   `json:"body,omitempty"`
	Want       outcome           `json:"want"`
}

type outcome struct {
	Facts []wantedFact `json:"facts"`
	// Links are pairs of subjects.
	Links [][2]string `json:"links"`
	Error string      `json:"error,omitempty"`
}

type wantedFact struct {
	Type       string          `json:"fact_type"`
	Subject    string          `json:"subject_id"`
	Kind       string          `json:"subject_kind"`
	OccurredAt engine.Instant  `json:"occurred_at"`
	RawRef     string          `json:"raw_ref"`
	Attributes json.RawMessage `json:"attributes"`
}

func samples(t testing.TB, mapping string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "mappings", mapping, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("the mapping %s has no samples", mapping)
	}
	return files
}

func readSample(t testing.TB, file string) sample {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s sample
	decode(t, text, &s)
	return s
}

// logs is the sample as the evidence receiver delivers it.
func (s *sample) logs(t testing.TB, source string) plog.Logs {
	t.Helper()
	return oneLog(func(entry plog.LogRecord) {
		entry.SetEventName(s.Event)
		for name, value := range s.Attributes {
			entry.Attributes().PutStr(name, value)
		}
		if s.Body != nil {
			var compact bytes.Buffer
			if err := json.Compact(&compact, s.Body); err != nil {
				t.Fatal(err)
			}
			entry.Body().SetStr(compact.String())
		}
		deliver(t, entry, delivery.Delivery{Source: source, Connection: source, Trust: engine.Independent, ID: "dlv_1"})
	})
}

func mappingConfig(names ...string) *Config {
	config := NewDefaultConfig()
	for _, name := range names {
		m := MappingConfig{Name: name}
		if name == "sql_audit" {
			m.Source = "sql_audit"
		}
		config.Mappings = append(config.Mappings, m)
	}
	return config
}

func outcomeOf(t testing.TB, ld plog.Logs, got record.Batch) outcome {
	t.Helper()
	o := outcome{Facts: []wantedFact{}, Links: [][2]string{}, Error: problem(ld)}
	for _, f := range got.Facts {
		o.Facts = append(o.Facts, wantedFact{
			f.Fact.Type, f.Fact.SubjectID, f.Fact.SubjectKind, f.Fact.OccurredAt, f.Fact.RawRef, json.RawMessage(f.Fact.Attributes.Text()),
		})
	}
	for _, l := range got.Links {
		o.Links = append(o.Links, [2]string{l.Link.SubjectID, l.Link.LinkedSubjectID})
	}
	if len(got.Rejected) > 0 {
		t.Errorf("what was written does not read: %v", got.Rejected)
	}
	return o
}

func text(t testing.TB, value any) string {
	t.Helper()
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestMappings holds every ready mapping to its samples.
func TestMappings(t *testing.T) {
	t.Parallel()
	j := newTestJudge(t, mappingConfig(mappingNames...))
	for _, mapping := range mappingNames {
		for _, file := range samples(t, mapping) {
			t.Run(mapping+"/"+strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				t.Parallel()
				s := readSample(t, file)
				ld := s.logs(t, mapping)
				if _, err := j.logs(t.Context(), ld); err != nil {
					t.Fatal(err)
				}
				got := outcomeOf(t, ld, record.FromLogs(ld))
				if *update {
					s.Want = got
					if err := os.WriteFile(file, []byte(text(t, s)), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				if diff := cmp.Diff(text(t, s.Want), text(t, got)); diff != "" {
					t.Errorf("(-want +got; go test -run TestMappings -update writes it):\n%s", diff)
				}
			})
		}
	}
}

// TestEveryMappingRuleHasASample that makes its fact; a rule that never made one is a guess.
func TestEveryMappingRuleHasASample(t *testing.T) {
	t.Parallel()
	j := newTestJudge(t, mappingConfig(mappingNames...))
	made := map[string]bool{}
	for _, mapping := range mappingNames {
		for _, file := range samples(t, mapping) {
			s := readSample(t, file)
			for _, result := range j.try(s.logs(t, mapping), TryAs{}) {
				for _, r := range result.Rules {
					made[r.Rule] = made[r.Rule] || r.Fact != nil
				}
			}
		}
	}
	for _, g := range j.groups {
		for _, r := range g.rules {
			if !made[r.label] {
				t.Errorf("no sample makes a fact by %s", r.label)
			}
		}
	}
}

// TestOneRefundIsOneFact: a refund that several events tell of has one
// reference, and where they tell the same, the same content (decision D8).
func TestOneRefundIsOneFact(t *testing.T) {
	t.Parallel()
	j := newTestJudge(t, mappingConfig("stripe"))
	fact := func(name string) engine.Fact {
		s := readSample(t, filepath.Join("testdata", "mappings", "stripe", name+".json"))
		ld := s.logs(t, "stripe")
		if _, err := j.logs(t.Context(), ld); err != nil {
			t.Fatal(err)
		}
		for _, f := range record.FromLogs(ld).Facts {
			if f.Fact.Type == "refund_created" {
				return f.Fact
			}
		}
		t.Fatalf("%s makes no refund_created", name)
		return engine.Fact{}
	}
	first := fact("refund_created")
	for name, sameContent := range map[string]bool{
		"refund_created": true, "charge_refunded_old_version": true,
		"refund_updated_succeeded": false, "charge_refund_updated_old_version_succeeded": false,
	} {
		other := fact(name)
		if other.RawRef != first.RawRef {
			t.Errorf("%s: reference %s, want %s", name, other.RawRef, first.RawRef)
		}
		if same := other.ContentHash() == first.ContentHash(); same != sameContent {
			t.Errorf("%s: the same content %t, want %t", name, same, sameContent)
		}
	}
}
