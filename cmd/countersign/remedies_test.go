package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
)

// TestNoStoreThere: a mistyped path is named, and no empty database is left behind.
func TestNoStoreThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "countersign.db")
	store := "sqlite:" + path
	for _, args := range [][]string{
		{"actions", "list"}, {"actions", "wait", "a"}, {"keys", "list"}, {"sources", "list"}, {"sources", "set", "crm", "--trust", "shared"}, {"keys", "create", "--role", "viewer"},
		{"log", "verify"}, {"report", "orphans"}, {"contracts", "list"}, {"contracts", "publish", "../../contracts"},
	} {
		badInput{
			args: append(args, "--store", store), code: exitCouldNot,
			stderr: "countersign: there is no store " + store + "; name another with --store, or make this one: countersign migrate --store " + store + "\n",
		}.check(t)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a command that failed left %s behind: %v", path, err)
	}
}

// TestNoServerForStoreCommands is not parallel: it sets the environment.
func TestNoServerForStoreCommands(t *testing.T) {
	t.Setenv("COUNTERSIGN_SERVER", "http://localhost:8383")
	store := "sqlite:" + filepath.Join(t.TempDir(), "countersign.db")
	badInput{
		args: []string{"keys", "list", "--store", store}, code: exitCouldNot,
		stderr: "countersign: there is no store " + store + "; name another with --store, or make this one: countersign migrate --store " + store +
			"; COUNTERSIGN_SERVER is of no use here: this works on a store directly\n",
	}.check(t)
}

func TestRemedies(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	for _, bad := range []badInput{
		{
			name: "nobody waits for what is not there", args: []string{"actions", "wait", "nope", "--store", store}, code: exitNo,
			stderr: "countersign: no action \"nope\" is recorded\n",
		},
		{
			name: "no dead letters", args: []string{"webhooks", "dead-letters", "--store", store}, code: exitDone,
			stdout: "no dead letters\n",
		},
		{
			name: "a webhook that is not kept", args: []string{"webhooks", "replay", "msg_1", "--store", store}, code: exitNo,
			stderr: "countersign: no webhook \"msg_1\" is kept; those that were delivered or given up long ago are removed\n",
		},
		{
			name: "a cursor of something else", args: []string{"webhooks", "dead-letters", "--cursor", "x", "--store", store}, code: exitUsage,
			stderr: "countersign: a parameter of the request is wrong: cursor is not one that a page gave as next_cursor\n",
		},
		{
			name: "a mistyped head", args: []string{"log", "verify", "--head", "ABC", "--store", store}, code: exitUsage,
			stderr: "countersign: --head: \"ABC\" is no hash of 64 lowercase hex digits, as log verify prints it\n",
		},
		{
			name: "a tenant without verdicts", args: []string{"log", "verify", "--tenant", "mistyped", "--store", store}, code: exitDone,
			stdout: "nothing to verify: tenant mistyped has no verdict in this store; is that the tenant, and the store?\n",
		},
		{
			name: "a length of time without a unit", args: []string{"actions", "wait", "a", "--timeout", "2"}, code: exitUsage,
			stderr: "countersign: invalid argument \"2\" for \"--timeout\" flag: time: missing unit in duration \"2\"; write one with it, like 90s or 20m\nsee: countersign actions wait --help\n",
		},
		{
			name: "a length of time in words", args: []string{"sources", "set", "crm", "--clock-skew", "thirty"}, code: exitUsage,
			stderr: "countersign: invalid argument \"thirty\" for \"--clock-skew\" flag: time: invalid duration \"thirty\"; write one like 90s or 20m\nsee: countersign sources set --help\n",
		},
		{
			name: "the version as a flag", args: []string{"--version"}, code: exitDone, stdout: "countersign " + thisVersion().text() + "\n",
		},
		{
			name: "tests for contracts", args: []string{"contracts", "validate", "../../contracts/payout_test.yaml"}, code: exitUsage,
			stderr: "countersign: ../../contracts/payout_test.yaml holds tests, no contract; countersign contracts test runs them\n",
		},
		{
			name: "a contract for tests", args: []string{"contracts", "test", "../../contracts/payout.yaml"}, code: exitUsage,
			stderr: "countersign: ../../contracts/payout.yaml is no contract test: the name of one ends in _test.yaml\n",
		},
		{
			name: "an evidence key for nothing", args: []string{"keys", "create", "--role", "evidence", "--store", store}, code: exitUsage,
			stderr: "countersign: cannot make a key: an evidence key needs the sources that it pushes facts for; name each with --source\n",
		},
		{
			name: "a call that no rule is for", args: []string{"rules", "try", "--input", "../../examples/telemetry/vercel-ai-v6.json", "--config", "testdata/rules.yaml"}, code: exitDone,
			stdout: `send_refund  vercel_ai_legacy  span 296e33ac6314a70c
  agent support-agent, session sess-42, outcome error
  arguments {"amount":12.5,"order_id":"A-1001"}
  no rule is for it: there are rules for get_weather; case counts
get_weather  vercel_ai_legacy  span 7be24fc7a5f1379d
  agent support-agent, session sess-42, outcome success
  arguments {"city":"Paris"}
  nothing by rules[0]: subject_id: ToolArgument("order_id") gave no value
2 tool calls recognised
`,
		},
	} {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			bad.check(t)
		})
	}
}

// TestCheckTable: a rule that was kept is not described as broken, and what may still come is not missed.
func TestCheckTable(t *testing.T) {
	t.Parallel()
	checks := []report.Check{
		{Section: contract.Preconditions, OK: true, Description: "shop order_status (status = eligible) was not so before the action"},
		{Section: contract.ReversedBy, OK: true, Description: "bank returned undid the action"},
		{Section: contract.ForbiddenEffects, Description: "bank refunded"},
		{Section: contract.ExpectedEffects, Description: "bank paid"},
	}
	for status, missing := range map[string]string{ledger.Pending: "not yet", ledger.Settled: "NO"} {
		want := [][]string{
			{"ok", "preconditions", "shop order_status (status = eligible)", "-", "-"},
			{"ok", "reversed_by", "bank returned", "-", "-"},
			{"NO", "forbidden_effects", "bank refunded", "-", "-"},
			{missing, "expected_effects", "bank paid", "-", "-"},
		}
		if diff := cmp.Diff(want, checkTable(checks, status).rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", status, diff)
		}
	}
}
