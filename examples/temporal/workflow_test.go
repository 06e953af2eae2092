package temporal

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"github.com/countersign-otel/countersign/verifier/client"
)

const root = "../.."

// sidecar is a real one, built from this tree, with a store of its own.
type sidecar struct {
	binary, store, address string
}

func start(t *testing.T) *sidecar {
	t.Helper()
	dir := t.TempDir()
	s := &sidecar{binary: filepath.Join(dir, "countersign"), store: "sqlite:" + filepath.Join(dir, "test.db")}
	build := exec.Command("go", "build", "-o", s.binary, "./cmd/countersign")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.tool(t, "migrate")
	process := exec.Command(s.binary, "serve", "--store", s.store, "--listen", "localhost:0", "--contracts", filepath.Join(root, "contracts"))
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		_ = process.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if err != nil || !ok {
		t.Fatalf("the sidecar prints %q, %v", line, err)
	}
	s.address = address
	return s
}

func (s *sidecar) tool(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(s.binary, append(args, "--store", s.store)...).Output()
	if err != nil {
		t.Fatalf("countersign %v: %v", args, err)
	}
	return out
}

func (s *sidecar) client(t *testing.T, role ...string) *client.Client {
	t.Helper()
	var created struct {
		Secret string `json:"secret"`
	}
	out := s.tool(t, append([]string{"keys", "create", "-o", "json", "--role"}, role...)...)
	if err := json.Unmarshal(out, &created); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(s.address, client.WithKey(created.Secret))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// effects is what the systems of record tell of a refund.
func effects(order Order) client.Batch {
	now := time.Now()
	fact := func(source, kind string) client.Fact {
		return client.Fact{Source: source, Type: kind, SubjectID: order.ID, SubjectKind: "order", OccurredAt: now}
	}
	eligible, refunded := fact("shopify", "order_status"), fact("stripe", "refund_created")
	eligible.OccurredAt = now.Add(-time.Minute)
	eligible.Attributes = map[string]string{"status": "eligible"}
	refunded.Attributes = map[string]any{"amount": order.Amount}
	return client.Batch{Facts: []client.Fact{eligible, refunded, fact("shopify", "order_cancelled"), fact("crm", "note_added"), fact("messaging", "customer_notified")}}
}

// TestRefund: what was right is reported as done, and what was not is taken back.
func TestRefund(t *testing.T) {
	s := start(t)
	activities := &Activities{Countersign: s.client(t, "recorder")}
	evidence := s.client(t, "evidence", "--source", "stripe", "--source", "shopify", "--source", "crm", "--source", "messaging")
	for _, c := range []struct {
		name     string
		order    Order
		done     bool
		headline string
	}{
		{"within its limit", Order{"order_1", "180.10"}, true, "PASS — all 4 expected effects observed within 15m; preconditions, limits and prohibitions respected"},
		{"over its limit", Order{"order_2", "300"}, false, "FAIL — limit exceeded: amount at most 250 (was 300)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			environment := suite.NewTestWorkflowEnvironment()
			environment.SetTestTimeout(time.Minute)
			environment.RegisterActivity(activities)
			environment.RegisterActivityWithOptions(func(ctx context.Context, order Order) error {
				_, err := evidence.Push(ctx, effects(order))
				return err
			}, activity.RegisterOptions{Name: RefundActivity})
			var takenBack atomic.Bool
			environment.RegisterActivityWithOptions(func(context.Context, Order) error {
				takenBack.Store(true)
				return nil
			}, activity.RegisterOptions{Name: TakeBackActivity})

			environment.ExecuteWorkflow(Refund, c.order)
			var got Result
			if err := environment.GetWorkflowResult(&got); err != nil {
				t.Fatal(err)
			}
			if want := (Result{c.done, c.headline}); got != want || takenBack.Load() == c.done {
				t.Errorf("got %+v, taken back: %v; want %+v", got, takenBack.Load(), want)
			}
		})
	}
}

// TestRefusalsAreForGood: a workflow does not repeat for ever what is refused every time.
func TestRefusalsAreForGood(t *testing.T) {
	s := start(t)
	var suite testsuite.WorkflowTestSuite
	environment := suite.NewTestActivityEnvironment()
	activities := &Activities{Countersign: s.client(t, "recorder")}
	environment.RegisterActivity(activities)
	_, err := environment.ExecuteActivity(activities.Record, client.Action{ActionID: "a", ContractID: "no_such_contract", SubjectID: "s"})
	if err == nil || !strings.Contains(err.Error(), "retryable: false") {
		t.Errorf("got %v", err)
	}
}
