package agentactionprocessor

import (
	"strconv"
	"strings"
)

// path names a value inside arguments or a result: names and list positions
// between dots, like order.items.0.sku. A member whose name is the whole path
// comes first, because names may hold dots.
type path struct {
	whole string
	steps []string
}

func newPath(text string) path { return path{whole: text, steps: strings.Split(text, ".")} }

// lookup returns nil for what is not there. The value is a JSON value with numbers as json.Number.
func (p *path) lookup(value any) any {
	if p.whole == "" {
		return value
	}
	if object, ok := value.(map[string]any); ok {
		if found, ok := object[p.whole]; ok {
			return found
		}
	}
	if len(p.steps) == 1 {
		return nil
	}
	for _, step := range p.steps {
		if value = member(value, step); value == nil {
			return nil
		}
	}
	return value
}

func member(value any, step string) any {
	switch v := value.(type) {
	case map[string]any:
		return v[step]
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}
