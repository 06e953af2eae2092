package verifiedactionsreceiver

import (
	"path/filepath"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"go.opentelemetry.io/collector/consumer/consumertest"
)

// goldenReceipts are of every kind that there is.
func goldenReceipts(s *sender) [][]byte {
	const session = testSession
	plain := receiptFields(session, 1, s.anchor(session))
	first, prev := s.seal(plain)

	failed := receiptFields(session, 2, prev)
	failed["status"], failed["error"], failed["output"] = "error", "HTTP 502: upstream \"down\"\n", nil
	failed["parent_run_id"], failed["invocation_id"] = "run-0", "99999999-8888-4777-8666-555555555555"
	second, prev := s.seal(failed)

	proof := receiptFields(session, 3, prev)
	proof["receipt_visibility"], proof["inputs"], proof["output"] = "proof_only", nil, nil
	proof["input_hash"], proof["output_hash"] = s.anchor("in"), s.anchor("out")
	third, prev := s.seal(proof)

	cut := receiptFields(session, 4, prev)
	cut["inputs"] = fields{"_truncated": true, "_original_bytes": 2_000_000, "_preview": "{'x': "}
	cut["output"], cut["sdk_version"] = fields{"refund_id": "re_1", "amount": "12.500000"}, "0.3.0"
	fourth, _ := s.seal(cut)

	lost := receiptFields(session, 9, s.anchor("lost"))
	lost["agent_id"] = "660e8400-e29b-41d4-a716-446655440000"
	fifth, _ := s.seal(lost)
	return [][]byte{first, second, third, fourth, fifth}
}

// TestGolden: a change of testdata/golden is a change of what backends show.
// To write the files anew, replace CompareTraces by golden.WriteTraces(t, file, got).
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		send func(*sender) reply
	}{
		{"receipts", func(s *sender) reply { return s.batch(goldenReceipts(s)...) }},
		{"actions", func(s *sender) reply {
			return s.post(actionsPath, []byte(messageOf(goldenActions)), bearer(testToken))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			config, sink := testConfig(), new(consumertest.TracesSink)
			config.AEVS.Keys[0].Agents = []AgentConfig{{ID: testAgent, Name: "refund-bot"}, {ID: "660e8400-e29b-41d4-a716-446655440000"}}
			_, base := start(t, config, sink)
			if got := test.send(newSender(t, base)); got.status != 200 {
				t.Fatalf("answered %d %s", got.status, got.body)
			}
			got := sink.AllTraces()[0]
			file := filepath.Join("testdata", "golden", test.name+".yaml")
			want, err := golden.ReadTraces(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := ptracetest.CompareTraces(want, got); err != nil {
				t.Error(err)
			}
		})
	}
}

const goldenActions = `{"session_id":"s-1","actions":[` + webAction + `,` + mcpAction + `,` +
	`{"type":"llm","reference_id":"r-4","api_url":"https://llm.example.com","model":"m","input_tokens":10,"output_tokens":20},` +
	`{"type":"integration","reference_id":"r-5","integration":"slack","tool_name":"post_message","status":"success"}]}`
