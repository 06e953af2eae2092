package contract_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// laughs is an anchor that doubles itself n times.
func laughs(n int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [lol, lol]\n")
	for i := range n {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	return b.String()
}

// TestD20_DocumentsAreBounded: size, expansion, depth, lists and calls.
func TestD20_DocumentsAreBounded(t *testing.T) {
	t.Parallel()
	entry := "    - param_max: {param: a, max: 1}\n"
	leaf := "      - {effect_observed: {source: a, type: a}}\n"
	branches := "    - any:\n" + strings.Repeat(strings.ReplaceAll(leaf, "      ", "        "), 64)
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	for _, c := range []struct{ name, document, want string }{
		{"one byte too many", small + "#" + strings.Repeat("x", contract.MaxDocument-len(small)), "c.yaml: has 262145 bytes; at most 262144 are allowed\n"},
		{"anchors that double 30 times", laughs(30), "c.yaml:18:6: anchors expand to more than 1048576 bytes\n"},
		{"nested too deep", "a: " + deep, "c.yaml:1:35: is nested deeper than 32 levels\n"},
		{"nested so deep that the library gives up", "a: " + strings.Repeat("[", 20000), "c.yaml:1:1: is not YAML: exceeded max depth of 10000\n"},
		{"a list of 65", small + "  limits:\n" + strings.Repeat(entry, 65), "c.yaml:9:5: action.limits has 65 entries; at most 64 are allowed\n"},
		{"257 calls", small + "  unverifiable_if:\n" + strings.Repeat(branches, 4), "c.yaml:268:11: the contract has more than 256 checks and conditions\n"},
		{"two documents", small + "---\nkind: action\n", "c.yaml:8:1: a second document begins here; write one document to a file\n"},
		{"nothing", "", "c.yaml: is empty\n"},
		{"only a comment", "# nothing\n", "c.yaml: is empty\n"},
		{"another encoding", "id: caf\xe9\n", "c.yaml:1:8: is not UTF-8; save the file as UTF-8\n"},
		{"a NUL", "id: a\x00b\n", "c.yaml:1:1: is not YAML: control characters are not allowed; remove them\n"},
	} {
		parsed, diagnostics := contract.Parse("c.yaml", []byte(c.document))
		if parsed != nil {
			t.Errorf("%s: accepted", c.name)
		}
		if diff := cmp.Diff(c.want, texts(diagnostics)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestD20_DiagnosticsAreBounded: a hostile file gets a page of errors, not a gigabyte.
func TestD20_DiagnosticsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(small)
	for i := range 2000 {
		fmt.Fprintf(&b, "wrong%d: 1\n", i)
	}
	_, diagnostics := contract.Parse("c.yaml", []byte(b.String()))
	if len(diagnostics) != diagnostic.MaxDiagnostics+1 {
		t.Fatalf("%d diagnostics", len(diagnostics))
	}
	if got := diagnostics[diagnostic.MaxDiagnostics].Error(); got != "c.yaml: 1500 more errors were left out" {
		t.Errorf("the last one is %q", got)
	}
	_, diagnostics = contract.Parse("c.yaml", []byte(small+strings.Repeat("k", 100000)+": 1\n"))
	if n := len(diagnostics[0].Error()); n > 3000 {
		t.Errorf("a long key is repeated in %d bytes", n)
	}
}

// TestD20_AnchorsMayBeUsed within the bounds: they stand for what they name.
func TestD20_AnchorsMayBeUsed(t *testing.T) {
	t.Parallel()
	with := small + "  limits: [&a {param_max: {param: a, max: 1}}, {param_in: {param: b, values: &v [x, y]}}]\n" +
		"exclusions: [*a, {param_in: {param: c, values: *v}}]\n"
	without := small + "  limits: [{param_max: {param: a, max: 1}}, {param_in: {param: b, values: [x, y]}}]\n" +
		"exclusions: [{param_max: {param: a, max: 1}}, {param_in: {param: c, values: [x, y]}}]\n"
	a, diagnostics := contract.Parse("a.yaml", []byte(with))
	if a == nil {
		t.Fatal(texts(diagnostics))
	}
	b, diagnostics := contract.Parse("b.yaml", []byte(without))
	if b == nil {
		t.Fatal(texts(diagnostics))
	}
	if a.Hash != b.Hash {
		t.Error("anchors are content")
	}
}

// TestD21_HashIsOfTheContent: what people do not read does not count, what they read does.
func TestD21_HashIsOfTheContent(t *testing.T) {
	t.Parallel()
	hash := func(text string) string {
		t.Helper()
		c, diagnostics := contract.Parse("c.yaml", []byte(text))
		if c == nil {
			t.Fatal(texts(diagnostics))
		}
		return c.Hash
	}
	original := small + "  window: 60m\n  limits: [{param_max: {param: amount, max: 250}}]\n"
	want := hash(original)
	for name, text := range map[string]string{
		"order of keys": "version: 1\n" + strings.Replace(original, "version: 1\n", "", 1),
		"comments":      "# hello\n" + strings.ReplaceAll(original, "\n", " # why\n"),
		"quotes":        strings.NewReplacer("60m", `"60m"`, "250", "'250'", "internal\n", "\"internal\"\n").Replace(original),
		"block style":   strings.Replace(original, "[{param_max: {param: amount, max: 250}}]", "\n    - param_max:\n        max: 250\n        param: amount", 1),
		"line ends":     strings.ReplaceAll(original, "\n", "\r\n"),
	} {
		if hash(text) != want {
			t.Errorf("%s are content", name)
		}
	}
	for name, text := range map[string]string{
		"the spelling of a duration": strings.Replace(original, "60m", "1h", 1),
		"the spelling of a number":   strings.Replace(original, "250", "250.0", 1),
		"the version":                strings.Replace(original, "version: 1", "version: 2", 1),
		"a limit":                    strings.Replace(original, "250", "251", 1),
		"a text":                     strings.Replace(original, "internal://p", "internal://q", 1),
	} {
		if hash(text) == want {
			t.Errorf("%s is no content", name)
		}
	}
}

// TestD21_VersionsAreImmutable: one id and version stands in one file.
func TestD21_VersionsAreImmutable(t *testing.T) {
	t.Parallel()
	contracts, diagnostics := contract.ParseAll(
		contract.File{Name: "a.yaml", Document: []byte(small)},
		contract.File{Name: "bad.yaml", Document: []byte("kind: action")},
		contract.File{Name: "b.yaml", Document: []byte(small + "  window: 2h\n")},
		contract.File{Name: "c.yaml", Document: []byte(strings.Replace(small, "version: 1", "version: 2", 1))},
	)
	if len(contracts) != 2 || contracts[0].Version != 1 || contracts[1].Version != 2 {
		t.Errorf("%d contracts", len(contracts))
	}
	got := diagnostics[len(diagnostics)-1].Error()
	if want := "b.yaml:1:1: small version 1 is in a.yaml too; a version is immutable; give an edit the next version, and another contract an id of its own"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestD22_EqualDurationsMakeEqualCalls: the call key holds seconds, however the contract spells them.
func TestD22_EqualDurationsMakeEqualCalls(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for _, window := range []string{"60m", "1h", "0060m"} {
		c, diagnostics := contract.Parse("c.yaml", []byte(small+"  window: "+window+"\n"))
		if c == nil {
			t.Fatal(texts(diagnostics))
		}
		if c.WindowText != window {
			t.Errorf("the window prints as %s, not as %s", c.WindowText, window)
		}
		keys[c.Calls[0].Key(nil)] = true
	}
	if len(keys) != 1 {
		t.Errorf("different keys: %v", keys)
	}
}

// TestParseNeverPanics mutates real contracts: lines swapped, dropped and
// doubled, bytes changed. Whatever comes out, Parse answers, explains and lints.
func TestParseNeverPanics(t *testing.T) {
	t.Parallel()
	seeds := seedDocuments(t)
	rapid.Check(t, func(t *rapid.T) {
		lines := bytes.SplitAfter(rapid.SampledFrom(seeds).Draw(t, "seed"), []byte("\n"))
		for range rapid.IntRange(1, 6).Draw(t, "mutations") {
			i := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
			switch rapid.SampledFrom([]string{"drop", "double", "byte", "indent", "token"}).Draw(t, "how") {
			case "drop":
				lines[i] = nil
			case "double":
				lines[i] = append(bytes.Clone(lines[i]), lines[i]...)
			case "byte":
				if len(lines[i]) > 0 {
					changed := bytes.Clone(lines[i])
					changed[rapid.IntRange(0, len(changed)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "value")
					lines[i] = changed
				}
			case "indent":
				lines[i] = append([]byte("  "), lines[i]...)
			case "token":
				token := rapid.SampledFrom([]string{"*a", "&a ", "[", "}", "? ", "- ", "null", "!!set ", "<<: *a", "any: ", "not: ", "\t", "|\n", "---\n", "%TAG"}).Draw(t, "token")
				lines[i] = append([]byte(token), lines[i]...)
			}
		}
		checkParse(t, bytes.Join(lines, nil))
	})
}

func checkParse(t interface{ Fatalf(string, ...any) }, document []byte) {
	c, diagnostics := contract.Parse("c.yaml", document)
	if (c == nil) == (len(diagnostics) == 0) {
		t.Fatalf("a contract: %v, diagnostics: %s", c != nil, texts(diagnostics))
	}
	if c == nil {
		return
	}
	if len(c.Hash) != 64 || len(c.Places) != len(c.Calls) || len(c.Calls) < len(c.Checks) {
		t.Fatalf("hash %q, %d places, %d calls, %d checks", c.Hash, len(c.Places), len(c.Calls), len(c.Checks))
	}
	if contract.Explain(c) == "" {
		t.Fatalf("nothing explained")
	}
	contract.Lint("c.yaml", c, nil)
}

// seedDocuments are the library, the refusals and the accepted forms.
func seedDocuments(t testing.TB) [][]byte {
	t.Helper()
	seeds := [][]byte{[]byte(small), []byte(laughs(5))}
	files, err := filepath.Glob(filepath.Join(library, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		document, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, document)
	}
	for _, text := range accepted {
		seeds = append(seeds, []byte(small+text))
	}
	_, cases := readCases(t, refusalsFile)
	for _, c := range cases {
		seeds = append(seeds, []byte(c.document()))
	}
	return seeds
}

func FuzzContractYAML(f *testing.F) {
	for _, seed := range seedDocuments(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, document []byte) { checkParse(t, document) })
}
