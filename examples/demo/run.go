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

// run plays the story in a temporary folder, shows where its page is, and
// leaves nothing. With somebody in front of it, the page stays until they have
// seen it.
func run(ctx context.Context, root string) (err error) {
	dir, err := os.MkdirTemp("", "countersign-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	began := time.Now()
	fmt.Println("starting collector and sidecar on", filepath.Join(dir, "countersign.db"))
	s, err := stack.Start(ctx, stack.Options{Root: root, Dir: dir, Addresses: stack.Addresses{API: usualAddresses.API}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	rows, err := playAll(ctx, s)
	if err != nil {
		return err
	}
	fmt.Printf("\nDone in %s; everything is as the contract promises.\n", time.Since(began).Round(100*time.Millisecond))
	if !watched() {
		fmt.Printf(afterwards, usualAddresses.API, pagePath(rows))
		return nil
	}
	fmt.Printf(meanwhile, s.Keys["viewer"], s.API(pagePath(rows)))
	stay(ctx)
	return nil
}

// meanwhile is for somebody who sits in front of the run.
const meanwhile = `To look around later, make up leaves the same running; make down ends it.

See the first action, which failed and then passed. Press Enter to end this; nothing is left behind.
  sign in with  %s
  its page      %s
`

// afterwards is for a log. What it names was opened, and is gone.
const afterwards = `Nothing was left behind. To look around:
  bin/countersign contracts explain contracts/refund_workflow.yaml
  bin/countersign contracts test contracts    the tests beside the contracts
  make up                                     the same, left running, with addresses and keys

The page of the first action was opened and shows its verdicts. Once make up has run, it is at
  http://%s%s
`

// playAll sends the samples and the story, shows what came of both, and opens
// the page of the first action.
func playAll(ctx context.Context, s *stack.Stack) ([]refunds.Played, error) {
	samples, err := sendSamples(ctx, s)
	if err != nil {
		return nil, err
	}
	rows, err := tellStory(ctx, s)
	if err != nil {
		return nil, err
	}
	returned, err := refunds.AwaitReturned(ctx, s, rows)
	if err != nil {
		return nil, err
	}
	if err := checkNoLoop(ctx, s, len(samples), rows); err != nil {
		return nil, err
	}
	showSamples(samples)
	showStory(rows)
	showReturned(s, returned)
	return rows, errors.Join(differences(rows), look(ctx, s, rows))
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
