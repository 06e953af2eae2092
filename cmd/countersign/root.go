package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// run executes one command line and returns its exit code. It is main without
// the process, so that tests run what users run.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := newTerminal(stdin, stdout, stderr)
	root := newRoot(t)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	complain(t, err)
	return exitCode(err)
}

func newRoot(t *terminal) *cobra.Command {
	root := &cobra.Command{
		Use:   "countersign",
		Short: "Verify, after the fact, what AI agents did",
		Long: `Countersign compares what an agent said it did (spans) with what the systems of
record show (facts) under a contract, and says PASS, FAIL or UNKNOWN with evidence.

Exit codes: 0 done, 1 the answer is no, 2 usage, 3 could not.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          needsCommand,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().VarP(&t.format, "output", "o", "what to print: text for people, json for programs")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		switch {
		case strings.Contains(err.Error(), "missing unit in duration"):
			err = fmt.Errorf("%w; write one with it, like 90s or 20m", err)
		case strings.Contains(err.Error(), "invalid duration"):
			err = fmt.Errorf("%w; write one like 90s or 20m", err)
		}
		return usagef("%w\nsee: %s --help", err, cmd.CommandPath())
	})
	root.Version = thisVersion().text()
	root.SetVersionTemplate("countersign {{.Version}}\n")
	root.AddCommand(
		newServe(t), newMigrate(t), newContracts(t), newActions(t), newFacts(t), newSources(t), newReport(t),
		newRules(t), newCollector(t), newKeys(t), newWebhooks(t), newLog(t), newRetention(t), newBench(t), newVersion(t),
	)
	return root
}

// group makes a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: noArgs, RunE: needsCommand}
	cmd.AddCommand(commands...)
	return cmd
}

// needsCommand answers a call without a command: help, and exit code 2.
func needsCommand(cmd *cobra.Command, _ []string) error {
	if err := cmd.Help(); err != nil {
		return err
	}
	return usagef("%s needs a command", cmd.CommandPath())
}

// noArgs also catches misspelt commands, which cobra hands over as arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return usagef("%s takes no argument, got %q\nsee: %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	text := fmt.Sprintf("unknown command %q of %s", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += fmt.Sprintf("; did you mean %s?", strings.Join(near, ", "))
	}
	return usagef("%s\nsee: %s --help", text, cmd.CommandPath())
}

// atLeast and exactly check arguments, naming what is missing.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= n {
			return nil
		}
		return usagef("%s needs %s\nsee: %s --help", cmd.CommandPath(), what, cmd.CommandPath())
	}
}

// atMostOne is for a command that works on one thing or on all.
func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < 2 {
			return nil
		}
		return usagef("%s takes %s or nothing, got %d arguments\nsee: %s --help", cmd.CommandPath(), what, len(args), cmd.CommandPath())
	}
}

func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usagef("%s needs %s, got %d arguments\nsee: %s --help", cmd.CommandPath(), what, len(args), cmd.CommandPath())
	}
}

// complain prints the error of a command, once. An answer that was printed
// already has nothing more to say.
func complain(t *terminal, err error) {
	if err == nil {
		return
	}
	var no *noAnswer
	if errors.As(err, &no) && no.text == "" {
		return
	}
	fmt.Fprintf(t.stderr, "%s %s\n", t.errStyle.red("countersign:"), err)
}
