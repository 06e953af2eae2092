// Command demo plays the refund story on this machine: it starts the built
// collector and the built sidecar on one SQLite file, sends agents' telemetry
// and the facts of systems of record, and shows the verdicts.
//
//	demo run    play, show, leave nothing behind; fails unless every verdict is as it has to be.
//	            In a terminal the page stays until Enter is pressed
//	demo up     play and leave everything running
//	demo down   end what up started
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	if len(args) != 1 {
		return errors.New("needs one of run, up, down")
	}
	switch args[0] {
	case "run":
		return run(ctx, root)
	case "up":
		return up(ctx, root)
	case "down":
		return down(ctx, root)
	}
	return fmt.Errorf("unknown command %q; write run, up or down", args[0])
}

// findRoot looks for go.mod from the working folder upwards.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("run this inside the repository: no go.mod here or above")
		}
		dir = parent
	}
}
