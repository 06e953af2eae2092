package diagnostic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// MaxDepth is the deepest nesting of a document. Contracts need about ten levels.
const MaxDepth = 32

// expansionFactor bounds what anchors expand to, as a multiple of the largest
// document: 256 KiB become at most 1 MiB (decision D20).
const expansionFactor = 4

// Document reads the one YAML document of text, at most most bytes of UTF-8,
// and returns its root with every alias replaced by what it stands for. It
// reports what keeps the document from being read and then returns nil:
// syntax, size, depth, recursive anchors, anchors that expand beyond four times
// most, more than one document, and what the languages here have no use for
// (custom tags, merge keys, keys that are no text). It never panics.
//
// Nodes that an anchor shares are shared in the result too: do not modify them.
func (r *Reporter) Document(text []byte, most int) *yaml.Node {
	if len(text) > most {
		r.Errorf(nil, "", "has %d bytes; at most %d are allowed", len(text), most)
		return nil
	}
	if at := invalidUTF8(text); at >= 0 {
		r.Report(place(text, at), "", Diagnostic{Message: "is not UTF-8", Allowed: "save the file as UTF-8"})
		return nil
	}
	root := r.decode(text)
	if root == nil {
		return nil
	}
	e := expander{reporter: r, most: expansionFactor * most, known: map[*yaml.Node]extent{}, open: map[*yaml.Node]bool{}}
	e.visit(&root, 0)
	if e.failed {
		return nil
	}
	return root
}

// Syntax reports what keeps text from being one YAML mapping; it knows no other rule. bad is false for nothing.
func Syntax(file string, text []byte) (d Diagnostic, bad bool) {
	r := Reporter{File: file}
	root := r.decode(text)
	if root != nil && root.Kind != yaml.MappingNode {
		r.Report(root, "", Diagnostic{Message: "is not a YAML mapping", Allowed: "write key: value"})
	}
	if r.Count() == 0 {
		return Diagnostic{}, false
	}
	return r.Diagnostics()[0], true
}

// At is the key or the list's item at the end of steps, or the last of them that
// there is; nil where the first is not there. Items are counted from 0.
func At(node *yaml.Node, steps ...string) (at *yaml.Node) {
	if node.Kind == yaml.DocumentNode && len(node.Content) > 0 {
		node = node.Content[0]
	}
	for _, step := range steps {
		key, value := child(Resolve(node), step)
		if key == nil {
			return at
		}
		at, node = key, value
	}
	return at
}

// child is a member of a mapping or an item of a list, with the place that names it.
func child(node *yaml.Node, step string) (key, value *yaml.Node) {
	if node.Kind == yaml.SequenceNode {
		if i, err := strconv.Atoi(step); err == nil && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
		return nil, nil
	}
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == step {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

func invalidUTF8(text []byte) int {
	for at := 0; at < len(text); {
		c, size := utf8.DecodeRune(text[at:])
		if c == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// place makes a node that stands at a byte of the text.
func place(text []byte, at int) *yaml.Node {
	line := 1 + bytes.Count(text[:at], []byte("\n"))
	return &yaml.Node{Line: line, Column: at - bytes.LastIndexByte(text[:at], '\n')}
}

func (r *Reporter) decode(text []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	first, err := decodeOne(decoder)
	switch {
	case errors.Is(err, io.EOF):
		r.Errorf(nil, "", "is empty")
		return nil
	case err != nil:
		r.syntax(text, err)
		return nil
	}
	second, err := decodeOne(decoder)
	switch {
	case errors.Is(err, io.EOF):
		return first.Content[0]
	case err != nil:
		r.syntax(text, err)
	default:
		r.Report(second, "", Diagnostic{Message: "a second document begins here", Allowed: "write one document to a file"})
	}
	return nil
}

// decodeOne reads the next document. The library raises panics of its own on
// some input; what comes from a file must not end the process.
func decodeOne(decoder *yaml.Decoder) (node *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: cannot be read: %v", p)
		}
	}()
	node = &yaml.Node{}
	if err := decoder.Decode(node); err != nil {
		return nil, err
	}
	if len(node.Content) == 0 {
		return nil, io.EOF
	}
	return node, nil
}

var (
	syntaxError   = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// syntaxRemedies explains the scanner's most frequent complaints.
var syntaxRemedies = map[string]string{
	"found character that cannot start any token":       "indent with spaces, not tabs, and quote texts that begin with @, ` or %",
	"found a tab character that violates indentation":   "indent with spaces, not tabs",
	"mapping values are not allowed in this context":    `quote texts that hold ": ", and check the indentation`,
	"did not find expected key":                         "check indentation and quotes",
	"did not find expected '-' indicator":               "check the indentation of the list",
	"did not find expected ',' or ']'":                  "close the list with ]",
	"did not find expected ',' or '}'":                  "close the mapping with }",
	"could not find expected ':'":                       "write key: value",
	"found unexpected end of stream":                    "close the quote, list or mapping",
	"control characters are not allowed":                "remove them",
	"found unknown escape character":                    `write \\ for a backslash, or use single quotes`,
	"found undefined tag handle":                        "quote texts that begin with !",
	"did not find URI escaped octet":                    "quote texts that begin with !",
	"block sequence entries are not allowed in this co": "begin the list on a line of its own",
}

// syntax converts an error of the library; it knows lines, but no columns, and
// leaves the line out in the first one.
func (r *Reporter) syntax(text []byte, err error) {
	parts := syntaxError.FindStringSubmatch(err.Error())
	if parts == nil {
		r.Errorf(nil, "", "is not YAML: %s", err)
		return
	}
	node := &yaml.Node{Line: 1, Column: 1}
	if line, err := strconv.Atoi(parts[1]); err == nil {
		node.Line = line
	}
	problem := parts[2]
	if anchor := unknownAnchor.FindStringSubmatch(problem); anchor != nil {
		if at := bytes.Index(text, []byte("*"+anchor[1])); at >= 0 {
			node = place(text, at)
		}
		r.Report(node, "", Diagnostic{
			Message: fmt.Sprintf("is not YAML: no anchor &%s stands before *%s", anchor[1], anchor[1]),
			Allowed: "quote texts that begin with *",
		})
		return
	}
	r.Report(node, "", Diagnostic{Message: "is not YAML: " + problem, Allowed: syntaxRemedies[problem]})
}

// expander replaces aliases and measures what they expand to.
type expander struct {
	reporter *Reporter
	most     int
	known    map[*yaml.Node]extent
	open     map[*yaml.Node]bool
	failed   bool
}

// extent is the expanded size of a node in bytes, and how many levels it has.
type extent struct{ size, levels int }

// visit replaces *slot when it is an alias, and so on below it.
func (e *expander) visit(slot **yaml.Node, depth int) extent {
	if e.failed {
		return extent{}
	}
	place := *slot
	if place.Kind == yaml.AliasNode {
		*slot = Resolve(place)
	}
	node := *slot
	if e.open[node] {
		return e.fail(place, "the anchor &%s holds itself", node.Anchor)
	}
	found, ok := e.known[node]
	if !ok {
		e.open[node] = true
		found = e.measure(node, depth)
		delete(e.open, node)
		e.known[node] = found
	}
	if depth+found.levels > MaxDepth {
		return e.fail(place, "is nested deeper than %d levels", MaxDepth)
	}
	if found.size > e.most {
		return e.fail(place, "anchors expand to more than %d bytes", e.most)
	}
	return found
}

func (e *expander) measure(node *yaml.Node, depth int) extent {
	if depth >= MaxDepth {
		return extent{levels: 1}
	}
	total := extent{size: len(node.Value) + 1, levels: 1}
	e.checkNode(node)
	for i := range node.Content {
		child := e.visit(&node.Content[i], depth+1)
		total.size = min(total.size+child.size, e.most+1)
		total.levels = max(total.levels, child.levels+1)
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			e.checkKey(node.Content[i])
		}
	}
	return total
}

func (e *expander) fail(node *yaml.Node, format string, args ...any) extent {
	if !e.failed {
		e.failed = true
		e.reporter.Errorf(node, "", format, args...)
	}
	return extent{}
}

// checkNode refuses tags that would change what a value means.
func (e *expander) checkNode(node *yaml.Node) {
	switch node.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!map", "!!seq", "!!merge":
	default:
		e.fail(node, "the tag %s is not supported; remove it", node.Tag)
	}
}

func (e *expander) checkKey(key *yaml.Node) {
	switch {
	case key.Kind != yaml.ScalarNode:
		e.fail(key, "a key is a list or a mapping; write a text")
	case key.ShortTag() == "!!merge":
		e.fail(key, `merge keys (<<) are not supported; write the keys out`)
	}
}
