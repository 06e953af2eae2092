package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"gopkg.in/yaml.v3"
)

// contentHash is the hex SHA-256 of the document as canonical JSON: mappings
// with sorted keys, every value as its text, null as null. The order of keys,
// comments, indentation, quotes and anchors are no content. The spelling of a
// value is: 60m is other content than 1h, and 250.0 than 250, because people
// read and sign the text (decision D21).
func contentHash(root *yaml.Node) string {
	var b strings.Builder
	writeContent(&b, root)
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}

func writeContent(b *strings.Builder, node *yaml.Node) {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	// Maps of texts, lists and maps always encode, with their keys sorted.
	_ = encoder.Encode(content(node))
}

func content(node *yaml.Node) any {
	switch node.Kind {
	case yaml.MappingNode:
		members := map[string]any{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			members[node.Content[i].Value] = content(node.Content[i+1])
		}
		return members
	case yaml.SequenceNode:
		items := make([]any, len(node.Content))
		for i, item := range node.Content {
			items[i] = content(item)
		}
		return items
	}
	if node.ShortTag() == "!!null" {
		return nil
	}
	return node.Value
}
