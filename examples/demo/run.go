package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/countersign-otel/countersign/examples/refunds"
	"github.com/countersign-otel/countersign/examples/stack"
)

// run plays the story in a temporary folder and leaves nothing.
func run(ctx context.Context, root string) (err error) {
	dir, err := os.MkdirTemp("", "countersign-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	began := time.Now()
	fmt.Println("starting collector and sidecar on", filepath.Join(dir, "countersign.db"))
	s, err := stack.Start(ctx, stack.Options{Root: root, Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := playAll(ctx, s); err != nil {
		return err
	}
	fmt.Printf(`
Done in %s; everything is as the contract promises. Nothing was left behind. To look around:
  make up                                     the same, left running, with addresses and keys
  bin/countersign contracts explain contracts/refund_workflow.yaml
  bin/countersign contracts test contracts    the tests beside the contracts
`, time.Since(began).Round(100*time.Millisecond))
	return nil
}

// playAll sends the samples and the story and shows what came of both.
func playAll(ctx context.Context, s *stack.Stack) error {
	samples, err := sendSamples(ctx, s)
	if err != nil {
		return err
	}
	rows, err := tellStory(ctx, s)
	if err != nil {
		return err
	}
	returned, err := refunds.AwaitReturned(ctx, s, rows)
	if err != nil {
		return err
	}
	if err := checkNoLoop(ctx, s, len(samples), rows); err != nil {
		return err
	}
	showSamples(samples)
	showStory(rows)
	showReturned(s, returned)
	return differences(rows)
}

func tellStory(ctx context.Context, s *stack.Stack) ([]refunds.Played, error) {
	var rows []refunds.Played
	for _, step := range refunds.Story(time.Now()) {
		fmt.Printf("  %d. %s\n", step.Number, step.About)
		v, err := refunds.Play(ctx, s, step)
		if err != nil {
			return nil, err
		}
		rows = append(rows, refunds.Played{Step: step, Got: v})
	}
	return rows, nil
}

func differences(rows []refunds.Played) error {
	var all []error
	for _, r := range rows {
		for _, text := range r.Step.Differences(r.Got) {
			all = append(all, fmt.Errorf("row %d: %s", r.Step.Number, text))
		}
	}
	return errors.Join(all...)
}

// checkNoLoop fails when verdicts that came back became actions.
func checkNoLoop(ctx context.Context, s *stack.Stack, samples int, rows []refunds.Played) error {
	actions, err := s.Actions(ctx, nil)
	if err != nil {
		return err
	}
	want := samples
	for _, r := range rows {
		if !r.Step.Again() {
			want++
		}
	}
	if len(actions) != want {
		return fmt.Errorf("the ledger has %d actions, the telemetry told of %d", len(actions), want)
	}
	return nil
}
