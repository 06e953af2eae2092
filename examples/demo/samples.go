package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/countersign-otel/countersign/examples/stack"
)

// sampleSubject is the order that the send_refund calls of all samples are about.
const sampleSubject = "A-1001"

// sendSamples sends what instrumentations really write, and returns the
// actions that were recorded of it: one refund in each sample.
func sendSamples(ctx context.Context, s *stack.Stack) ([]stack.Verification, error) {
	files, err := filepath.Glob(filepath.Join(s.Root, "examples", "telemetry", "*.json"))
	if err != nil {
		return nil, err
	}
	fmt.Printf("sending %d samples of agents' telemetry, then the story of five verdicts\n", len(files))
	for _, file := range files {
		request, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := s.SendTraces(ctx, request); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 45*time.Second)
	defer cancel()
	return stack.Await(ctx, "the verdicts on the samples", func(ctx context.Context) ([]stack.Verification, bool, error) {
		actions, err := s.Actions(ctx, url.Values{"subject_id": {sampleSubject}})
		return actions, len(actions) == len(files) && !slices.ContainsFunc(actions, unsettled), err
	})
}

func unsettled(v stack.Verification) bool { return v.Status != "settled" }

func showSamples(samples []stack.Verification) {
	var agents []string
	for _, v := range samples {
		if !slices.Contains(agents, v.Action.AgentID) {
			agents = append(agents, v.Action.AgentID)
		}
	}
	slices.Sort(agents)
	fmt.Printf("\nSamples: %d calls of %s by %s recorded; all %s\n",
		len(samples), samples[0].Action.Tool, strings.Join(agents, ", "), samples[0].Summary.Headline)
}
