package postgres

import "strings"

// textArray writes a text[] as PostgreSQL writes it itself, for arrays of
// thousands: of a []string the driver encodes every element by itself, which
// costs several times the memory. The zero value is ready to use.
type textArray struct{ text []byte }

// grow makes room for n more elements of size bytes together, where none needs escaping.
func (a *textArray) grow(n, size int) {
	const perElement = len(`"",`)
	a.text = append(make([]byte, 0, len(a.text)+size+n*perElement+len("{}")), a.text...)
}

func (a *textArray) next() {
	if len(a.text) == 0 {
		a.text = append(a.text, '{')
		return
	}
	a.text = append(a.text, ',')
}

// add appends an element, which is the parts one after the other.
func (a *textArray) add(parts ...string) {
	a.next()
	a.text = append(a.text, '"')
	for _, part := range parts {
		for {
			i := strings.IndexAny(part, `"\`)
			if i < 0 {
				break
			}
			a.text = append(append(a.text, part[:i]...), '\\', part[i])
			part = part[i+1:]
		}
		a.text = append(a.text, part...)
	}
	a.text = append(a.text, '"')
}

func (a *textArray) addNull() {
	a.next()
	a.text = append(a.text, "NULL"...)
}

// String ends the array.
func (a *textArray) String() string {
	if len(a.text) == 0 {
		return "{}"
	}
	return string(append(a.text, '}'))
}
