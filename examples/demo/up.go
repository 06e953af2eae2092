package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/countersign-otel/countersign/examples/stack"
)

// running is what up leaves behind, for down and for people.
type running struct {
	Dir       string            `json:"dir"`
	Store     string            `json:"store"`
	Addresses stack.Addresses   `json:"addresses"`
	Keys      map[string]string `json:"keys"`
	PIDs      map[string]int    `json:"pids"`
	// Page is the address of the first action's page.
	Page string `json:"page"`
}

func stateFile(root string) string { return filepath.Join(root, "build", "demo", "running.json") }

// usualAddresses are taken where they are free.
var usualAddresses = stack.Addresses{
	OTLPGRPC: "127.0.0.1:4317", OTLPHTTP: "127.0.0.1:4318", Verdicts: "127.0.0.1:4319",
	Health: "127.0.0.1:13133", API: "127.0.0.1:8383",
}

// up plays the story in build/demo and leaves both processes running.
func up(ctx context.Context, root string) error {
	if known, err := readState(root); err == nil && alive(known) {
		fmt.Println("already running; make down ends it")
		show(known)
		return nil
	}
	dir := filepath.Dir(stateFile(root))
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	fmt.Println("starting collector and sidecar on", filepath.Join(dir, "countersign.db"))
	s, err := stack.Start(ctx, stack.Options{Root: root, Dir: dir, Detached: true, Addresses: usualAddresses})
	if err != nil {
		return err
	}
	state := running{Dir: s.Dir, Store: s.Store(), Addresses: s.Addresses, Keys: s.Keys, PIDs: s.PIDs()}
	if err := leave(ctx, root, s, &state); err != nil {
		return errors.Join(err, s.Close(), os.Remove(stateFile(root)))
	}
	show(state)
	return nil
}

// leave plays the story and notes for make down what runs: before it, in case this is killed.
func leave(ctx context.Context, root string, s *stack.Stack, state *running) error {
	if err := writeState(root, *state); err != nil {
		return err
	}
	rows, err := playAll(ctx, s)
	if err != nil {
		return err
	}
	state.Page = s.API(pagePath(rows))
	return writeState(root, *state)
}

func show(r running) {
	fmt.Printf(`
Running until make down:
  OTLP               http://%s  (gRPC: %s)
  page and API       http://%s  (sign in with the viewer's key; OpenAPI: /openapi.json)
  store              %s
  logs, telemetry    %s
Keys:
`, r.Addresses.OTLPHTTP, r.Addresses.OTLPGRPC, r.Addresses.API, r.Store, r.Dir)
	roles := make([]string, 0, len(r.Keys))
	for role := range r.Keys {
		roles = append(roles, role)
	}
	sort.Strings(roles)
	for _, role := range roles {
		fmt.Printf("  %-9s %s\n", role, r.Keys[role])
	}
	fmt.Printf(`
Try:
  export COUNTERSIGN_SERVER=http://%s COUNTERSIGN_API_KEY=%s
  bin/countersign actions list
  bin/countersign actions summary
  bin/countersign log verify --store %s

See the first action, which failed and then passed:
  sign in with  %s
  its page      %s
`, r.Addresses.API, r.Keys["viewer"], r.Store, r.Keys["viewer"], r.Page)
}

// down ends what up started.
func down(ctx context.Context, root string) error {
	known, err := readState(root)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Println("nothing is running")
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range []string{stack.CollectorBinary, stack.SidecarBinary} {
		if err := end(ctx, name, known.PIDs[name]); err != nil {
			return err
		}
	}
	if err := os.Remove(stateFile(root)); err != nil {
		return err
	}
	fmt.Println("ended; the store and the logs are still in", known.Dir)
	return nil
}

// end asks a process to finish and waits until it has.
func end(ctx context.Context, name string, pid int) error {
	if !isOurs(name, pid) {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s (process %d): %w", name, pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	_, err := stack.Await(ctx, name+" to end", func(context.Context) (int, bool, error) {
		return pid, !isOurs(name, pid), nil
	})
	if err == nil {
		return nil
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// isOurs says whether the process runs and is the program that we started: a
// number may have been given to another one since.
func isOurs(name string, pid int) bool {
	if pid <= 0 {
		return false
	}
	out, err := exec.Command("ps", "-p", strconv.Itoa(pid), "-o", "args=").Output()
	if err != nil {
		return false
	}
	command, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	return filepath.Base(command) == name
}

func alive(r running) bool {
	for name, pid := range r.PIDs {
		if !isOurs(name, pid) {
			return false
		}
	}
	return len(r.PIDs) > 0
}

func readState(root string) (r running, err error) {
	text, err := os.ReadFile(stateFile(root))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", stateFile(root), err)
	}
	return r, nil
}

// writeState keeps keys, so that only the owner reads it.
func writeState(root string, r running) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(stateFile(root), append(text, '\n'), 0o600)
}
