package diagnostic

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-otel/countersign/engine"
	"gopkg.in/yaml.v3"
)

// Mapping reads the keys of one YAML mapping and reports what is wrong with them.
type Mapping struct {
	reporter *Reporter
	node     *yaml.Node
	path     string
	values   map[string]*yaml.Node
}

// Mapping checks that node is a mapping without duplicate and unknown keys
// (decision D20). ok is false when it is no mapping at all; otherwise the known
// keys can be read.
func (r *Reporter) Mapping(node *yaml.Node, path string, known ...string) (m *Mapping, ok bool) {
	node = Resolve(node)
	if node == nil || node.Kind != yaml.MappingNode {
		r.Report(node, path, Diagnostic{
			Message: fmt.Sprintf("%s is not a mapping", name(path)),
			Allowed: "write " + strings.Join(known, ", ") + " as keys",
		})
		return nil, false
	}
	m = &Mapping{reporter: r, node: node, path: path, values: map[string]*yaml.Node{}}
	for i := 0; i+1 < len(node.Content); i += 2 {
		m.add(node.Content[i], node.Content[i+1], known)
	}
	return m, true
}

func (m *Mapping) add(key, value *yaml.Node, known []string) {
	path := m.Path(key.Value)
	if _, twice := m.values[key.Value]; twice {
		m.reporter.Errorf(key, path, "key %q stands twice; keep one", key.Value)
		return
	}
	m.values[key.Value] = Resolve(value)
	for _, k := range known {
		if k == key.Value {
			return
		}
	}
	m.reporter.Report(key, path, Diagnostic{
		Message:    fmt.Sprintf("unknown key %q", key.Value),
		Allowed:    "allowed are " + strings.Join(known, ", "),
		DidYouMean: Nearest(key.Value, known),
	})
}

// Resolve follows an alias to what it stands for.
func Resolve(node *yaml.Node) *yaml.Node {
	for node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

func name(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}

// Node is the mapping itself.
func (m *Mapping) Node() *yaml.Node { return m.node }

// Path is the path of one of the mapping's keys.
func (m *Mapping) Path(key string) string {
	if m.path == "" {
		return key
	}
	return m.path + "." + key
}

// Value is the node under key, nil when absent.
func (m *Mapping) Value(key string) *yaml.Node { return m.values[key] }

// Has says whether the key stands in the mapping.
func (m *Mapping) Has(key string) bool { return m.values[key] != nil }

// Report adds a diagnostic at the value of key, or at the mapping when the key is absent.
func (m *Mapping) Report(key string, d Diagnostic) {
	node := m.values[key]
	if node == nil {
		node = m.node
	}
	m.reporter.Report(node, m.Path(key), d)
}

// Errorf is Report with a message only.
func (m *Mapping) Errorf(key, format string, args ...any) {
	m.Report(key, Diagnostic{Message: fmt.Sprintf(format, args...)})
}

// Reporter is where the mapping reports.
func (m *Mapping) Reporter() *Reporter { return m.reporter }

// Require reports a missing key.
func (m *Mapping) Require(key string) bool {
	if m.Has(key) {
		return true
	}
	m.reporter.Report(m.node, m.Path(key), Diagnostic{Message: fmt.Sprintf("%s needs the key %q", name(m.path), key)})
	return false
}

// Scalar reads the text of a scalar; ok is false when it is absent, null or no scalar.
func (m *Mapping) Scalar(key string) (text string, ok bool) {
	node := m.values[key]
	if node == nil {
		return "", false
	}
	if node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		m.Report(key, Diagnostic{Message: m.Path(key) + " is not a single value", Allowed: "write one text or number, or remove the key"})
		return "", false
	}
	return node.Value, true
}

// Text reads one line of at most most characters; "" when absent or wrong. White
// space around it is dropped, because folded YAML texts end with a line break.
func (m *Mapping) Text(key string, most int) string { return m.text(key, most, "") }

// Prose is Text over several lines.
func (m *Mapping) Prose(key string, most int) string { return m.text(key, most, "\n\t") }

func (m *Mapping) text(key string, most int, control string) string {
	text, ok := m.Scalar(key)
	if !ok {
		return ""
	}
	text = strings.TrimSpace(text)
	if n := utf8.RuneCountInString(text); n > most {
		m.Errorf(key, "%s has %d characters; at most %d are allowed", m.Path(key), n, most)
		return ""
	}
	for _, c := range text {
		if isControl(c) && !strings.ContainsRune(control, c) {
			m.Errorf(key, "%s holds the control character %U; remove it", m.Path(key), c)
			return ""
		}
	}
	return text
}

// isControl is true of control characters and of those that turn the direction
// of text, which could make a headline read as something else.
func isControl(c rune) bool {
	return unicode.IsControl(c) || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 || c == 0x2028 || c == 0x2029
}

// Identifier reads an identifier of decision D6; "" when absent or wrong.
func (m *Mapping) Identifier(key string) string {
	text, ok := m.Scalar(key)
	if !ok {
		return ""
	}
	return m.identifier(key, text)
}

func (m *Mapping) identifier(key, text string) string {
	id, err := engine.Identifier(text)
	if err != nil {
		m.Errorf(key, "%s: %s", m.Path(key), err)
	}
	return id
}

// Decimal reads a number of decision D2; ok is false when absent or wrong.
func (m *Mapping) Decimal(key string) (engine.Decimal, bool) {
	text, ok := m.Scalar(key)
	if !ok {
		return engine.Decimal{}, false
	}
	number, ok := engine.ReadDecimal(text)
	if !ok {
		m.Report(key, Diagnostic{
			Message: fmt.Sprintf("%s: %q is not a number", m.Path(key), text),
			Allowed: "write a decimal like 250 or 0.005, with at most 38 significant digits",
		})
	}
	return number, ok
}

// Duration reads a duration of decision D22, or the default when absent or wrong.
func (m *Mapping) Duration(key string, otherwise engine.Duration) engine.Duration {
	text, ok := m.Scalar(key)
	if !ok {
		return otherwise
	}
	d, err := engine.ParseDuration(text)
	if err != nil {
		m.Errorf(key, "%s: %s", m.Path(key), err)
		return otherwise
	}
	return d
}

// List reads a sequence; nil when absent. Something else is reported.
func (m *Mapping) List(key string) []*yaml.Node {
	node := m.values[key]
	if node == nil {
		return nil
	}
	if node.Kind != yaml.SequenceNode {
		m.Report(key, Diagnostic{Message: m.Path(key) + " is not a list", Allowed: "write entries that begin with -, or remove the key"})
		return nil
	}
	return node.Content
}
