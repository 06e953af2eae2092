package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	_ "modernc.org/sqlite" // breaks stores from outside
)

// asMain makes the test binary the command itself, for what only a process can show.
const asMain = "COUNTERSIGN_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		os.Exit(mainCode())
	}
	goleak.VerifyTestMain(m)
}

// badInput is a command line that has to be refused, with all that it says.
type badInput struct {
	name   string
	args   []string
	code   int
	stdout string
	stderr string
}

func (b badInput) check(t *testing.T) {
	t.Helper()
	code, stdout, stderr := command(t, b.args...)
	if code != b.code {
		t.Errorf("exit code %d, want %d", code, b.code)
	}
	if diff := cmp.Diff(b.stdout, stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(b.stderr, stderr); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, bad := range []badInput{
		{
			name: "misspelt command", args: []string{"contracts", "vaildate", "x.yaml"}, code: exitUsage,
			stderr: "countersign: unknown command \"vaildate\" of countersign contracts; did you mean validate?\nsee: countersign contracts --help\n",
		},
		{
			name: "unknown flag", args: []string{"version", "--verbose"}, code: exitUsage,
			stderr: "countersign: unknown flag: --verbose\nsee: countersign version --help\n",
		},
		{
			name: "unknown format", args: []string{"version", "-o", "yaml"}, code: exitUsage,
			stderr: "countersign: invalid argument \"yaml\" for \"-o, --output\" flag: write text or json\nsee: countersign version --help\n",
		},
		{
			name: "missing file", args: []string{"contracts", "validate", "missing.yaml"}, code: exitUsage,
			stderr: "countersign: missing.yaml: no such file or folder\n",
		},
		{
			name: "no argument", args: []string{"contracts", "explain"}, code: exitUsage,
			stderr: "countersign: countersign contracts explain needs contract files\nsee: countersign contracts explain --help\n",
		},
		{
			name: "no role", args: []string{"keys", "create", "--store", "memory:"}, code: exitUsage,
			stderr: "countersign: countersign keys create needs --role\nsee: countersign keys create --help\n",
		},
		{
			name: "no contract in memory", args: []string{"actions", "verify", "--file", "../../examples/verify.json", "--dry-run"}, code: exitUsage,
			stderr: "countersign: a store in memory knows no contract; name files or folders with --contracts, or a store that does with --store\n",
		},
		{
			name: "a verdict at another time", args: []string{"actions", "verify", "--action", "a", "--at", "2026-09-28T10:42:00Z", "--store", "sqlite:x.db"}, code: exitUsage,
			stderr: "countersign: --at would store a verdict at a time that is not now; add --dry-run, or use --store memory:\n",
		},
		{
			name: "bad time", args: []string{"actions", "verify", "--file", "../../examples/verify.json", "--dry-run", "--contracts", "../../contracts", "--at", "yesterday"}, code: exitUsage,
			stderr: "countersign: --at: invalid time: \"yesterday\" is not an RFC 3339 time like 2026-09-28T10:42:00Z\n",
		},
		{
			name: "bad store", args: []string{"migrate", "--store", "mysql://localhost/x"}, code: exitUsage,
			stderr: "countersign: invalid store URL: scheme \"mysql\" is not known; write sqlite:PATH, memory: or postgres://USER@HOST/DATABASE\n",
		},
	} {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			bad.check(t)
		})
	}
}

// TestMalformedContract: every error with its place, and the good contract beside it is read.
func TestMalformedContract(t *testing.T) {
	t.Parallel()
	badInput{
		args: []string{"contracts", "validate", "testdata/malformed.yaml", "../../contracts/refund_workflow.yaml"}, code: exitNo,
		stdout: malformed + validRefund(t),
		stderr: "countersign: 3 errors in 1 file\n",
	}.check(t)
}

// malformed is what is wrong with testdata/malformed.yaml.
const malformed = `testdata/malformed.yaml:10:3: unknown key "windw"; allowed are window, settle, updates, preconditions, limits, expected_effects, forbidden_effects, aggregate_limits, reversed_by, unverifiable_if; did you mean "window"?
testdata/malformed.yaml:12:18: action.limits[0].param_max needs the key "max"
testdata/malformed.yaml:14:7: 'csat_negative' is not allowed here; allowed are effect_observed
`

// validRefund is the line about the good contract.
func validRefund(t *testing.T) string {
	t.Helper()
	_, stdout, _ := command(t, "contracts", "validate", "../../contracts/refund_workflow.yaml")
	if !strings.HasPrefix(stdout, "valid refund_workflow version 1 (") {
		t.Fatalf("validate says %q", stdout)
	}
	return stdout
}

// TestMalformedContractPublishesNothing: a half published library would judge by half its rules.
func TestMalformedContractPublishesNothing(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	badInput{
		args: []string{"contracts", "publish", "--store", store, "../../contracts/refund_workflow.yaml", "testdata/malformed.yaml"}, code: exitNo,
		stderr: malformed + "countersign: 3 errors in 1 file; nothing was done\n",
	}.check(t)
	badInput{
		args: []string{"actions", "verify", "--store", store, "--file", "../../examples/verify.json"}, code: exitUsage,
		stderr: "countersign: the action cannot be recorded: /contract_id unknown contract \"refund_workflow\": it was not published to this store; run countersign contracts publish with its file\n",
	}.check(t)
}

// TestBadFact: a bad time in one fact sinks none of the facts beside it.
func TestBadFact(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	file := writeFile(t, "facts.json", `{"facts": [
		{"source": "stripe", "subject_id": "o1", "fact_type": "refund_created", "occurred_at": "2026-09-28T10:42:07Z"},
		{"source": "stripe", "subject_id": "o1", "fact_type": "refund_created", "occurred_at": "28.09.2026 10:42"},
		{"source": "stripe", "subject_id": "o1", "fact_type": "refund_created", "occurred_at": "2026-09-28T10:42:09Z"}]}`)
	badInput{
		args: []string{"facts", "push", "--store", store, "--file", file}, code: exitNo,
		stdout: "2 ingested, 0 known already, 0 conflicting, 1 rejected\n",
		stderr: "warning: not taken: /facts/1/occurred_at is an invalid time: \"28.09.2026 10:42\" is not an RFC 3339 time like 2026-09-28T10:42:00Z\n",
	}.check(t)
	badInput{
		args: []string{"facts", "push", "--store", store, "--file", file}, code: exitNo,
		stdout: "0 ingested, 2 known already, 0 conflicting, 1 rejected\n",
		stderr: "warning: not taken: /facts/1/occurred_at is an invalid time: \"28.09.2026 10:42\" is not an RFC 3339 time like 2026-09-28T10:42:00Z\n",
	}.check(t)
}

// TestHugeParams: five megabytes of parameters are refused by their size.
func TestHugeParams(t *testing.T) {
	t.Parallel()
	body := fmt.Sprintf(`{"action_id": "a", "contract_id": "refund_workflow", "subject_id": "o1", "params": {"reason": %q}}`, strings.Repeat("x", 5<<20))
	badInput{
		args: []string{"actions", "verify", "--dry-run", "--contracts", "../../contracts", "--file", writeFile(t, "body.json", body)}, code: exitUsage,
		stderr: "countersign: the action cannot be verified: /params is an invalid JSON object: the document has 5242894 bytes; at most 65536 are allowed\n",
	}.check(t)
}

func TestBodyIsNoJSON(t *testing.T) {
	t.Parallel()
	badInput{
		args: []string{"actions", "verify", "--dry-run", "--contracts", "../../contracts", "--file", writeFile(t, "body.json", `{"action_id": "a",}`)}, code: exitUsage,
		stderr: "countersign: the body is not JSON at byte 18: invalid character '}' looking for beginning of object key string\n",
	}.check(t)
}

// TestTriedInputAndConfiguration: what is no telemetry and no configuration is named with its place and the remedy.
func TestTriedInputAndConfiguration(t *testing.T) {
	t.Parallel()
	good := "../../examples/telemetry/vercel-ai-v6.json"
	broken := writeFile(t, "broken.json", "{\"resourceSpans\": [\n  {\"resource\": {},\n  }]}\n")
	noID := writeFile(t, "id.json", "{\"resourceSpans\": [{\"scopeSpans\": [{\"spans\": [\n  {\"traceId\": \"zz\"}]}]}]}")
	noYAML := writeFile(t, "broken.yaml", "processors:\n\tagent_action: {}\n")
	noMapping := writeFile(t, "text.yaml", "hello\n")
	unknown := writeFile(t, "unknown.yaml", `processors:
  agent_action:
    dialects: 5
    rules:
      - tol: send_refund
        params: {}
`)
	invalid := writeFile(t, "invalid.yaml", `processors:
  agent_action/x:
    rules:
      - {tool: a, contract: refund, subject_id: 'ToolArgument("a")'}
      - tool: b
        contract: refund
        subject_id: ToolArgumnt("b")
`)
	evidence := writeFile(t, "evidence.yaml", "processors:\n  evidence:\n    mapings: [stripe]\n")
	const noJSON = ":3:3: is not JSON: invalid character '}' looking for beginning of object key string; write a key in double quotes, and no comma before }\n"
	const key = "; indent with spaces, not tabs, and quote texts that begin with @, ` or %\n"
	for _, bad := range []badInput{
		{args: []string{"rules", "try", "--input", broken}, stderr: broken + noJSON},
		{args: []string{"facts", "try", "--input", broken, "--config", "../../examples/evidence/webhooks.yaml"}, stderr: broken + noJSON},
		{args: []string{"rules", "try", "--input", noID}, stderr: noID + ":2:18: is no OTLP/JSON traces: ID.UnmarshalJSONIter: length mismatch; OTLP/JSON has ids in hex digits and lists in [ ]\n"},
		{args: []string{"rules", "try", "--input", good, "--config", noYAML}, stderr: noYAML + ":2:1: is not YAML: found character that cannot start any token" + key},
		{args: []string{"facts", "try", "--input", good, "--config", noMapping}, stderr: noMapping + ":1:1: is not a YAML mapping; write key: value\n"},
		{
			args: []string{"rules", "try", "--input", good, "--config", unknown},
			stderr: unknown + ":3:5: processors::agent_action: dialects: source data must be an array or slice, got int\n" +
				unknown + ":5:9: processors::agent_action: rules[0].tol is no setting; did you mean \"tool\"?\n",
		},
		{
			args:   []string{"rules", "try", "--input", good, "--config", invalid},
			stderr: invalid + ":7:9: processors::agent_action/x: rules[1].subject_id: ToolArgumnt(\"b\"): 1:1: undefined function \"ToolArgumnt\"\n",
		},
		{
			args:   []string{"facts", "try", "--input", good, "--config", evidence},
			stderr: evidence + ":3:5: processors::evidence: mapings is no setting; did you mean \"mappings\"?\n",
		},
	} {
		bad.code, bad.stderr = exitUsage, "countersign: "+bad.stderr
		bad.check(t)
	}
}

// TestLockedStore: a file that another program keeps locked.
func TestLockedStore(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	lock := runOnFile(t, store, "PRAGMA locking_mode = EXCLUSIVE", "BEGIN EXCLUSIVE")
	defer lock()
	path := strings.TrimPrefix(store, "sqlite:")
	code, stdout, stderr := command(t, "contracts", "publish", "--store", store, "../../contracts")
	if code != exitCouldNot || stdout != "" {
		t.Errorf("exit code %d, want %d; stdout %q", code, exitCouldNot, stdout)
	}
	checkStoreError(t, stderr, path, "another program holds the file's lock; let it finish, or stop it")
}

// runOnFile runs statements on one connection that stays open until the returned function.
func runOnFile(t *testing.T, store string, statements ...string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", strings.TrimPrefix(store, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	connection, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := connection.ExecContext(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return func() {
		if err := errors.Join(connection.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestReadOnlyStore runs the command as somebody who may read the file and not
// write it. As root no file is read-only, so then it runs as nobody.
func TestReadOnlyStore(t *testing.T) {
	t.Parallel()
	store := migrated(t)
	path := strings.TrimPrefix(store, "sqlite:")
	for dir := filepath.Dir(path); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	}
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := process(t, unprivileged(), "keys", "create", "--role", "viewer", "--store", store)
	if code != exitCouldNot || stdout != "" {
		t.Errorf("exit code %d, want %d; stdout %q", code, exitCouldNot, stdout)
	}
	checkStoreError(t, stderr, path, "let this user write the file and its folder, or choose another path")
}

// unprivileged is nobody where we are root.
func unprivileged() *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

// checkStoreError wants one line that names the file and the remedy. What
// SQLite itself says in it may change with its version.
func checkStoreError(t *testing.T, stderr, path, remedy string) {
	t.Helper()
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "countersign: ") ||
		!strings.Contains(stderr, path+":") || !strings.Contains(stderr, remedy) {
		t.Errorf("stderr %q; want one line with %q and %q", stderr, path, remedy)
	}
}

// process runs the command line as a process of its own.
func process(t *testing.T, as *syscall.SysProcAttr, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	// A copy that anybody may run: go test keeps the binary in a folder of ours.
	binary := filepath.Join(publicDir(t), "countersign")
	copyFile(t, os.Args[0], binary)
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), asMain+"=1")
	cmd.SysProcAttr = as
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// publicDir is a temporary folder that everybody may enter.
func publicDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, one := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(one, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

// migrated is the URL of a new store with a schema.
func migrated(t *testing.T) string {
	t.Helper()
	store := "sqlite:" + filepath.Join(publicDir(t), "countersign.db")
	if code, _, stderr := command(t, "migrate", "--store", store); code != exitDone {
		t.Fatal(stderr)
	}
	return store
}
