package contract

import (
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"github.com/countersign-otel/countersign/engine/primitive"
	"gopkg.in/yaml.v3"
)

// spelling finds capitals in names, which are lowercased when they are read.
func (l *linter) spelling() {
	r := diagnostic.Reporter{}
	root := r.Document(l.contract.Document, MaxDocument)
	if root == nil {
		return
	}
	s := speller{linter: l, kinds: map[string]primitive.ArgumentKind{}, seen: map[*yaml.Node]bool{}}
	for _, d := range primitive.Definitions() {
		for _, a := range slices.Concat(d.Arguments, primitive.StateArguments) {
			s.kinds[a.Name] = a.Kind
		}
	}
	for _, key := range []string{"action", "exclusions"} {
		for i := 0; i+1 < len(root.Content); i += 2 {
			if root.Content[i].Value == key {
				s.visit(root.Content[i+1])
			}
		}
	}
}

type speller struct {
	linter *linter
	kinds  map[string]primitive.ArgumentKind
	seen   map[*yaml.Node]bool // nodes that an anchor shares are visited once
}

func (s *speller) visit(node *yaml.Node) {
	if s.seen[node] {
		return
	}
	s.seen[node] = true
	if node.Kind != yaml.MappingNode {
		for _, child := range node.Content {
			s.visit(child)
		}
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch s.kinds[key.Value] {
		case primitive.KindIdentifier:
			s.name(value)
		case primitive.KindWhere, primitive.KindWhereAction:
			for j := 0; j < len(value.Content); j += 2 {
				s.name(value.Content[j])
			}
		default:
			s.visit(value)
		}
	}
}

func (s *speller) name(node *yaml.Node) {
	if folded := engine.Fold(node.Value); node.Kind == yaml.ScalarNode && folded != node.Value {
		s.linter.found = append(s.linter.found, diagnostic.Diagnostic{
			File: s.linter.file, Line: node.Line, Column: node.Column,
			Message: "the name " + node.Value + " is read as " + folded + ", here and in records and parameters",
		})
	}
}
