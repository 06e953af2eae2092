package contracttest_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/contract/contracttest"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"github.com/countersign-otel/countersign/engine/report"
)

const library = "../../../contracts"

// TestLibrary runs the tests beside the library's contracts on the Go
// evaluator, and demands that they make every check pass and fail.
func TestLibrary(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(library, "*_test.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", library, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			runFile(t, name)
		})
	}
}

// TestSemantics holds the Go evaluator to what AC and the decisions say, statement by statement.
func TestSemantics(t *testing.T) {
	t.Parallel()
	runFile(t, "testdata/semantics_test.yaml")
}

func runFile(t *testing.T, name string) {
	f, diagnostics := contracttest.Parse(name, readFile(t, name))
	fatal(t, diagnostics)
	path := filepath.Join(filepath.Dir(name), f.Contract)
	c, diagnostics := contract.Parse(path, readFile(t, path))
	fatal(t, diagnostics)
	coverage := contracttest.NewCoverage(c)
	for _, test := range f.Tests {
		for i, v := range test.Evaluate(c, report.DefaultSettings()) {
			coverage.Add(v.Evaluation)
			for _, difference := range test.Actions[i].Expect.Compare(v) {
				t.Errorf("%s:%d: %s: %s", name, test.Line, test.Name, difference)
			}
		}
	}
	for _, gap := range coverage.Gaps() {
		t.Errorf("%s: %s", name, gap)
	}
}

func TestGapsSayWhichTestIsMissing(t *testing.T) {
	t.Parallel()
	path := "../../../contracts/refund_workflow.yaml"
	c, diagnostics := contract.Parse(path, readFile(t, path))
	fatal(t, diagnostics)
	gaps := contracttest.NewCoverage(c).Gaps()
	for _, want := range []string{
		"no test where this check passes: limits: amount at most 250",
		"no test where this check fails: limits: amount at most 250",
	} {
		if !slices.Contains(gaps, want) {
			t.Errorf("no %q among %q", want, gaps)
		}
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	document, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func fatal(t *testing.T, diagnostics []diagnostic.Diagnostic) {
	t.Helper()
	for _, d := range diagnostics {
		t.Error(d)
	}
	if len(diagnostics) > 0 {
		t.FailNow()
	}
}
