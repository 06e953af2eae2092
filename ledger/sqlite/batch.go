package sqlite

import (
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/countersign-otel/countersign/engine"
)

// batch writes rows as one JSON array of arrays, the parameter that jsonb_each
// turns into rows again. Texts must be valid UTF-8.
type batch struct {
	json []byte
	rows int
}

// row begins the next row.
func (b *batch) row() *batch {
	switch {
	case b.rows > 0:
		b.json = append(b.json, ']', ',', '[')
	default:
		b.json = append(b.json, '[', '[')
	}
	b.rows++
	return b
}

// parameter ends the batch.
func (b *batch) parameter() string {
	if b.rows == 0 {
		return "[]"
	}
	return string(append(b.json, ']', ']'))
}

func (b *batch) comma() {
	if last := b.json[len(b.json)-1]; last != '[' {
		b.json = append(b.json, ',')
	}
}

func (b *batch) text(text string) *batch {
	b.comma()
	b.json = appendText(b.json, text)
	return b
}

// sent is a text, or NULL when it is empty: not sent.
func (b *batch) sent(text string) *batch {
	if text == "" {
		return b.null()
	}
	return b.text(text)
}

func (b *batch) null() *batch {
	b.comma()
	b.json = append(b.json, "null"...)
	return b
}

func (b *batch) integer(n int64) *batch {
	b.comma()
	b.json = strconv.AppendInt(b.json, n, 10)
	return b
}

// positive is an integer, or NULL for 0: unknown.
func (b *batch) positive(n int64) *batch {
	if n == 0 {
		return b.null()
	}
	return b.integer(n)
}

func (b *batch) instant(at *engine.Instant) *batch {
	if at == nil {
		return b.null()
	}
	return b.integer(int64(*at))
}

func (b *batch) truth(t bool) *batch {
	if t {
		return b.integer(1)
	}
	return b.integer(0)
}

// bytes are read again with unhex.
func (b *batch) bytes(data []byte) *batch {
	b.comma()
	b.json = append(b.json, '"')
	b.json = hex.AppendEncode(b.json, data)
	b.json = append(b.json, '"')
	return b
}

func (b *batch) hash(sum [32]byte) *batch { return b.bytes(sum[:]) }

// object is a captured object's text, or NULL.
func (b *batch) object(o engine.Object) *batch {
	if !o.Captured() {
		return b.null()
	}
	return b.text(o.Text())
}

func appendText(to []byte, text string) []byte {
	const digits = "0123456789abcdef"
	to = append(to, '"')
	start := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		to = append(to, text[start:i]...)
		start = i + 1
		if c >= 0x20 {
			to = append(to, '\\', c)
			continue
		}
		to = append(to, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xf])
	}
	to = append(to, text[start:]...)
	return append(to, '"')
}

// list is a JSON array of texts.
func list(texts []string) string {
	to := []byte{'['}
	for i, text := range texts {
		if i > 0 {
			to = append(to, ',')
		}
		to = appendText(to, text)
	}
	return string(append(to, ']'))
}

// readList reads what list wrote.
func readList(text string) ([]string, error) {
	var texts []string
	if err := json.Unmarshal([]byte(text), &texts); err != nil {
		return nil, err
	}
	if len(texts) == 0 {
		return nil, nil
	}
	return texts, nil
}
