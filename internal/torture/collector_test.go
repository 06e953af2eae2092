package torture

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/examples/stack"
)

const (
	root = "../.."
	// evidenceKey and stripeSecret are what the senders know.
	evidenceKey  = "torture-evidence-key"
	stripeSecret = "whsec_torture_0123456789"
)

// configuration is that of examples/evidence, with a small queue and short
// pauses, so that a run takes seconds and every limit is met.
const configuration = `
receivers:
  evidence:
    endpoint: ${env:TORTURE_LISTEN}
    retry_after: 1s
    endpoints:
      crm: {scheme: api_key, secrets: ["${env:TORTURE_KEY}"], events: array}
      stripe: {scheme: stripe, secrets: ["${env:TORTURE_STRIPE}"]}
processors:
  evidence:
    rules:
      - {name: by reference, condition: Body("id") != nil, fact_type: note_added, subject_id: Body("order"), subject_kind: order,
         occurred_at: Body("at"), raw_ref: 'Concat(["crm", Body("id")], ":")', attributes: {n: Body("n")}}
      - {name: by content, condition: Body("id") == nil, fact_type: note_added, subject_id: Body("order"), subject_kind: order,
         occurred_at: Body("at"), attributes: {n: Body("n")}}
exporters:
  ledger:
    store: ${env:TORTURE_STORE}
    role: evidence
    sources: [crm, stripe]
    retry_on_failure: {initial_interval: 50ms, max_interval: 1s}
    sending_queue:
      storage: file_storage
      queue_size: ${env:TORTURE_QUEUE}
      batch: {flush_timeout: 100ms, min_size: 200, sizer: items}
extensions:
  file_storage: {directory: "${env:TORTURE_DIR}/queue", create_directory: true, fsync: true}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}}
  pipelines:
    logs: {receivers: [evidence], processors: [evidence], exporters: [ledger]}
`

// collector is the built binary with its folder, which outlives it.
type collector struct {
	t       *testing.T
	dir     string
	address string
	queue   string
	store   string
	cmd     *exec.Cmd
	ended   chan struct{}
	starts  int
}

func newCollector(t *testing.T, store, queue string) *collector {
	t.Helper()
	return newCollectorWith(t, store, queue, configuration)
}

func newCollectorWith(t *testing.T, store, queue, configuration string) *collector {
	t.Helper()
	ports, err := stack.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{t: t, dir: t.TempDir(), address: ports[0], store: store, queue: queue}
	if err := os.WriteFile(filepath.Join(c.dir, "collector.yaml"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the collector's log ends with:\n%s", c.tail())
		}
	})
	c.start()
	return c
}

// start returns when the receiver listens.
func (c *collector) start() {
	c.t.Helper()
	binary, err := filepath.Abs(filepath.Join(root, "bin", stack.CollectorBinary))
	if err != nil {
		c.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	c.cmd = exec.Command(binary, "--config", filepath.Join(c.dir, "collector.yaml"))
	c.cmd.Env = append(os.Environ(), "TORTURE_LISTEN="+c.address, "TORTURE_KEY="+evidenceKey, "TORTURE_STRIPE="+stripeSecret,
		"TORTURE_STORE="+c.store, "TORTURE_DIR="+c.dir, "TORTURE_QUEUE="+c.queue)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.starts++
	ended := make(chan struct{})
	c.ended = ended
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(ended)
	}(c.cmd)
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	c.await(ctx, "the collector listens", func() bool {
		conn, err := net.DialTimeout("tcp", c.address, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// end sends a signal and waits for the end.
func (c *collector) end(signal syscall.Signal) {
	c.t.Helper()
	select {
	case <-c.ended:
		return
	default:
	}
	_ = c.cmd.Process.Signal(signal)
	select {
	case <-c.ended:
	case <-time.After(2 * time.Minute):
		_ = c.cmd.Process.Kill()
		<-c.ended
		c.t.Errorf("the collector did not end within two minutes of %s", signal)
	}
}

// await looks until a condition holds.
func (c *collector) await(ctx context.Context, what string, holds func() bool) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			c.t.Fatalf("waited in vain until %s: %v", what, ctx.Err())
		case <-tick.C:
		}
	}
}

func (c *collector) tail() string {
	text, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}
