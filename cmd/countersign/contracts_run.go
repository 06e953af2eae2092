package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/contract/contracttest"
	"github.com/countersign-otel/countersign/ledger"
)

func newContractsTest(t *terminal) *cobra.Command {
	var only, url string
	cmd := &cobra.Command{
		Use:   "test PATH...",
		Short: "Run the tests that stand beside contracts (*_test.yaml)",
		Long: `Runs every test of *_test.yaml files, each on a store of its own: actions, facts, links and
sources are stored, the verdicts are evaluated in SQL and derived again in Go, and compared
with what the test expects. Lists the checks of each contract that no test makes pass, or
none makes fail. Exit code 1 when a test fails.`,
		Example: "  countersign contracts test contracts\n  countersign contracts test --run 'over the limit' contracts/refund_workflow_test.yaml",
		Args:    atLeast(1, "files or folders with contract tests"),
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern, err := regexp.Compile(only)
			if err != nil {
				return usagef("--run: %w", err)
			}
			files, err := testFiles(args)
			if err != nil {
				return err
			}
			return withStore(cmd.Context(), url, func(store ledger.Ledger) error {
				return runTestFiles(cmd.Context(), t, store, files, pattern)
			})
		},
	}
	cmd.Flags().StringVar(&url, "store", memoryStore, "evaluate in this migrated store instead; nothing stays in it")
	cmd.Flags().StringVar(&only, "run", "", "run only the tests whose name matches this regular expression")
	return cmd
}

func testFiles(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, unreadable(err)
		}
		if !info.IsDir() && !isTestFile(path) {
			return nil, usagef("%s is no contract test: the name of one ends in _test.yaml", path)
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		found, err := yamlFiles(path, isTestFile)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, usagef("%s holds no contract test: no *_test.yaml", path)
		}
		files = append(files, found...)
	}
	return files, nil
}

// fileResult is what became of one test file.
type fileResult struct {
	File     string       `json:"file"`
	Contract string       `json:"contract,omitempty"`
	OK       bool         `json:"ok"`
	Errors   []string     `json:"errors,omitempty"`
	Tests    []testResult `json:"tests"`
	// Uncovered are checks that no test makes pass, or none makes fail.
	Uncovered []string `json:"uncovered"`
	took      time.Duration
}

type testResult struct {
	Name        string             `json:"name"`
	Line        int                `json:"line"`
	OK          bool               `json:"ok"`
	Differences []actionDifference `json:"differences,omitempty"`
}

type actionDifference struct {
	ActionID string `json:"action_id"`
	Line     int    `json:"line"`
	// Text is one readable block: what, expected, got.
	Text string `json:"text"`
}

func runTestFiles(ctx context.Context, t *terminal, store ledger.Ledger, files []string, only *regexp.Regexp) error {
	results := make([]fileResult, 0, len(files))
	failed, ran := 0, 0
	for _, file := range files {
		result, err := runTestFile(ctx, store, file, only)
		if err != nil {
			return err
		}
		results = append(results, result)
		ran += len(result.Tests)
		if !result.OK {
			failed++
		}
		if !t.json() {
			printTestFile(t, result, only.String() == "")
		}
	}
	if t.json() {
		if err := t.printJSON(map[string]any{"ok": failed == 0, "files": results}); err != nil {
			return err
		}
	}
	switch {
	case failed > 0:
		return nof("%s of %d failed", plural(failed, "test file"), len(files))
	case ran == 0:
		return usagef("no test matches --run %s", only)
	}
	return nil
}

func runTestFile(ctx context.Context, store ledger.Ledger, name string, only *regexp.Regexp) (fileResult, error) {
	began := time.Now()
	result := fileResult{File: name, Tests: []testResult{}, Uncovered: []string{}}
	file, c, errs, err := loadTests(name)
	if err != nil {
		return result, err
	}
	if len(errs) > 0 {
		result.Errors = errs
		return result, nil
	}
	result.OK = true
	result.Contract = fmt.Sprintf("%s version %d", c.ID, c.Version)
	coverage := contracttest.NewCoverage(c)
	for i := range file.Tests {
		test := &file.Tests[i]
		if !only.MatchString(test.Name) {
			continue
		}
		one, err := runTest(ctx, store, c, test, coverage)
		if err != nil {
			return result, fmt.Errorf("%s:%d: %q: %w", name, test.Line, test.Name, err)
		}
		result.Tests = append(result.Tests, one)
		result.OK = result.OK && one.OK
	}
	if only.String() == "" {
		result.Uncovered = append(result.Uncovered, coverage.Gaps()...)
	}
	result.took = time.Since(began)
	return result, nil
}

// loadTests reads a test file and the contract that it is about; errs are their diagnostics.
func loadTests(name string) (file *contracttest.File, c *contract.Contract, errs []string, err error) {
	document, err := readBounded(name, contracttest.MaxDocument)
	if err != nil {
		return nil, nil, nil, err
	}
	file, diagnostics := contracttest.Parse(name, document)
	for _, d := range diagnostics {
		errs = append(errs, printable(d.Error()))
	}
	if file == nil {
		return nil, nil, errs, nil
	}
	about, err := readContract(filepath.Join(filepath.Dir(name), file.Contract))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: its contract: %w", name, err)
	}
	c, diagnostics = contract.Parse(about.Name, about.Document)
	for _, d := range diagnostics {
		errs = append(errs, printable(d.Error()))
	}
	return file, c, errs, nil
}

func runTest(ctx context.Context, store ledger.Ledger, c *contract.Contract, test *contracttest.Test, coverage *contracttest.Coverage) (testResult, error) {
	result := testResult{Name: test.Name, Line: test.Line, OK: true}
	verdicts, err := judgeTest(ctx, store, c, test)
	if err != nil {
		return result, err
	}
	for i, verdict := range verdicts {
		coverage.Add(verdict.Evaluation)
		for _, text := range test.Actions[i].Expect.Compare(verdict) {
			result.OK = false
			result.Differences = append(result.Differences, actionDifference{test.Actions[i].Action.ActionID, test.Actions[i].Line, text})
		}
	}
	return result, nil
}

func printTestFile(t *terminal, result fileResult, all bool) {
	for _, text := range result.Errors {
		t.printf("%s\n", text)
	}
	for _, test := range result.Tests {
		if !test.OK {
			printFailedTest(t, result.File, test)
		}
	}
	word := t.style.green("ok  ")
	if !result.OK {
		word = t.style.red("FAIL")
	}
	t.printf("%s  %s  %s  %s\n", word, result.File, plural(len(result.Tests), "test"), result.took.Round(time.Millisecond))
	if !all || !result.OK {
		return
	}
	for _, gap := range result.Uncovered {
		t.printf("      %s %s\n", t.style.yellow("not covered:"), printable(gap))
	}
}

func printFailedTest(t *terminal, file string, test testResult) {
	t.printf("%s  %s:%d: %s\n", t.style.red("FAIL"), file, test.Line, t.style.bold(printable(test.Name)))
	for _, d := range test.Differences {
		t.printf("      action %s (line %d): %s\n", printable(d.ActionID), d.Line, colourDifference(t, d.Text))
	}
}

// colourDifference indents a block and colours its lines by their sign.
func colourDifference(t *terminal, text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = printable(line)
		switch {
		case strings.HasPrefix(line, "  -"):
			line = t.style.red(line)
		case strings.HasPrefix(line, "  +"):
			line = t.style.green(line)
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n      ")
}
