package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine/diagnostic"
	"github.com/countersign-otel/countersign/engine/primitive"
	"gopkg.in/yaml.v3"
)

// operators are the inner nodes of a condition tree.
var operators = []string{string(Any), string(All), string(Not)}

// unverifiableIf reads one condition, or a list of which any makes the verdict
// UNKNOWN (AC "The action: block").
func (p *parser) unverifiableIf(a *diagnostic.Mapping) {
	node, path := a.Value("unverifiable_if"), a.Path("unverifiable_if")
	if node.Kind != yaml.SequenceNode {
		p.contract.UnverifiableIf, _ = p.tree(node, path, 1)
		return
	}
	if len(node.Content) == 0 {
		return
	}
	p.contract.UnverifiableIf, _ = p.branches(node, path, Any, 1)
}

// exclusions reads a list of condition trees (decision D19).
func (p *parser) exclusions(m *diagnostic.Mapping) {
	for i, node := range p.list(m, "exclusions") {
		if tree, ok := p.tree(node, fmt.Sprintf("exclusions[%d]", i), 1); ok {
			p.contract.Exclusions = append(p.contract.Exclusions, tree)
		}
	}
}

func (p *parser) tree(node *yaml.Node, path string, depth int) (*Tree, bool) {
	if depth > MaxTreeDepth {
		p.reporter.Errorf(node, path, "%s is nested deeper than %d conditions", path, MaxTreeDepth)
		return nil, false
	}
	operator, operand := operatorOf(node)
	switch operator {
	case Any, All:
		return p.branches(operand, path+"."+string(operator), operator, depth)
	case Not:
		child, ok := p.tree(operand, path+"."+string(Not), depth+1)
		return &Tree{Operator: Not, Children: []*Tree{child}}, ok
	}
	entry, ok := p.entry(node, primitive.Condition, path, operators)
	if !ok {
		return nil, false
	}
	return &Tree{Operator: Leaf, Call: p.call(node, path, entry.Call)}, true
}

// operatorOf returns Leaf for everything that is not {any: ...}, {all: ...} or {not: ...}.
func operatorOf(node *yaml.Node) (Operator, *yaml.Node) {
	if node.Kind != yaml.MappingNode || len(node.Content) != 2 || !slices.Contains(operators, node.Content[0].Value) {
		return Leaf, nil
	}
	return Operator(node.Content[0].Value), node.Content[1]
}

// branches reads the list under any and all.
func (p *parser) branches(list *yaml.Node, path string, operator Operator, depth int) (*Tree, bool) {
	if list.Kind != yaml.SequenceNode || len(list.Content) == 0 || len(list.Content) > MaxEntries {
		p.reporter.Report(list, path, diagnostic.Diagnostic{
			Message: path + " is not a list of conditions",
			Allowed: fmt.Sprintf("write a list of 1 to %d conditions", MaxEntries),
		})
		return nil, false
	}
	tree, all := &Tree{Operator: operator}, true
	for i, node := range list.Content {
		child, ok := p.tree(node, fmt.Sprintf("%s[%d]", path, i), depth+1)
		tree.Children = append(tree.Children, child)
		all = all && ok
	}
	return tree, all
}

func joined(words []string) string { return strings.Join(words, ", ") }
