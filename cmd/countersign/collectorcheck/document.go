package collectorcheck

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

// separator stands between keys in paths, as in the collector's own messages.
const separator = "::"

// setting is a value in the document, or the place where it would stand.
type setting struct {
	// node is nil for a key that is not there.
	node *yaml.Node
	// place is the key, or the nearest one above that is there.
	place *yaml.Node
	path  string
}

// get goes down keys.
func (s setting) get(keys ...string) setting {
	for _, key := range keys {
		s = s.child(key)
	}
	return s
}

func (s setting) child(key string) setting {
	next := setting{place: s.place, path: key}
	if s.path != "" {
		next.path = s.path + separator + key
	}
	if s.node == nil || s.node.Kind != yaml.MappingNode {
		return next
	}
	for i := 0; i+1 < len(s.node.Content); i += 2 {
		if s.node.Content[i].Value == key {
			next.place, next.node = s.node.Content[i], s.node.Content[i+1]
		}
	}
	return next
}

// keys of a mapping, in its order.
func (s setting) keys() []string {
	var keys []string
	if s.node != nil && s.node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(s.node.Content); i += 2 {
			keys = append(keys, s.node.Content[i].Value)
		}
	}
	return keys
}

// items of a list.
func (s setting) items() []setting {
	var all []setting
	if s.node != nil && s.node.Kind == yaml.SequenceNode {
		for i, item := range s.node.Content {
			all = append(all, setting{node: item, place: item, path: s.path + "[" + strconv.Itoa(i) + "]"})
		}
	}
	return all
}

// there says that the key is there; its value may be empty.
func (s setting) there() bool { return s.node != nil }

// empty is a key without a value, or no key.
func (s setting) empty() bool {
	return s.node == nil || s.node.Kind == yaml.ScalarNode && s.node.ShortTag() == "!!null"
}

// reference with a default, as the whole value.
var withDefault = regexp.MustCompile(`^\$\{(?:env:)?[A-Za-z_][A-Za-z0-9_]*:-(.*)\}$`)

// text is a scalar as far as the document says; ok is false where it is not
// there, no scalar, or comes from elsewhere.
func (s setting) text() (text string, ok bool) {
	if s.empty() || s.node.Kind != yaml.ScalarNode {
		return "", false
	}
	text = s.node.Value
	if match := withDefault.FindStringSubmatch(text); match != nil {
		text = match[1]
	}
	return text, !strings.Contains(text, "${")
}

// is compares a scalar that the document says.
func (s setting) is(values ...string) bool {
	text, ok := s.text()
	return ok && slices.Contains(values, text)
}

// elsewhere says that the value, and all below it, comes from a reference.
func (s setting) elsewhere() bool {
	return s.node != nil && s.node.Kind == yaml.ScalarNode && strings.Contains(s.node.Value, "${")
}

// component is what stands under receivers, processors and so on.
type component struct {
	id string
	setting
}

// kind is the type without underscores, because types were renamed to have them.
func (c component) kind() string { return kindOf(c.id) }

func kindOf(id string) string {
	kind, _, _ := strings.Cut(id, "/")
	return strings.ReplaceAll(kind, "_", "")
}

// used is a component where a pipeline names it.
type used struct {
	component
	at setting
}

// pipeline is one under service.
type pipeline struct {
	name                             string
	receivers, processors, exporters []used
}

// document is a configuration.
type document struct {
	receivers, processors, exporters, connectors, extensions map[string]component

	pipelines []pipeline
	// serviceExtensions are those that are started.
	serviceExtensions setting
	service           setting
}

// refusePaths refuses keys like protocols::http. The collector takes them for
// keys below each other; who does not would find nothing wrong with what stands there.
func refusePaths(node *yaml.Node, r *diagnostic.Reporter) {
	for i, child := range node.Content {
		if node.Kind != yaml.MappingNode || i%2 == 1 {
			refusePaths(child, r)
			continue
		}
		if strings.Contains(child.Value, separator) {
			r.Report(child, "", diagnostic.Diagnostic{
				Message: fmt.Sprintf("the key %q stands for keys below each other, which is not checked", child.Value),
				Allowed: "write " + strings.Join(strings.Split(child.Value, separator), ", ") + " each on a line of its own, below the one before",
			})
		}
	}
}

func newDocument(root *yaml.Node, r *diagnostic.Reporter) *document {
	refusePaths(root, r)
	if r.Count() > 0 {
		return nil
	}
	top := setting{node: root, place: root}
	if root.Kind != yaml.MappingNode || !top.get("service").there() {
		r.Report(root, "", diagnostic.Diagnostic{
			Message: "is no collector configuration: it has no service", Allowed: "name a file with receivers, exporters and service",
		})
		return nil
	}
	d := &document{
		receivers: components(top, "receivers"), processors: components(top, "processors"), exporters: components(top, "exporters"),
		connectors: components(top, "connectors"), extensions: components(top, "extensions"),
		service: top.get("service"), serviceExtensions: top.get("service", "extensions"),
	}
	all := top.get("service", "pipelines")
	for _, name := range all.keys() {
		p := all.get(name)
		d.pipelines = append(d.pipelines, pipeline{
			name:       name,
			receivers:  names(p.get("receivers"), d.receivers, d.connectors),
			processors: names(p.get("processors"), d.processors, nil),
			exporters:  names(p.get("exporters"), d.exporters, d.connectors),
		})
	}
	return d
}

func components(top setting, section string) map[string]component {
	all := map[string]component{}
	for _, id := range top.get(section).keys() {
		all[id] = component{id, top.get(section, id)}
	}
	return all
}

// names are the components of a list; what is not declared has only its name.
func names(list setting, declared, connectors map[string]component) []used {
	var all []used
	for _, item := range list.items() {
		id, ok := item.text()
		if !ok {
			continue
		}
		c, known := declared[id]
		if !known {
			c, known = connectors[id]
		}
		if !known {
			c = component{id, setting{place: item.place, path: item.path}}
		}
		all = append(all, used{c, item})
	}
	return all
}

// sorted are components by their place in the file.
func sorted(all map[string]component) []component {
	var list []component
	for _, c := range all {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b component) int {
		return cmp.Or(cmp.Compare(a.place.Line, b.place.Line), cmp.Compare(a.id, b.id))
	})
	return list
}

// origin is a receiver from which telemetry comes to a pipeline, with the
// processors that it passes on the way.
type origin struct {
	receiver used
	passed   []used
	// through are the connectors on the way.
	through []string
}

// origins of what arrives in a pipeline, through connectors too.
func (d *document) origins(p *pipeline) []origin {
	return d.upstream(p, origin{}, map[string]bool{})
}

func (d *document) upstream(p *pipeline, way origin, seen map[string]bool) []origin {
	if seen[p.name] {
		return nil
	}
	seen[p.name] = true
	defer delete(seen, p.name)
	way.passed = slices.Concat(p.processors, way.passed)
	var all []origin
	for _, r := range p.receivers {
		if _, connects := d.connectors[r.id]; !connects {
			all = append(all, origin{r, way.passed, way.through})
			continue
		}
		next := origin{passed: way.passed, through: slices.Concat([]string{r.id}, way.through)}
		for i := range d.pipelines {
			if slices.ContainsFunc(d.pipelines[i].exporters, func(e used) bool { return e.id == r.id }) {
				all = append(all, d.upstream(&d.pipelines[i], next, seen)...)
			}
		}
	}
	return all
}

// passes says that telemetry went through a processor for which holds is true.
func (o origin) passes(holds func(used) bool) bool { return slices.ContainsFunc(o.passed, holds) }

func ofKind(kinds ...string) func(used) bool {
	return func(u used) bool { return slices.Contains(kinds, u.kind()) }
}

// ledgers are the exporters of a pipeline that write into a ledger.
func (p *pipeline) ledgers() []used {
	var all []used
	for _, e := range p.exporters {
		if e.kind() == "ledger" {
			all = append(all, e)
		}
	}
	return all
}

func isEvidence(e used) bool { return e.get("role").is("evidence") }

// isRecorder is also true of a ledger exporter that says nothing, which is one.
func isRecorder(e used) bool {
	role := e.get("role")
	return role.empty() || role.is("recorder")
}
