// Command mutation breaks the SQL and the Go of every primitive in turn and
// runs the tests over each broken copy. A mutation that no test notices is a
// hole in the suite; the command then exits 1.
//
// The tree is not touched: go test reads the broken file through -overlay.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const folder = "engine/primitive"

func main() {
	cases := flag.Int("cases", 2000, "random cases per mutation")
	only := flag.String("only", "", "run only mutations of files whose name contains this")
	flag.Parse()
	if err := run(os.Stdout, *cases, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, cases int, only string) error {
	scratch, err := os.MkdirTemp("", "countersign-mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	survived := 0
	for _, m := range mutations {
		if !strings.Contains(m.file, only) {
			continue
		}
		overlay, err := write(m, scratch)
		if err != nil {
			return err
		}
		by, err := noticed(overlay, cases)
		if err != nil {
			return err
		}
		if by == "" {
			survived++
			by = "NOBODY"
		}
		fmt.Fprintf(out, "%-24s %-4s %s -> %s\n%29s noticed by %s\n", m.file, m.side, oneLine(m.from), oneLine(m.to), "", by)
	}
	if survived > 0 {
		return fmt.Errorf("%d mutations survived", survived)
	}
	return nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// write makes the broken copy and the overlay that puts it in place.
func write(m mutation, scratch string) (overlay string, err error) {
	path, err := filepath.Abs(filepath.Join(folder, m.file))
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := bytes.Count(text, []byte(m.from)); n != 1 {
		return "", fmt.Errorf("%s: %q stands %d times, want once; mend the list of mutations", m.file, m.from, n)
	}
	broken := filepath.Join(scratch, m.file)
	if err := os.WriteFile(broken, bytes.Replace(text, []byte(m.from), []byte(m.to), 1), 0o600); err != nil {
		return "", err
	}
	document, err := json.Marshal(map[string]map[string]string{"Replace": {path: broken}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(scratch, "overlay.json")
	return overlay, os.WriteFile(overlay, document, 0o600)
}

// noticed names the suite that fails over the broken copy, "" for none. A copy
// that does not compile is a mistake in the list, not a finding.
func noticed(overlay string, cases int) (string, error) {
	suites := []struct {
		name string
		args []string
	}{
		{"the specification's tables", []string{"./engine/goeval", "./engine/report"}},
		{"the random cases", []string{"./internal/agreement", "-run", "D23|Specification", "-cases", fmt.Sprint(cases)}},
	}
	for _, suite := range suites {
		args := append([]string{"test", "-overlay", overlay, "-count=1"}, suite.args...)
		output, err := exec.Command("go", args...).CombinedOutput()
		if err == nil {
			continue
		}
		if bytes.Contains(output, []byte("[build failed]")) || !bytes.Contains(output, []byte("--- FAIL")) {
			return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, output)
		}
		return suite.name, nil
	}
	return "", nil
}
