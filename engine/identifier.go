package engine

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Errors about names and opaque ids.
var (
	ErrIdentifier = errors.New("invalid identifier")
	ErrOpaque     = errors.New("invalid id")
)

// MaxIdentifier is the longest identifier, in bytes.
const MaxIdentifier = 64

// MaxOpaque is the longest subject id, action id or raw ref, in bytes (decision D6).
const MaxOpaque = 512

// Identifier lowercases text by ASCII rules and checks it against
// [a-z][a-z0-9_.:-]{0,63} (AC "Primitives", decision D6).
func Identifier(text string) (string, error) {
	folded := Fold(text)
	if !isIdentifier(folded) {
		return "", fmt.Errorf("%w %q: write a letter, then letters, digits or _ . : -, at most %d in all", ErrIdentifier, clip(text), MaxIdentifier)
	}
	return folded, nil
}

func isIdentifier(text string) bool {
	if text == "" || len(text) > MaxIdentifier || text[0] < 'a' || text[0] > 'z' {
		return false
	}
	for i := 1; i < len(text); i++ {
		if !identifierByte(text[i]) {
			return false
		}
	}
	return true
}

func identifierByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		return true
	case c == '_', c == '.', c == ':', c == '-':
		return true
	}
	return false
}

// CheckOpaque checks an opaque id named field: 1 to 512 bytes of valid UTF-8
// without control characters, kept and compared byte by byte (decision D6).
func CheckOpaque(field, text string) error {
	switch {
	case text == "":
		return fmt.Errorf("%w: %s is empty; 1 to %d bytes are needed", ErrOpaque, field, MaxOpaque)
	case len(text) > MaxOpaque:
		return fmt.Errorf("%w: %s has %d bytes; at most %d are allowed", ErrOpaque, field, len(text), MaxOpaque)
	case isPlain(text):
		return nil
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: %s is not valid UTF-8", ErrOpaque, field)
	}
	for _, r := range text {
		if r < 0x20 || (r >= 0x7f && r <= 0x9f) {
			return fmt.Errorf("%w: %s has the control character %U", ErrOpaque, field, r)
		}
	}
	return nil
}

// isPlain knows printable ASCII, which nearly all ids are, in one look.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < 0x20 || c >= 0x7f {
			return false
		}
	}
	return true
}

// Fold lowercases the ASCII letters of text and nothing else (decision D4).
func Fold(text string) string {
	for i := 0; i < len(text); i++ {
		if text[i] >= 'A' && text[i] <= 'Z' {
			return foldFrom(text, i)
		}
	}
	return text
}

func foldFrom(text string, i int) string {
	folded := []byte(text)
	for ; i < len(folded); i++ {
		if folded[i] >= 'A' && folded[i] <= 'Z' {
			folded[i] += 'a' - 'A'
		}
	}
	return string(folded)
}
