package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/examples/stack"
)

// pages are those of docs/ whose every command is run, in the order of the page.
var pages = []string{
	"http.md", "start-otel.md", "start-collector.md", "start-traces.md", "start-aevs.md", "start-audit.md",
}

// TestPages does what a reader of the documentation does: it runs the commands
// of a page one after the other in one shell and compares what they print.
//
// In a fence that says console, a line that starts with "$ " is a command. It
// goes on while a line ends in \ or a quote is open. What follows is its
// output; without any, only the exit code counts. … stands for anything in a
// line, and alone on a line for any lines. A command that ends in "# exits N"
// must do that.
func TestPages(t *testing.T) {
	for _, name := range pages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(root, "docs", name))
			if err != nil {
				t.Fatal(err)
			}
			commands := commandsOf(string(text))
			if len(commands) == 0 {
				t.Fatal("no command on this page")
			}
			play(t, commands)
		})
	}
}

// command is one of a page, with the line it stands on.
type command struct {
	line   int
	text   string
	output string
	exits  int
}

var exits = regexp.MustCompile(`# exits (\d+)$`)

func commandsOf(page string) []command {
	var commands []command
	inside, open := false, false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inside, open = line == "```console", false
		case !inside:
		case open:
			last := &commands[len(commands)-1]
			last.text += "\n" + line
			open = goesOn(last.text)
		case strings.HasPrefix(line, "$ "):
			text := strings.TrimPrefix(line, "$ ")
			commands = append(commands, command{line: i + 1, text: text})
			open = goesOn(text)
		case len(commands) > 0:
			commands[len(commands)-1].output += line + "\n"
		}
	}
	for i := range commands {
		if match := exits.FindStringSubmatch(commands[i].text); match != nil {
			commands[i].exits, _ = strconv.Atoi(match[1])
		}
	}
	return commands
}

func goesOn(text string) bool {
	return strings.HasSuffix(text, `\`) || strings.Count(text, "'")%2 == 1
}

// mark ends what a command printed, with its exit code.
const mark = "\x1e"

// play runs commands in a folder that looks like the root of the repository.
func play(t *testing.T, commands []command) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	addresses, environment := addressesOf(t, commands)
	script := "trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT\n"
	for _, c := range commands {
		script += fmt.Sprintf("%s\nstatus=$?; printf '%s%%d%s' $status; [ $status = %d ] || exit 1\n", addresses.Replace(c.text), mark, mark, c.exits)
	}
	shell := exec.CommandContext(ctx, "bash", "-c", script)
	shell.Dir = readersFolder(t)
	shell.Env = append(os.Environ(), environment...)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	var stdout, stderr bytes.Buffer
	shell.Stdout, shell.Stderr = &stdout, &stderr
	err := shell.Run()
	compare(t, commands, strings.Split(stdout.String(), mark), addresses)
	if err != nil || t.Failed() {
		t.Errorf("the shell ended with %v; on stderr:\n%s\n%s", err, stderr.String(), logsIn(shell.Dir))
	}
}

// logsIn are the ends of what a page's processes wrote into files.
func logsIn(dir string) string {
	names, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	var logs strings.Builder
	for _, name := range names {
		text, _ := os.ReadFile(name)
		fmt.Fprintf(&logs, "%s:\n%s\n", filepath.Base(name), text[max(0, len(text)-2000):])
	}
	return logs.String()
}

// compare looks at the output of each command; parts are outputs and exit codes by turns.
func compare(t *testing.T, commands []command, parts []string, addresses *strings.Replacer) {
	t.Helper()
	for i, c := range commands {
		if 2*i+1 >= len(parts) {
			t.Errorf("line %d was not reached: %s", c.line, c.text)
			return
		}
		got, code := parts[2*i], parts[2*i+1]
		if code != strconv.Itoa(c.exits) {
			t.Errorf("line %d exits %s, want %d: %s\n%s", c.line, code, c.exits, c.text, got)
			return
		}
		if c.output != "" && !pattern(addresses.Replace(c.output)).MatchString(got) {
			t.Errorf("line %d: %s\nprints\n%s\nand not, as the page says,\n%s", c.line, c.text, got, c.output)
		}
	}
}

// pattern reads what a page says of an output.
func pattern(output string) *regexp.Regexp {
	text := regexp.QuoteMeta(strings.TrimRight(output, "\n"))
	text = regexp.MustCompile(`(?m)^…$\n?`).ReplaceAllString(text, `(?s:.*)`)
	return regexp.MustCompile(`^` + strings.ReplaceAll(text, "…", `.*`) + `\s*$`)
}

// variables replace the addresses that the example configurations have.
var variables = map[string]string{
	"localhost:8383":  "COUNTERSIGN_LISTEN",
	"localhost:4317":  "COUNTERSIGN_OTLP_GRPC",
	"localhost:4318":  "COUNTERSIGN_OTLP_HTTP",
	"localhost:4319":  "COUNTERSIGN_VERDICTS_HTTP",
	"localhost:4320":  "COUNTERSIGN_AEVS",
	"localhost:13133": "COUNTERSIGN_HEALTH",
}

var address = regexp.MustCompile(`localhost:\d+`)

// addressesOf gives every address of a page, and of the examples, a free port
// in its stead, so that pages and other tests can run beside each other.
func addressesOf(t *testing.T, commands []command) (*strings.Replacer, []string) {
	t.Helper()
	wanted := slices.Collect(maps.Keys(variables))
	for _, c := range commands {
		wanted = append(wanted, address.FindAllString(c.text, -1)...)
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	slices.Reverse(wanted) // localhost:43180 before localhost:4318
	free, err := stack.FreePorts(len(wanted))
	if err != nil {
		t.Fatal(err)
	}
	var pairs, environment []string
	for i, from := range wanted {
		to := "localhost" + free[i][strings.LastIndex(free[i], ":"):]
		pairs = append(pairs, from, to)
		if variable := variables[from]; variable != "" {
			environment = append(environment, variable+"="+to)
		}
	}
	return strings.NewReplacer(pairs...), environment
}

// readersFolder has what the commands name, and is writable.
func readersFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bin", "contracts", "examples", "docs"} {
		if err := os.Symlink(filepath.Join(absolute, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestEveryEndpointIsShown: docs/http.md has a command for each operation that the sidecar describes.
func TestEveryEndpointIsShown(t *testing.T) {
	t.Parallel()
	description, err := os.ReadFile(filepath.Join(root, "verifier", "api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var openapi struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(description, &openapi); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "http.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, c := range commandsOf(string(page)) {
		method := "get"
		if strings.Contains(c.text, " -d ") || strings.Contains(c.text, "-X POST") {
			method = "post"
		}
		for path := range openapi.Paths {
			if pathPattern(path).MatchString(c.text) {
				shown[method+" "+path] = true
			}
		}
	}
	for path, operations := range openapi.Paths {
		for method := range operations {
			if !shown[method+" "+path] {
				t.Errorf("docs/http.md has no curl line for %s %s", strings.ToUpper(method), path)
			}
		}
	}
}

var parameter = regexp.MustCompile(`\\\{\w+\\\}`)

func pathPattern(path string) *regexp.Regexp {
	return regexp.MustCompile(`localhost:8383` + parameter.ReplaceAllString(regexp.QuoteMeta(path), `[^/?' "]+`) + `(?:[?' "]|$)`)
}
