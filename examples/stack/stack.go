// Package stack runs the built collector and the built sidecar together on one
// SQLite file, from outside, as an operator would: bin/countersign-collector
// with examples/collector.yaml and bin/countersign with examples/verifier.yaml.
// The demo and the end-to-end tests share it.
//
// Limits: Unix only (sessions and signals).
package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Binaries that `make build` leaves in bin/.
const (
	SidecarBinary   = "countersign"
	CollectorBinary = "countersign-collector"
)

// readyTimeout bounds the start of each process.
const readyTimeout = 60 * time.Second

// Options say where things are.
type Options struct {
	// Root is the root of the repository, with bin/, contracts/ and examples/.
	Root string
	// Dir is an existing folder for the store, the collector's queue, logs and what comes back.
	Dir string
	// Contracts are published beside those of contracts/.
	Contracts []string
	// Collector are further configurations of the collector, merged over examples/collector.yaml.
	Collector []string
	// Environment are further variables of both processes, NAME=value.
	Environment []string
	// Detached processes outlive this one.
	Detached bool
	// Addresses are tried first; free ports are taken where they are in use or empty.
	Addresses Addresses
}

// Addresses are host:port.
type Addresses struct {
	// OTLPGRPC and OTLPHTTP take agents' telemetry, Verdicts takes what the sidecar sends back (OTLP over HTTP).
	OTLPGRPC string `json:"otlp_grpc"`
	OTLPHTTP string `json:"otlp_http"`
	Verdicts string `json:"verdicts"`
	Health   string `json:"health"`
	API      string `json:"api"`
}

// Stack is a running collector and a running sidecar.
type Stack struct {
	Options
	// Keys are API keys by role: recorder, evidence, analyst, viewer.
	Keys      map[string]string
	collector *process
	sidecar   *process
}

// Store is the URL of the store that both processes work on.
func (s *Stack) Store() string { return "sqlite:" + filepath.Join(s.Dir, "countersign.db") }

// ReturnedFile is where the collector writes the verdicts that came back as OTLP, one JSON request a line.
func (s *Stack) ReturnedFile() string { return filepath.Join(s.Dir, "verdicts.jsonl") }

// TelemetryFile is where the collector writes the agents' telemetry, as it left the processor.
func (s *Stack) TelemetryFile() string { return filepath.Join(s.Dir, "telemetry.jsonl") }

// Sources that the story's evidence key may push for.
var Sources = []string{"stripe", "shopify", "crm", "messaging"}

// Start prepares the store and the keys and starts both processes. It returns
// when both are ready. On failure nothing is left running.
func Start(ctx context.Context, options Options) (*Stack, error) {
	s := &Stack{Options: options, Keys: map[string]string{}}
	for _, binary := range []string{SidecarBinary, CollectorBinary} {
		if _, err := os.Stat(s.binary(binary)); err != nil {
			return nil, fmt.Errorf("%s is not built; run: make build", s.binary(binary))
		}
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stack) binary(name string) string { return filepath.Join(s.Root, "bin", name) }

// prepare makes the schema, the contracts and the keys, with the command line.
func (s *Stack) prepare(ctx context.Context) error {
	if _, err := s.Tool(ctx, "migrate", "--store", s.Store()); err != nil {
		return err
	}
	publish := append([]string{"contracts", "publish", "--store", s.Store(), filepath.Join(s.Root, "contracts")}, s.Contracts...)
	if _, err := s.Tool(ctx, publish...); err != nil {
		return err
	}
	for _, role := range []string{"recorder", "evidence", "analyst", "viewer"} {
		if err := s.createKey(ctx, role); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stack) createKey(ctx context.Context, role string) error {
	args := []string{"keys", "create", "--store", s.Store(), "--role", role, "-o", "json"}
	if role == "evidence" {
		for _, source := range Sources {
			args = append(args, "--source", source)
		}
	}
	out, err := s.Tool(ctx, args...)
	if err != nil {
		return err
	}
	var created struct {
		Secret string `json:"secret"`
	}
	if err := json.Unmarshal(out, &created); err != nil || created.Secret == "" {
		return fmt.Errorf("keys create --role %s: no secret in its answer", role)
	}
	s.Keys[role] = created.Secret
	return nil
}

// Tool runs the countersign command and returns what it printed.
func (s *Stack) Tool(ctx context.Context, args ...string) ([]byte, error) {
	return runTool(ctx, nil, append([]string{s.binary(SidecarBinary)}, args...)...)
}

// attempts to find ports that stay free until our processes listen on them.
const attempts = 5

func (s *Stack) start(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		if err := s.choosePorts(); err != nil {
			return err
		}
		err := s.startCollector(ctx)
		if err == nil {
			break
		}
		stopped := s.collector.stop()
		s.Addresses = Addresses{}
		if attempt == attempts || !strings.Contains(err.Error(), "address already in use") {
			return errors.Join(err, stopped)
		}
	}
	return s.StartSidecar(ctx)
}

func (s *Stack) choosePorts() error {
	a := &s.Addresses
	wanted := []*string{&a.OTLPGRPC, &a.OTLPHTTP, &a.Verdicts, &a.Health, &a.API}
	found, err := FreePorts(len(wanted))
	if err != nil {
		return fmt.Errorf("no free ports on localhost: %w", err)
	}
	for i, address := range wanted {
		if *address == "" || !free(*address) {
			*address = found[i]
		}
	}
	return nil
}

// environment is what the example configurations read.
func (s *Stack) environment() []string {
	return append([]string{
		"COUNTERSIGN_STORE=" + s.Store(),
		"COUNTERSIGN_DIR=" + s.Dir,
		"COUNTERSIGN_OTLP_GRPC=" + s.Addresses.OTLPGRPC,
		"COUNTERSIGN_OTLP_HTTP=" + s.Addresses.OTLPHTTP,
		"COUNTERSIGN_VERDICTS_HTTP=" + s.Addresses.Verdicts,
		"COUNTERSIGN_HEALTH=" + s.Addresses.Health,
	}, s.Environment...)
}

func (s *Stack) startCollector(ctx context.Context) (err error) {
	if err := os.MkdirAll(filepath.Join(s.Dir, "queue"), 0o700); err != nil {
		return err
	}
	command := []string{s.binary(CollectorBinary)}
	for _, file := range append([]string{filepath.Join(s.Root, "examples", "collector.yaml")}, s.Collector...) {
		command = append(command, "--config", file)
	}
	s.collector, err = launch(CollectorBinary, filepath.Join(s.Dir, "collector.log"), s.Detached, s.environment(), command...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return s.collector.await(ctx, answers("http://"+s.Addresses.Health+"/"))
}

// StartSidecar starts the sidecar; after KillSidecar, on the same store and address.
func (s *Stack) StartSidecar(ctx context.Context) (err error) {
	settings := append(s.environment(),
		"COUNTERSIGN_LISTEN="+s.Addresses.API,
	)
	s.sidecar, err = launch(SidecarBinary, filepath.Join(s.Dir, "sidecar.log"), s.Detached, settings,
		s.binary(SidecarBinary), "serve", "--config", filepath.Join(s.Root, "examples", "verifier.yaml"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return s.sidecar.await(ctx, answers(s.API("/readyz")))
}

// API is the URL of a path of the sidecar.
func (s *Stack) API(path string) string { return "http://" + s.Addresses.API + path }

// answers is ready when the URL answers 200.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}

// KillSidecar ends the sidecar as a power cut would.
func (s *Stack) KillSidecar() { s.sidecar.kill() }

// Close ends both processes, the collector first, so that the sidecar sees
// everything that it was still writing.
func (s *Stack) Close() error {
	return errors.Join(s.collector.stop(), s.sidecar.stop())
}

// Logs are the ends of both processes' logs.
func (s *Stack) Logs() string {
	return CollectorBinary + ":\n" + s.collector.tail() + "\n" + SidecarBinary + ":\n" + s.sidecar.tail()
}

// PIDs of the running processes by the name of their binary.
func (s *Stack) PIDs() map[string]int {
	return map[string]int{CollectorBinary: s.collector.pid(), SidecarBinary: s.sidecar.pid()}
}
