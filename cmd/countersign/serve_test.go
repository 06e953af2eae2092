package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// syncBuffer is written by a command while a test reads it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// served is a sidecar that this test runs, and its keys.
type served struct {
	url, store string
	keys       map[string]string
}

// serving runs countersign serve on a free port until the test ends, and
// expects it to end well.
func serving(t *testing.T) served {
	t.Helper()
	s := served{store: migrated(t), keys: map[string]string{}}
	for _, role := range []string{"recorder", "viewer", "analyst"} {
		s.keys[role] = createKey(t, s.store, "--role", role)
	}
	s.keys["evidence"] = createKey(t, s.store, "--role", "evidence", "--source", "stripe,shopify,crm,messaging")
	address := filepath.Join(t.TempDir(), "address")
	ctx, stop := context.WithCancel(context.Background())
	var out syncBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "--store", s.store, "--listen", "127.0.0.1:0", "--contracts", "../../contracts", "--address-file", address}, strings.NewReader(""), &out, &out)
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != exitDone {
			t.Errorf("serve ends with exit code %d:\n%s", code, out.String())
		}
	})
	s.url = awaitFile(t, address, ended, &out)
	return s
}

// awaitFile waits until the sidecar has written its address.
func awaitFile(t *testing.T, name string, ended <-chan int, out *syncBuffer) string {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if text, err := os.ReadFile(name); err == nil {
			return strings.TrimSpace(string(text))
		}
		select {
		case code := <-ended:
			t.Fatalf("serve ended with exit code %d:\n%s", code, out.String())
		case <-deadline.C:
			t.Fatalf("serve wrote no address:\n%s", out.String())
		case <-tick.C:
		}
	}
}

func createKey(t *testing.T, store string, args ...string) string {
	t.Helper()
	code, stdout, stderr := command(t, append([]string{"keys", "create", "--store", store, "-o", "json"}, args...)...)
	if code != exitDone || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var key struct{ Secret string }
	decode(t, stdout, &key)
	return key.Secret
}

// as runs a command against the sidecar with the key of a role.
func (s served) as(t *testing.T, role string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	key := writeFile(t, "key", s.keys[role]+"\n")
	return command(t, append(args, "--server", s.url, "--api-key-file", key)...)
}

// TestServer: what a person does with a sidecar, and what each key may not.
func TestServer(t *testing.T) {
	t.Parallel()
	s := serving(t)
	var example map[string]any
	text, err := os.ReadFile("../../examples/verify.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &example); err != nil {
		t.Fatal(err)
	}
	facts := writeFile(t, "facts.json", marshal(t, map[string]any{"facts": example["facts"]}))
	delete(example, "facts")
	action := writeFile(t, "action.json", marshal(t, example))

	for _, step := range []struct {
		role           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"recorder", []string{"actions", "record", "--file", action}, exitDone, "recorded act_refund_001 under refund_workflow version 1\n", ""},
		{"recorder", []string{"actions", "record", "--file", action}, exitDone, "updated act_refund_001 under refund_workflow version 1\n", ""},
		{"evidence", []string{"facts", "push", "--file", facts}, exitDone, "4 ingested, 0 known already, 0 conflicting, 0 rejected\n", ""},
		{"evidence", []string{"facts", "push", "--file", facts}, exitDone, "0 ingested, 4 known already, 0 conflicting, 0 rejected\n", ""},
		{"recorder", []string{"facts", "push", "--file", facts}, exitCouldNot, "", "countersign: a key with the role recorder may not push facts; roles that may: evidence, analyst\n"},
		{"evidence", []string{"actions", "record", "--file", action}, exitCouldNot, "", "countersign: a key with the role evidence may not record actions; roles that may: recorder, analyst\n"},
		{"viewer", []string{"actions", "get", "act_unknown"}, exitNo, "", "countersign: no action \"act_unknown\" is recorded\n"},
		{"viewer", []string{"actions", "list", "--verdict", "fail"}, exitDone, "ACTION  SUBJECT  REQUESTED  OUTCOME  POLICY  HEADLINE\n", "no recorded action matches\n"},
		{"viewer", []string{"actions", "list"}, exitDone, "ACTION          SUBJECT      REQUESTED             OUTCOME  POLICY  HEADLINE\n" +
			"act_refund_001  order_10231  2026-09-28T10:42:00Z  -        -       UNVERIFIED — recorded, not verified yet\n", ""},
		{"viewer", []string{"actions", "summary"}, exitDone, "      0  PASS\n      0  FAIL\n      0  UNKNOWN\n      1  not verified\n      1  total\n      0  of these PENDING, counted above by their verdict so far\n      0  of these COMPENSATED\n", ""},
		{"viewer", []string{"facts", "rejected", "--source", "stripe", "--since", "7d"}, exitDone, "nothing was rejected\n", ""},
		{"viewer", []string{"report", "orphans"}, exitDone, "no orphans among 9 expected effects\n", ""},
	} {
		code, stdout, stderr := s.as(t, step.role, step.args...)
		if code != step.code {
			t.Errorf("%v: exit code %d, want %d", step.args, code, step.code)
		}
		if diff := cmp.Diff(step.stdout+step.stderr, stdout+stderr); diff != "" {
			t.Errorf("%v (-want +got):\n%s", step.args, diff)
		}
	}
	checkGate(t, s)
}

// checkGate: wait says no as long as the verdict is no PASS, also to a machine.
func checkGate(t *testing.T, s served) {
	t.Helper()
	code, stdout, stderr := s.as(t, "recorder", "actions", "wait", "act_refund_001", "--timeout", "10s", "-o", "json")
	var waited struct {
		Status   string
		TimedOut bool `json:"timed_out"`
		Summary  struct{ Headline string }
	}
	decode(t, stdout, &waited)
	if code != exitNo || waited.Status != "settled" || waited.TimedOut || waited.Summary.Headline != workedTable[0].want.Headline {
		t.Errorf("exit code %d, want %d; stderr %q; got %+v", code, exitNo, stderr, waited)
	}
	late := writeFile(t, "late.json", `{"facts": [{"source": "shopify", "subject_id": "order_10231", "fact_type": "order_cancelled", "occurred_at": "2026-09-28T10:43:00Z"}]}`)
	if code, _, stderr := s.as(t, "evidence", "facts", "push", "--file", late); code != exitDone {
		t.Fatal(stderr)
	}
	code, stdout, stderr = s.as(t, "recorder", "actions", "verify", "--action", "act_refund_001")
	if code != exitDone || !strings.HasPrefix(stdout, workedTable[1].want.Headline+"\n") {
		t.Errorf("exit code %d, want %d; stderr %q; stdout:\n%s", code, exitDone, stderr, stdout)
	}
	if code, stdout, _ := s.as(t, "recorder", "actions", "wait", "act_refund_001"); code != exitDone {
		t.Errorf("exit code %d, want %d:\n%s", code, exitDone, stdout)
	}
}

// TestPortInUse: the address and the way out, in one line.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	badInput{
		args: []string{"serve", "--store", migrated(t), "--listen", taken.Addr().String()}, code: exitCouldNot,
		stderr: fmt.Sprintf("countersign: listen: %s is in use by another program; end it, or choose another address with --listen (port 0 takes a free one)\n", taken.Addr()),
	}.check(t)
}

// TestServeRefusesSettings: everything that is wrong, at once, before anything starts.
func TestServeRefusesSettings(t *testing.T) {
	t.Parallel()
	config := writeFile(t, "verifier.yaml", "store: \"memory:\"\nlistn: localhost:1\n")
	code, _, stderr := command(t, "serve", "--config", config)
	if code != exitUsage || !strings.Contains(stderr, "listn") || !strings.Contains(stderr, config) {
		t.Errorf("exit code %d, want %d; stderr %q", code, exitUsage, stderr)
	}
	badInput{
		args: []string{"serve", "--config", "missing.yaml"}, code: exitUsage,
		stderr: "countersign: invalid settings: missing.yaml: there is no such file\n",
	}.check(t)
	badInput{
		args: []string{"serve", "--settlement-max-lag", "2 days", "--settlement-workers", "0", "--store", "memory:"}, code: exitUsage,
		stderr: "countersign: invalid settings: --settlement-max-lag: \"2 days\" is no length of time; write one like 15m, 48h or 10s\n" +
			"invalid settings: settlement.workers is 0; write 1 to 64\n",
	}.check(t)
}

// TestNoServer: nobody answers at the address.
func TestNoServer(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	badInput{
		args: []string{"actions", "list", "--server", "http://" + gone.Addr().String(), "--api-key-file", writeFile(t, "key", "cs_viewer_x")}, code: exitCouldNot,
		stderr: fmt.Sprintf("countersign: http://%[1]s cannot be reached: dial tcp %[1]s: connect: connection refused; is the sidecar running (countersign serve), and is --server its address?\n", gone.Addr()),
	}.check(t)
}
