package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDemo is what make demo, make up and make down run once the binaries are
// built: the story twice in a row, then left running, looked at and ended.
// The tree is a copy, so that what somebody left running here stays.
func TestDemo(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	tree, demo := copyTree(t), buildDemo(ctx, t)
	wantOutput := func(argument, want string) {
		t.Helper()
		command := exec.CommandContext(ctx, demo, argument)
		command.Dir = tree
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("demo %s: %v\n%s", argument, err, out)
		}
		if !strings.Contains(string(out), want) {
			t.Errorf("demo %s does not say %q:\n%s", argument, want, out)
		}
	}
	wantOutput("run", "everything is as the contract promises")
	wantOutput("run", "is at\n  http://"+usualAPI+firstAction+"\n") // without a terminal it ends by itself
	t.Cleanup(func() {                                              // also when something fails in between
		command := exec.Command(demo, "down")
		command.Dir = tree
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("demo down: %v\n%s", err, out)
		}
	})
	wantOutput("up", "Running until make down:")
	wantOutput("up", "already running")
	wantOutput("up", firstAction+"\n")
	wantOutput("down", "ended; the store and the logs are still in")
	wantOutput("down", "nothing is running")
}

// usualAPI is where make up serves the page when nobody else listens there, and
// firstAction the path of the first action's page.
const (
	usualAPI    = "127.0.0.1:8383"
	firstAction = "/actions/7b1f0c5de2a94d3c8e6f1a2b3c4d5e01-call_refund_10231"
)

func buildDemo(ctx context.Context, t *testing.T) string {
	t.Helper()
	demo := filepath.Join(t.TempDir(), "demo")
	build := exec.CommandContext(ctx, "go", "build", "-o", demo, "./examples/demo")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return demo
}

// copyTree copies what the demo reads of the repository.
func copyTree(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	for _, folder := range []string{"contracts", "examples"} {
		if err := os.CopyFS(filepath.Join(tree, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			t.Fatal(err)
		}
	}
	bin, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(bin, filepath.Join(tree, "bin")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "go.mod"), []byte("module demo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return tree
}
