package verifiedactions

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func pointer(n int64) *int64 { return &n }

const fourActions = `{
  "session_id": "sess-42",
  "invented_later": {"x": [1]},
  "actions": [
    {"type": "web", "reference_id": "r1", "status": "success", "duration_ms": 120, "url": "https://api.example.com/data",
     "method": "GET", "status_code": 200, "invented_later": true},
    {"type": "llm", "reference_id": "r2", "status": "error", "api_url": "https://llm.example", "model": "m-1",
     "input_tokens": 10, "output_tokens": 20},
    {"type": "mcp", "reference_id": "r3", "status": "success", "server_url": "https://mcp.example", "tool_name": "refund_order"},
    {"type": "integration", "reference_id": "r4", "integration": "slack", "tool_name": "send_message", "duration_ms": null}
  ]}`

func TestFourTypesInOrder(t *testing.T) {
	t.Parallel()
	got, err := Parse(fourActions)
	if err != nil {
		t.Fatal(err)
	}
	number := func(text string) json.Number { return json.Number(text) }
	want := Payload{SessionID: "sess-42", Actions: []Action{
		{Type: Web, ReferenceID: "r1", Status: "success", DurationMS: pointer(120), Fields: map[string]any{
			"url": "https://api.example.com/data", "method": "GET", "status_code": number("200")}},
		{Type: LLM, ReferenceID: "r2", Status: "error", Fields: map[string]any{
			"api_url": "https://llm.example", "model": "m-1", "input_tokens": number("10"), "output_tokens": number("20")}},
		{Type: MCP, ReferenceID: "r3", Status: "success", Fields: map[string]any{
			"server_url": "https://mcp.example", "tool_name": "refund_order"}},
		{Type: Integration, ReferenceID: "r4", Fields: map[string]any{"integration": "slack", "tool_name": "send_message"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var tools []string
	for i := range got.Actions {
		tools = append(tools, got.Actions[i].ToolName())
	}
	if diff := cmp.Diff([]string{"", "", "refund_order", "send_message"}, tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestOneRawActionSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ raw, want string }{
		"no object":       {`[]`, "invalid verified action: it is no JSON object"},
		"null":            {`null`, "invalid verified action: it is no JSON object"},
		"no type":         {`{"reference_id":"r"}`, "invalid verified action: type is missing"},
		"type is no text": {`{"type":7}`, "invalid verified action: type is no string"},
		"unknown type":    {`{"type":"shell"}`, `invalid verified action: type "shell": write web, llm, mcp or integration`},
		"nothing else": {`{"type":"mcp"}`, "invalid verified action: reference_id is missing\n" +
			"invalid verified action: server_url is missing\ninvalid verified action: tool_name is missing"},
		"wrong types": {`{"type":"web","reference_id":7,"status":true,"duration_ms":-1,"url":"","method":"GET","status_code":"200"}`,
			"invalid verified action: reference_id is no string\ninvalid verified action: status is no string\n" +
				"invalid verified action: duration_ms is no whole number from 0 up\ninvalid verified action: url is empty\n" +
				"invalid verified action: status_code is no whole number from 0 up"},
		"fraction":      {`{"type":"llm","reference_id":"r","model":"m","input_tokens":1.5}`, "invalid verified action: input_tokens is no whole number from 0 up"},
		"control":       {`{"type":"llm","reference_id":"r\u0000","model":"m"}`, "invalid verified action: reference_id has a control character or is not valid UTF-8"},
		"long":          {`{"type":"llm","reference_id":"` + strings.Repeat("x", 513) + `","model":"m"}`, "invalid verified action: reference_id has 513 bytes; at most 512 are allowed"},
		"other's field": {`{"type":"integration","reference_id":"r","tool_name":"t","server_url":"x"}`, "invalid verified action: integration is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseAction([]byte(tc.raw))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadActionsTakeNoOthersWithThem(t *testing.T) {
	t.Parallel()
	got, err := Parse(`{"session_id":null,"actions":[{"type":"shell"},{"type":"llm","reference_id":"r","model":"m"},7]}`)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Actions) != 1 || got.Actions[0].ReferenceID != "r" || got.SessionID != "" {
		t.Errorf("got %+v", got)
	}
	want := []string{
		`actions[0]: invalid verified action: type "shell": write web, llm, mcp or integration`,
		"actions[2]: invalid verified action: it is no JSON object",
	}
	var said []string
	for _, bad := range got.Invalid {
		said = append(said, bad.Error())
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPayloadsThatDoNotRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ payload, want string }{
		"no JSON":   {"{", "invalid verified action: the payload does not read: unexpected end of JSON input"},
		"no object": {"[]", "invalid verified action: the payload does not read: at byte 1 stands a JSON array; an object with session_id (text) and actions (list) is needed"},
		"too large": {`{"x":"` + strings.Repeat("x", MaxPayloadBytes) + `"}`, "invalid verified action: the payload has 1048584 bytes; at most 1048576 are allowed"},
		"too many":  {`{"actions":[` + strings.Repeat("0,", MaxActions) + `0]}`, "invalid verified action: the payload has 1025 actions; at most 1024 are allowed"},
		"session":   {`{"session_id":"a\nb"}`, "invalid verified action: session_id has more than 512 bytes or a control character"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(tc.payload)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChatMessages(t *testing.T) {
	t.Parallel()
	keys := Keys{Version: DefaultVersionKey, Payload: DefaultPayloadKey}
	quoted, err := json.Marshal(`{"session_id":"s","actions":[{"type":"llm","reference_id":"r","model":"m"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	metadata := func(version string) string {
		return `{"type":"metadata","metadata":{"verified_actions_version":"` + version + `","verified_actions_payload":` + string(quoted) + `}}`
	}
	sent := time.Date(2026, 9, 28, 10, 42, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		message  string
		payloads int
		sentAt   time.Time
		errs     int
	}{
		"with text before": {`{"timestamp":"2026-09-28T10:42:00Z","content":[{"type":"text","text":"done"},` + metadata("1.0") + `]}`, 1, sent, 0},
		"any version":      {`{"content":[` + metadata("99-beta") + `]}`, 1, time.Time{}, 0},
		"bad timestamp":    {`{"timestamp":"yesterday","content":[` + metadata("1") + `]}`, 1, time.Time{}, 0},
		"two contents":     {`{"content":[` + metadata("1") + `,` + metadata("1") + `]}`, 2, time.Time{}, 0},
		"the metadata itself": {
			`{"verified_actions_version":"1","verified_actions_payload":` + string(quoted) + `}`, 1, time.Time{}, 0,
		},
		"payload as an object": {
			`{"content":[{"type":"metadata","metadata":{"verified_actions_version":1,"verified_actions_payload":{"session_id":"s","actions":[{"type":"llm","reference_id":"r","model":"m"}]}}}]}`, 1, time.Time{}, 0,
		},
		"without a version": {`{"content":[{"type":"metadata","metadata":{"verified_actions_payload":` + string(quoted) + `}}],"x":"verified_actions_version"}`, 0, time.Time{}, 0},
		"without a payload": {`{"content":[{"type":"metadata","metadata":{"verified_actions_version":"1"}}]}`, 0, time.Time{}, 0},
		"payload does not read": {
			`{"content":[{"type":"metadata","metadata":{"verified_actions_version":"1","verified_actions_payload":"{"}},` + metadata("1") + `]}`, 1, time.Time{}, 1,
		},
		"no message":  {`verified_actions_version`, 0, time.Time{}, 0},
		"not ours":    {`{"content":[{"type":"text","text":"hello"}]}`, 0, time.Time{}, 0},
		"wrong types": {`{"content":{"type":"metadata"},"verified_actions_version":1}`, 0, time.Time{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payloads, errs := keys.FromMessage(tc.message)
			if len(payloads) != tc.payloads || len(errs) != tc.errs {
				t.Fatalf("%d payloads, errors %v", len(payloads), errs)
			}
			for _, p := range payloads {
				if p.SessionID != "s" || len(p.Actions) != 1 || !p.SentAt.Equal(tc.sentAt) {
					t.Errorf("payload %+v", p)
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(fourActions)
	f.Add(`{"content":[{"type":"metadata","metadata":{"verified_actions_version":"1","verified_actions_payload":"{}"}}]}`)
	keys := Keys{Version: DefaultVersionKey, Payload: DefaultPayloadKey}
	f.Fuzz(func(t *testing.T, text string) {
		keys.FromMessage(text)
		payload, err := Parse(text)
		if err != nil {
			return
		}
		for _, a := range payload.Actions {
			if a.ReferenceID == "" || len(a.ReferenceID) > MaxTextBytes {
				t.Errorf("reference id %q", a.ReferenceID)
			}
		}
	})
}
