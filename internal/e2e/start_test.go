package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/examples/stack"
)

const root = "../.."

func TestMain(m *testing.M) {
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// build makes the binaries where they are missing. What is there is taken as
// it is: make test builds first.
func build() error {
	for _, name := range []string{stack.SidecarBinary, stack.CollectorBinary} {
		if _, err := os.Stat(filepath.Join(root, "bin", name)); err == nil {
			continue
		}
		fmt.Fprintf(os.Stderr, "e2e: bin/%s is missing; running make build, which takes minutes the first time\n", name)
		command := exec.Command("make", "-C", root, "build")
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("make build: %w", err)
		}
	}
	return nil
}

// start runs a stack of its own for one test, with further variables.
func start(t *testing.T, environment ...string) (context.Context, *stack.Stack) {
	t.Helper()
	return startWith(t, stack.Options{Environment: environment})
}

// startWith runs a stack of its own for one test.
func startWith(t *testing.T, options stack.Options) (context.Context, *stack.Stack) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	options.Root, options.Dir = absolute, t.TempDir()
	s, err := stack.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("logs of the processes:\n%s", s.Logs())
		}
	})
	return ctx, s
}
