// Command countersign is the sidecar and its tools in one binary: it serves
// verification, and from a shell it validates and tests contracts, records and
// verifies actions, pushes facts and checks the chain of verdicts.
//
// Exit codes: 0 done, 1 the answer is no, 2 usage, 3 could not.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(mainCode())
}

func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
