package agentactionprocessor

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/countersign-otel/countersign/internal/settings"
)

func loadConfig(t *testing.T, file, name string) (*Config, error) {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	key := "agent_action"
	if name != "" {
		key += "/" + name
	}
	sub, err := conf.Sub(key)
	if err != nil {
		t.Fatal(err)
	}
	config := NewDefaultConfig()
	if err := sub.Unmarshal(config); err != nil {
		return nil, err
	}
	return config, confmap.Validate(config)
}

func TestConfigReads(t *testing.T) {
	t.Parallel()
	keys := NewDefaultConfig().VerifiedActions
	for name, want := range map[string]*Config{
		"":     {VerifiedActions: keys},
		"auth": {VerifiedActions: keys, Tenancy: settings.Tenancy{TenantFromAuth: "organization", Tenants: []string{"acme", "globex"}}},
		"full": {
			Dialects: []string{"genai", "openinference"},
			Tenancy:  settings.Tenancy{Tenant: "acme"},
			VerifiedActions: VerifiedActionsConfig{
				VersionKey: "va_version", PayloadKey: "va_payload", MessageKeys: []string{"chat.message"},
			},
			Rules: []RuleConfig{
				{
					Name: "refunds", Tool: "refund_*",
					Condition: `ToolArgument("amount") > 0 and span.attributes["env"] != "test"`,
					Contract:  "Refund_Workflow", ContractVersion: 2,
					ActionID:    `span.attributes["idempotency_key"]`,
					SubjectID:   `Concat(["order_", ToolArgument("order.id")], "")`,
					SubjectKind: "order", ActionType: "refund_order",
					WorkflowID: `resource.attributes["workflow"]`, AgentID: "AgentID()", Channel: `"whatsapp"`,
					Compensates: `ToolArgument("corrects")`, RequestedAt: "span.start_time",
					Params: ParamsConfig{Values: map[string]string{
						"amount": `ToolArgument("amount")`, "outcome": "ReportedOutcome()",
					}},
				},
				{
					Tool: "{send,cancel}_order", Contract: "order_workflow", SubjectID: `ToolResult("order_id")`,
					Params: ParamsConfig{Mode: "none"},
				},
				{
					VerifiedAction: "mcp", Contract: "order_workflow", SubjectID: `log.attributes["order_id"]`,
					Params: ParamsConfig{Mode: "all"},
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := loadConfig(t, "config.yaml", name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigErrorsNameTheirPlace(t *testing.T) {
	t.Parallel()
	const decoding = "decoding failed due to the following error(s):\n\n"
	for name, want := range map[string]string{
		"empty_rule": `
rules[0].tool: it is empty, as are verified_action and condition; say which calls the rule is for
rules[0].contract: it is empty; name the contract that the actions are recorded under
rules[0].subject_id: it is empty; name the record that the action changes, like ToolArgument("order_id")`,
		"bad_rules": `
rules[0].tool: "refund_[a" is no pattern: unexpected end of input
rules[0].contract: invalid identifier "9lives": write a letter, then letters, digits or _ . : -, at most 64 in all
rules[0].contract_version: it is -1; write 1 or more, or leave it out for the latest
rules[0].subject_kind: invalid identifier "an order": write a letter, then letters, digits or _ . : -, at most 64 in all
rules[0].action_type: invalid id: action_type has the control character U+000A
rules[0].params: "Amount" and "amount" are the same name; case does not count
rules[0].params.empty: the expression is empty
rules[0].params: invalid identifier "no good": write a letter, then letters, digits or _ . : -, at most 64 in all
rules[0].condition: 1:23: condition has invalid syntax near ` + "`> 100`" + `: (expected ")" Key*)
rules[0].subject_id: ToolArgumnt("order_id"): 1:1: undefined function "ToolArgumnt"
rules[0].channel: whatsapp: it is no expression; write ToolArgument("whatsapp") for an argument of the call, or '"whatsapp"' for the text itself
rules[0].params.amount: span.attributes[: 1:17: expression has invalid syntax: (expected Field ("." Field)*)
rules[1].verified_action: invalid verified action: type "mpc": write web, llm, mcp or integration
rules[1].subject_id: log.atributes["order_id"]: 1:5: segment "atributes" from path "log.atributes[order_id]" is not a valid path nor a valid OTTL keyword for the log context - review https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/pkg/ottl/contexts/ottllog to see all valid paths
rules[2].subject_id: attributes["order_id"]: 1:1: missing context name for path "attributes[order_id]", possibly valid options are: ...
rules[1].name: "one" is the name of rules[0]; names tell rules apart`,
		"bad_settings": `
dialects: unknown dialect "genia": known are genai, n8n, dify, strands, langfuse, langsmith, google_adk, traceloop, pydantic_ai, agent_action, codex_logs, openinference, vercel_ai_legacy, claude_code_span, claude_code_logs
tenant: it is set and so is tenant_from_auth; remove one of them
verified_actions.payload_key: it is the same as version_key
verified_actions.message_keys: one is empty; name attributes that hold chat messages`,
		"tenants_alone": `
tenants: they restrict tenant_from_auth, which is not set
tenants[1]: invalid id: tenant has the control character U+000A`,
		"params_text":   decoding + `'rules[0].params' "some": write all, none, or a map of names to expressions`,
		"params_number": decoding + `'rules[0].params' amount: an expression is text; put 100 in quotes`,
		"unknown_key":   decoding + `'rules[0]' has invalid keys: subject`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := loadConfig(t, "config.yaml", name)
			if err == nil {
				t.Fatal("no error")
			}
			got := anyOrder.ReplaceAllString(err.Error(), "$1 ...")
			if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// anyOrder is what OTTL lists in the order of a map.
var anyOrder = regexp.MustCompile(`(possibly valid options are:) .*`)

// TestReadmeExample loads what the README shows.
func TestReadmeExample(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) == 0 {
		t.Fatal("the README shows no configuration")
	}
	for _, block := range blocks {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(block[1]))
		if err != nil {
			t.Fatalf("%v in\n%s", err, block[1])
		}
		conf, err := retrieved.AsConf()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := FindConfig(conf, ""); err != nil {
			t.Errorf("%v in\n%s", err, block[1])
		}
	}
	for _, option := range strings.Fields(optionNames(t)) {
		if !strings.Contains(string(readme), "`"+option+"`") {
			t.Errorf("the README does not explain %s", option)
		}
	}
}

// optionNames are the keys of the configuration and of a rule.
func optionNames(t *testing.T) string {
	t.Helper()
	var names []string
	for _, of := range []any{Config{}, RuleConfig{}, VerifiedActionsConfig{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(of)) {
			if !field.Anonymous { // what it holds follows
				names = append(names, field.Tag.Get("mapstructure"))
			}
		}
	}
	return strings.Join(names, " ")
}
