package primitive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

// missingFactSource is true when any of the named sources is absent (decision D11).
type missingFactSource struct{ sources []string }

var missingFactSourceDefinition = Definition{
	Name:      "missing_fact_source",
	Spellings: map[Section][]string{Condition: {"missing_fact_source"}},
	Doc:       "True when one of the named sources has never reported, or could not be read for this verification.",
	Bare:      KindIdentifiers,
	Labels:    map[string]string{"missing_fact_source": "A required fact source has never reported"},
	Parse:     parseMissingFactSource,
}

// parseMissingFactSource reads a list of sources, or one bare source.
func parseMissingFactSource(p Parsing, argument *yaml.Node, path string) (Entry, bool) {
	before := p.Reporter.Count()
	nodes := []*yaml.Node{diagnostic.Resolve(argument)}
	if nodes[0] != nil && nodes[0].Kind == yaml.SequenceNode {
		nodes = nodes[0].Content
	}
	var call missingFactSource
	for _, node := range nodes {
		if source, ok := sourceName(p.Reporter, diagnostic.Resolve(node), path); ok {
			call.sources = append(call.sources, source)
		}
	}
	if len(call.sources) == 0 && p.Reporter.Count() == before {
		p.Reporter.Errorf(argument, path, "%s names no source; write a list like [stripe, shopify]", path)
	}
	slices.Sort(call.sources)
	call.sources = slices.Compact(call.sources)
	return Entry{Call: call}, p.Reporter.Count() == before
}

func sourceName(r *diagnostic.Reporter, node *yaml.Node, path string) (string, bool) {
	if node == nil || node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		r.Errorf(node, path, "%s is not a list of sources; write a list like [stripe, shopify]", path)
		return "", false
	}
	source, err := engine.Identifier(node.Value)
	if err != nil {
		r.Errorf(node, path, "%s: %s", path, err)
		return "", false
	}
	return source, true
}

// Key implements Call.
func (e missingFactSource) Key(map[string]engine.Source) string {
	k := callKey{}
	k.text("primitive", "missing_fact_source")
	k.text("sources", strings.Join(e.sources, ","))
	return k.String()
}

// Code implements Call.
func (e missingFactSource) Code(fired bool) string { return notUnless(fired, "missing_fact_source") }

// Describe implements Call.
func (e missingFactSource) Describe() string {
	return "no record from " + strings.Join(e.sources, " or ")
}

// Explain implements Call.
func (e missingFactSource) Explain() string {
	return strings.Join(e.sources, " or ") + " has never reported, or cannot be read."
}

// Sources implements Call.
func (e missingFactSource) Sources() []string { return e.sources }

// Evaluate implements Call.
func (e missingFactSource) Evaluate(c *engine.Case) engine.Finding {
	for _, source := range e.sources {
		if !c.Snapshot.Sources[source].Present {
			return engine.Finding{Fired: true}
		}
	}
	return engine.Finding{}
}

// SQL implements Call.
func (e missingFactSource) SQL(*Builder) Columns {
	literals := make([]string, len(e.sources))
	for i, source := range e.sources {
		literals[i] = Literal(source)
	}
	return Columns{Fired: fmt.Sprintf("(SELECT count(*) FROM src WHERE src.present = 1 AND src.source IN (%s)) < %d",
		strings.Join(literals, ", "), len(e.sources))}
}
