package collectorcheck

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// part replaces a part of a configuration that is good as a whole.
type part struct{ old, new string }

// evidenceConfig and agentsConfig are good, and what the cases below change.
const evidenceConfig = `receivers:
  evidence:
    endpoints: {stripe: {scheme: stripe, secrets: ["${env:SECRET}"]}}
processors:
  evidence: {mappings: [stripe]}
exporters:
  ledger:
    store: ${env:STORE}
    role: evidence
    sources: [stripe]
    sending_queue: {storage: file_storage}
extensions:
  file_storage: {directory: /var/lib/countersign/queue, fsync: true}
service:
  extensions: [file_storage]
  pipelines:
    logs:
      receivers: [evidence]
      processors: [evidence]
      exporters: [ledger]
`

const agentsConfig = `receivers:
  otlp: {protocols: {http: {endpoint: "localhost:4318"}}}
  otlp/verdicts: {protocols: {http: {endpoint: "localhost:4319"}}}
processors:
  agent_action: {}
exporters:
  debug:
  ledger:
    store: ${env:STORE}
    sending_queue: {storage: file_storage}
extensions:
  file_storage: {directory: /var/lib/countersign/queue, fsync: true}
service:
  extensions: [file_storage]
  pipelines:
    traces:
      receivers: [otlp]
      processors: [agent_action]
      exporters: [ledger, debug]
    traces/verdicts:
      receivers: [otlp/verdicts]
      exporters: [debug]
`

// check is a case: what becomes of a good configuration when parts of it are replaced.
type check struct {
	rule, name, base string
	parts            []part
	want             []string // line:col: problem
}

var (
	evidencePipeline = "      receivers: [evidence]\n      processors: [evidence]\n"
	queue            = "    sending_queue: {storage: file_storage}\n"
	storage          = "  file_storage: {directory: /var/lib/countersign/queue, fsync: true}\n"
	agentsPipeline   = "      receivers: [otlp]\n      processors: [agent_action]\n"
)

var checks = []check{
	{"agent-telemetry-as-evidence", "otlp beside the webhooks", evidenceConfig,
		[]part{{"receivers:\n", "receivers:\n  otlp: {protocols: {http: }}\n"}, {"[evidence]\n      processors", "[evidence, otlp]\n      processors"}},
		[]string{"19:29: receiver otlp takes telemetry from whoever can reach it, and reaches ledger, which writes evidence, in pipeline logs"}},
	{"agent-telemetry-as-evidence", "through a connector", evidenceConfig,
		[]part{
			{"receivers:\n", "connectors:\n  forward:\nreceivers:\n  verified_actions: {verified_actions: {tokens: [{token: \"${env:T}\"}]}}\n"},
			{"      receivers: [evidence]", "      receivers: [evidence, forward]"},
			{"  pipelines:\n", "  pipelines:\n    logs/in: {receivers: [verified_actions], exporters: [forward]}\n"},
		},
		[]string{"20:27: receiver verified_actions takes telemetry from whoever can reach it, and reaches ledger, which writes evidence, in pipeline logs through forward"}},
	{"agent-telemetry-as-evidence", "a topic that agents write", evidenceConfig,
		[]part{
			{"receivers:\n", "receivers:\n  kafka: {message_marking: {after: true}}\n"},
			{"processors:\n", "processors:\n  agent_action:\n"},
			{"[evidence]\n      processors", "[kafka]\n      processors"},
			{"exporters:\n", "exporters:\n  ledger/agents:\n    store: ${env:STORE}\n    sending_queue: {storage: file_storage}\n"},
			{"  pipelines:\n", "  pipelines:\n    logs/agents: {receivers: [kafka], processors: [agent_action], exporters: [ledger/agents]}\n"},
		},
		[]string{"24:19: receiver kafka also feeds the agents' pipeline logs/agents, and reaches ledger, which writes evidence, in pipeline logs"}},
	{"agent-telemetry-as-evidence", "sealed records of another collector", evidenceConfig,
		[]part{
			{"receivers:\n", "receivers:\n  otlp: {protocols: {http: }}\n"}, {"[evidence]\n      processors", "[otlp]\n      processors"},
			{"{mappings: [stripe]}", "{mappings: [stripe], seal_key: \"${env:SEAL}\"}"},
		}, nil},
	{"agent-telemetry-as-evidence", "sealed or not", evidenceConfig,
		[]part{
			{"receivers:\n", "receivers:\n  otlp: {protocols: {http: }}\n"}, {"[evidence]\n      processors", "[otlp]\n      processors"},
			{"{mappings: [stripe]}", "{mappings: [stripe], trust: shared, seal_key: \"${env:SEAL}\"}"},
		},
		[]string{"19:19: receiver otlp takes telemetry from whoever can reach it, and reaches ledger, which writes evidence, in pipeline logs"}},
	{"agent-telemetry-as-evidence", "connectors in a circle", evidenceConfig,
		[]part{
			{"receivers:\n", "connectors: {forward: , forward/b: }\nreceivers:\n"},
			{evidencePipeline + "      exporters: [ledger]", "      receivers: [evidence, forward]\n      processors: [evidence]\n      exporters: [ledger, forward/b]\n    logs/b: {receivers: [forward/b], exporters: [forward]}"},
		}, nil},

	{"unguarded-attributes", "a recorder without its processor", agentsConfig, []part{{"      processors: [agent_action]\n", ""}},
		[]string{"17:19: what otlp receives reaches ledger in pipeline traces past no processor of this project"}},
	{"unguarded-attributes", "the processor before the connector", agentsConfig,
		[]part{
			{"receivers:\n", "connectors:\n  forward:\nreceivers:\n"},
			{agentsPipeline + "      exporters: [ledger, debug]", agentsPipeline + "      exporters: [forward]\n    traces/out: {receivers: [forward], exporters: [ledger]}"},
		}, nil},

	{"verdicts-among-agents", "in the agents' pipeline", agentsConfig, []part{{"[otlp]", "[otlp, otlp/verdicts]"}},
		[]string{"17:25: receiver otlp/verdicts is named for verdicts and feeds what records, in pipeline traces"}},
	{"verdicts-among-agents", "one door for both", agentsConfig, []part{{"[otlp/verdicts]", "[otlp/verdicts, otlp]"}},
		[]string{"21:19: receiver otlp/verdicts is named for verdicts and shares pipeline traces/verdicts with others"}},
	{"verdicts-among-agents", "in no pipeline", agentsConfig,
		[]part{{"    traces/verdicts:\n      receivers: [otlp/verdicts]\n      exporters: [debug]\n", ""}},
		[]string{"3:3: receiver otlp/verdicts is named for verdicts and in no pipeline, so that it does not start"}},

	{"verdicts-among-agents", "a door of their own", agentsConfig, nil, nil},

	{"trust-not-earned", "a topic that is believed", evidenceConfig,
		[]part{
			{"receivers:\n", "receivers:\n  kafka: {message_marking: {after: true}}\n"}, {"[evidence]\n      processors", "[kafka]\n      processors"},
			{"{mappings: [stripe]}", "{mappings: [stripe], trust: independent}"},
		},
		[]string{"6:34: processor evidence believes what comes from kafka as if it were the system of record"}},
	{"trust-not-earned", "a poll of the database", evidenceConfig,
		[]part{
			{"receivers:\n", "receivers:\n  sqlquery:\n"}, {"[evidence]\n      processors", "[sqlquery]\n      processors"},
			{"{mappings: [stripe]}", "{mappings: [stripe], trust: independent}"},
		}, nil},

	{"unauthenticated-webhook", "no header", evidenceConfig, []part{{"receivers:\n", "receivers:\n  webhookevent: {endpoint: \"localhost:8088\"}\n"}},
		[]string{"2:3: receiver webhookevent asks nobody who they are"}},
	{"unauthenticated-webhook", "a header", evidenceConfig,
		[]part{{"receivers:\n", "receivers:\n  webhookevent: {required_header: {key: X, value: \"${env:KEY}\"}}\n"}}, nil},

	{"held-in-memory", "batch before the queue", agentsConfig, []part{{"  agent_action: {}\n", "  agent_action: {}\n  batch:\n"}, {"[agent_action]", "[agent_action, batch]"}},
		[]string{"19:34: processor batch acknowledges what it holds in memory, before the queue of ledger in pipeline traces"}},
	{"held-in-memory", "batch before another exporter", agentsConfig,
		[]part{{"  agent_action: {}\n", "  agent_action: {}\n  batch:\n"}, {"      exporters: [debug]", "      processors: [batch]\n      exporters: [debug]"}}, nil},

	{"retry-gives-up", "after five minutes", evidenceConfig, []part{{queue, queue + "    retry_on_failure: {max_elapsed_time: 5m}\n"}},
		[]string{"12:24: exporter ledger gives up after 5m"}},
	{"retry-gives-up", "at once", evidenceConfig, []part{{queue, queue + "    retry_on_failure: {enabled: false}\n"}},
		[]string{"12:24: exporter ledger gives up at the first failure"}},
	{"retry-gives-up", "never", evidenceConfig, []part{{queue, queue + "    retry_on_failure: {max_elapsed_time: 0s, max_interval: 10s}\n"}}, nil},

	{"queue-in-memory", "no queue settings", evidenceConfig, []part{{queue, ""}}, []string{"7:3: the queue of exporter ledger has no storage"}},
	{"queue-in-memory", "storage that is not declared", evidenceConfig, []part{{storage, "  file_storage/other: {directory: /d, fsync: true}\n"}},
		[]string{"11:21: exporter ledger keeps its queue in file_storage, which is not declared"}},
	{"queue-in-memory", "storage that is not started", evidenceConfig, []part{{"  extensions: [file_storage]\n", ""}},
		[]string{"11:21: exporter ledger keeps its queue in file_storage, which is not started"}},
	{"queue-in-memory", "the sender waits for the database", evidenceConfig, []part{{queue, "    sending_queue: {wait_for_result: true}\n"}}, nil},
	{"queue-in-memory", "settings from elsewhere", evidenceConfig, []part{{queue, "    sending_queue: ${file:queue.yaml}\n"}}, nil},

	{"queue-blocks", "on overflow", evidenceConfig, []part{{queue, "    sending_queue: {storage: file_storage, block_on_overflow: true}\n"}},
		[]string{"11:44: exporter ledger holds its senders while the queue is full"}},
	{"queue-blocks", "no room", evidenceConfig, []part{{queue, "    sending_queue: {storage: file_storage, queue_size: 1}\n"}},
		[]string{"11:44: the queue of exporter ledger has no room"}},
	{"queue-blocks", "room", evidenceConfig, []part{{queue, "    sending_queue: {storage: file_storage, queue_size: 5000, block_on_overflow: false}\n"}}, nil},

	{"queue-not-durable", "in all three ways", evidenceConfig, []part{{storage, "  file_storage: {directory: \"${env:DIR:-/tmp/queue}\", recreate: true}\n"}},
		[]string{
			"13:3: file_storage does not flush to the disk: a power cut loses what was acknowledged, or the whole file",
			"13:18: file_storage keeps its files in a folder that is emptied",
			"13:55: file_storage begins with an empty file when it cannot read the old one",
		}},
	{"queue-not-durable", "another queue's storage", evidenceConfig,
		[]part{{storage, storage + "  file_storage/other: {directory: /tmp/queue}\n"}}, nil},

	{"store-in-memory", "memory", evidenceConfig, []part{{"${env:STORE}", `"memory:"`}}, []string{"8:5: exporter ledger writes into memory"}},
	{"store-in-memory", "a default", evidenceConfig, []part{{"${env:STORE}", "${env:STORE:-memory:}"}}, []string{"8:5: exporter ledger writes into memory"}},
	{"store-in-memory", "a file", evidenceConfig, []part{{"${env:STORE}", "${env:STORE:-sqlite:countersign.db}"}}, nil},

	{"store-not-durable", "a temporary folder", evidenceConfig, []part{{"${env:STORE}", "sqlite:/tmp/countersign.db"}},
		[]string{"8:5: exporter ledger keeps its store in a folder that is emptied"}},
	{"store-not-durable", "a default", evidenceConfig, []part{{"${env:STORE}", "${env:STORE:-sqlite:/var/tmp/x/../c.db?_pragma=x}"}},
		[]string{"8:5: exporter ledger keeps its store in a folder that is emptied"}},
	{"store-not-durable", "another folder", evidenceConfig, []part{{"${env:STORE}", "sqlite:/var/lib/tmp/countersign.db"}}, nil},
	{"store-not-durable", "a server", evidenceConfig, []part{{"${env:STORE}", "postgres:///tmp?sslmode=verify-full"}}, nil},

	{"filtered-evidence", "before the rules", evidenceConfig,
		[]part{{"processors:\n", "processors:\n  filter/x: {error_mode: ignore}\n"}, {"[evidence]\n      exporters", "[filter/x, evidence]\n      exporters"}},
		[]string{"20:20: processor filter/x drops records before ledger, which writes evidence, in pipeline logs"}},
	{"filtered-evidence", "before what agents do", agentsConfig,
		[]part{{"  agent_action: {}\n", "  agent_action: {}\n  filter: {error_mode: ignore}\n"}, {"[agent_action]", "[filter, agent_action]"}}, nil},

	{"sampled-away", "a sampler", agentsConfig,
		[]part{{"  agent_action: {}\n", "  agent_action: {}\n  probabilistic_sampler: {sampling_percentage: 10}\n"}, {"[agent_action]", "[agent_action, probabilistic_sampler]"}},
		[]string{"19:34: processor probabilistic_sampler drops telemetry before ledger in pipeline traces"}},
	{"sampled-away", "a sampler beside", agentsConfig,
		[]part{
			{"  agent_action: {}\n", "  agent_action: {}\n  probabilistic_sampler: {sampling_percentage: 10}\n"},
			{"      exporters: [debug]", "      processors: [probabilistic_sampler]\n      exporters: [debug]"},
		}, nil},

	{"dropped-on-error", "the default", agentsConfig,
		[]part{{"  agent_action: {}\n", "  agent_action: {}\n  transform: {trace_statements: []}\n"}, {"[agent_action]", "[transform, agent_action]"}},
		[]string{"6:3: processor transform passes errors on, before a ledger in pipeline traces"}},
	{"dropped-on-error", "ignored", agentsConfig,
		[]part{{"  agent_action: {}\n", "  agent_action: {}\n  transform: {error_mode: ignore}\n"}, {"[agent_action]", "[transform, agent_action]"}}, nil},

	{"reader-does-not-wait", "a topic", evidenceConfig,
		[]part{{"receivers:\n", "receivers:\n  kafka: {message_marking: {on_error: true}}\n"}, {"[evidence]\n      processors", "[kafka]\n      processors"}},
		[]string{
			"2:11: receiver kafka marks messages as read before the pipeline took them",
			"2:29: receiver kafka marks messages as read that the pipeline refused",
		}},
	{"reader-does-not-wait", "a file", evidenceConfig,
		[]part{{"receivers:\n", "receivers:\n  filelog: {retry_on_failure: {enabled: true}}\n"}, {"[evidence]\n      processors", "[filelog]\n      processors"}},
		[]string{
			"2:3: receiver filelog forgets at a restart how far it had read",
			"2:13: receiver filelog gives up after five minutes",
		}},
	{"reader-does-not-wait", "a file, without retries", evidenceConfig,
		[]part{{"receivers:\n", "receivers:\n  filelog: {storage: file_storage}\n"}, {"[evidence]\n      processors", "[filelog]\n      processors"}},
		[]string{"2:3: receiver filelog goes on when the pipeline refuses its lines"}},
	{"reader-does-not-wait", "a file that waits", evidenceConfig,
		[]part{
			{"receivers:\n", "receivers:\n  filelog: {storage: file_storage, retry_on_failure: {enabled: true, max_elapsed_time: 0s}}\n"},
			{"[evidence]\n      processors", "[filelog]\n      processors"},
		}, nil},

	{"open-listener", "everywhere", agentsConfig, []part{{`"localhost:4318"`, `"0.0.0.0:4318"`}},
		[]string{
			"2:29: receiver otlp listens beyond this machine without TLS",
			"2:29: receiver otlp listens beyond this machine and asks nobody who they are",
		}},
	{"open-listener", "without a host", evidenceConfig, []part{{"  evidence:\n", "  evidence:\n    endpoint: :4321\n"}},
		[]string{"3:5: receiver evidence listens beyond this machine without TLS"}},
	{"open-listener", "pprof", agentsConfig, []part{{"extensions:\n", "extensions:\n  pprof: {endpoint: 0.0.0.0:1777}\n"}},
		[]string{"12:11: extension pprof shows the collector's inside beyond this machine"}},
	{"open-listener", "with certificates", agentsConfig,
		[]part{{`"localhost:4318"`, `"0.0.0.0:4318", tls: {cert_file: a, key_file: b, client_ca_file: c}`}}, nil},
	{"open-listener", "loopback", agentsConfig, []part{{`"localhost:4318"`, `"[::1]:4318"`}}, nil},
	{"open-listener", "an address from elsewhere", agentsConfig, []part{{`"localhost:4318"`, `"${env:LISTEN}"`}}, nil},

	{"secret-in-file", "a signing secret", evidenceConfig, []part{{"${env:SECRET}", "whsec_1"}},
		[]string{"3:52: receivers::evidence::endpoints::stripe::secrets[0] holds a secret as it is"}},
	{"secret-in-file", "a password of the store", evidenceConfig, []part{{"${env:STORE}", "postgres://u:p@localhost/d"}},
		[]string{"8:5: the store of ledger holds a password as it is"}},
	{"secret-in-file", "a header's value", evidenceConfig,
		[]part{{"receivers:\n", "receivers:\n  webhookevent: {required_header: {key: X, value: k}}\n"}},
		[]string{"2:44: receivers::webhookevent::required_header::value holds a secret as it is"}},
	{"secret-in-file", "part of it from elsewhere", evidenceConfig, []part{{"${env:STORE}", "postgres://u:${env:P}@localhost/d"}}, nil},

	{"store-without-tls", "another machine", evidenceConfig, []part{{"${env:STORE}", "postgres://u@db.example/d?sslmode=require"}},
		[]string{"8:5: exporter ledger does not check whom it writes to"}},
	{"store-without-tls", "verified", evidenceConfig, []part{{"${env:STORE}", "postgres://u@db.example/d?sslmode=verify-full"}}, nil},
}

func (c *check) document(t *testing.T) string {
	t.Helper()
	text := c.base
	for _, p := range c.parts {
		if !strings.Contains(text, p.old) {
			t.Fatalf("the configuration has no %q", p.old)
		}
		text = strings.Replace(text, p.old, p.new, 1)
	}
	return text
}

func findings(t *testing.T, text string) []Finding {
	t.Helper()
	found, diagnostics := Check("c.yaml", []byte(text))
	if len(diagnostics) > 0 {
		t.Fatal(diagnostics)
	}
	return found
}

// TestRules: each rule finds what it is for, and nothing else does.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, c := range checks {
		t.Run(c.rule+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range findings(t, c.document(t)) {
				line := fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Problem)
				if f.Rule != c.rule {
					line = f.Rule + ": " + line
				}
				got = append(got, line)
				if f.Why == "" || f.Remedy == "" || f.Path == "" {
					t.Errorf("%+v is not complete", f)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryRuleHasBothCases(t *testing.T) {
	t.Parallel()
	for _, rule := range Rules() {
		good, bad := 0, 0
		for _, c := range checks {
			switch {
			case c.rule != rule.Name:
			case c.want == nil:
				good++
			default:
				bad++
			}
		}
		if good == 0 || bad == 0 {
			t.Errorf("%s has %d good and %d bad cases", rule.Name, good, bad)
		}
	}
}

func TestGoodConfigurations(t *testing.T) {
	t.Parallel()
	for _, text := range []string{evidenceConfig, agentsConfig} {
		if found := findings(t, text); found != nil {
			t.Errorf("found %v in\n%s", found, text)
		}
	}
}

// TestExamplesAreClean: nobody learns a mistake from an example.
func TestExamplesAreClean(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../examples/evidence/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range append(files, "../../../examples/collector.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findings(t, string(text)) {
			t.Errorf("%s: %s", file, f)
		}
	}
}

func TestUnreadableDocuments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"no collector": {"rules: []\n", "c.yaml:1:1: is no collector configuration: it has no service; name a file with receivers, exporters and service"},
		"keys with ::": {
			"receivers:\n  otlp:\n    protocols::http::endpoint: 0.0.0.0:4318\nservice: {}\n",
			`c.yaml:3:5: the key "protocols::http::endpoint" stands for keys below each other, which is not checked; write protocols, http, endpoint each on a line of its own, below the one before`,
		},
		"a list":    {"- a\n", "c.yaml:1:1: is no collector configuration: it has no service; name a file with receivers, exporters and service"},
		"empty":     {"", "c.yaml: is empty"},
		"too large": {strings.Repeat("#\n", MaxDocument), "c.yaml: has 2097152 bytes; at most 1048576 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, diagnostics := Check("c.yaml", []byte(tc.text))
			if found != nil || len(diagnostics) != 1 || diagnostics[0].Error() != tc.want {
				t.Errorf("%v, %v", found, diagnostics)
			}
		})
	}
}

// FuzzCheck: a document of any shape is read or refused.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(evidenceConfig))
	f.Add([]byte(agentsConfig))
	f.Add([]byte("service: {pipelines: {logs: {receivers: otlp, exporters: [[ledger], {a: b}]}}}\nexporters: [ledger]\n"))
	f.Add([]byte("service: x\nreceivers: {otlp: [1], evidence: ${env:X}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		found, diagnostics := Check("c.yaml", text)
		for _, one := range found {
			if one.Line == 0 || len(diagnostics) > 0 {
				t.Errorf("%v beside %v", one, diagnostics)
			}
		}
	})
}
