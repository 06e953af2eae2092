package dialect

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Damage says what is not in Captured.Value although it was sent. Who sends
// arguments is audited by them: a part that does not read costs itself alone
// (D35: item by item), never the rest, and never unsaid.
type Damage struct {
	// Lost are the members that are left out, and list elements that are null
	// instead; at most maxLost.
	Lost []Loss
	// More means that others were lost, whose places are not known.
	More bool
	// Notes say what was replaced or not read; they show nothing of the text.
	Notes []string
	// Unreadable says why the text as a whole is no object; empty when it is
	// one. It shows nothing of the text.
	Unreadable string
}

// Loss is a value that does not read.
type Loss struct {
	// Path is the way to it: names, and positions in lists.
	Path []string
	// Why shows nothing of the text.
	Why string
}

const (
	maxLost  = 64
	maxNotes = 8
)

// lostValue stands for a value that was read over.
type lostValue struct{}

// names are those that an object has lost.
type names map[string]bool

func (n names) with(name string) names {
	if n == nil {
		n = names{}
	}
	n[name] = true
	return n
}

func (d *Damage) lose(path []string, why string) {
	if len(d.Lost) == maxLost {
		d.More = true
		return
	}
	d.Lost = append(d.Lost, Loss{slices.Clone(path), why})
}

func (d *Damage) note(text string) {
	if len(d.Notes) < maxNotes {
		d.Notes = append(d.Notes, text)
	}
}

// inside forgets places, because the object was taken out of an envelope.
func (d *Damage) inside() {
	for _, loss := range d.Lost {
		d.note("a value was lost: " + loss.Why)
	}
	d.More = d.More || len(d.Lost) > 0
	d.Lost = nil
}

// loseTwin: of values under one name none is taken, because which one the
// tool was called with depends on its reader.
func (p *parser) loseTwin(lost names, name string, at int) names {
	if !lost[name] {
		p.damage.lose(append(p.path, name), "its name stands twice, at byte "+strconv.Itoa(at))
	}
	return lost.with(name)
}

// element reads one of a list. Where it is lost, null keeps the place of those behind it.
func (p *parser) element(i int) (any, error) {
	if p.damage == nil {
		return p.value()
	}
	value, err := p.within(strconv.Itoa(i))
	if value == (lostValue{}) {
		value = nil
	}
	return value, err
}

// within reads a value one step down the path.
func (p *parser) within(step string) (any, error) {
	if p.damage == nil {
		return p.value()
	}
	p.path = append(p.path, step)
	value, err := p.value()
	p.path = p.path[:len(p.path)-1]
	return value, err
}

// skip reads over a container that is nested too deep, whose opening bracket is next.
func (p *parser) skip() (any, error) {
	start := p.at
	for open := 0; p.at < len(p.text); {
		switch c := p.text[p.at]; {
		case c == '"', c == '\'' && p.in == pythonGrammar:
			if _, err := p.str(); err != nil {
				return nil, err
			}
			continue
		case strings.IndexByte("{[(", c) >= 0:
			open++
		case strings.IndexByte(")]}", c) >= 0:
			open--
		}
		p.at++
		if open == 0 {
			p.damage.lose(p.path, fmt.Sprintf("nested deeper than %d, at byte %d", MaxDepth, start))
			return lostValue{}, nil
		}
	}
	return nil, p.unexpected("a closing bracket")
}

func (p *parser) replaceZero(at int) {
	p.damage.note("U+0000 was replaced, at byte " + strconv.Itoa(at))
}

// parseDamaged reads a text that parse refuses, as JSON or else as a Python
// literal: a name that stands twice and what is nested too deep are lost
// alone, U+0000 and broken UTF-8 become U+FFFD, control characters in strings
// stay. Behind an object other text may follow; it is not read.
func parseDamaged(text string) (v any, damage *Damage, err error) {
	v, damage, err = parseDamagedIn(text, jsonGrammar)
	if err == nil {
		return v, damage, nil
	}
	v, damage, pythonErr := parseDamagedIn(text, pythonGrammar)
	if pythonErr == nil {
		return v, damage, nil
	}
	return nil, nil, further(err, pythonErr)
}

// further is the error of the grammar that read more of the text.
func further(a, b error) error {
	var first, second *syntaxError
	if errors.As(a, &first) && errors.As(b, &second) && second.at > first.at {
		return b
	}
	return a
}

func parseDamagedIn(text string, in grammar) (v any, damage *Damage, err error) {
	damage = &Damage{}
	valid := strings.ToValidUTF8(text, "\uFFFD")
	if valid != text {
		damage.note("broken UTF-8 was replaced")
	}
	p := parser{text: valid, in: in, damage: damage}
	v, err = p.value()
	if err != nil {
		return nil, nil, err
	}
	p.space()
	if p.at < len(p.text) {
		if _, ok := v.(map[string]any); !ok {
			return nil, nil, p.unexpected("end of text")
		}
		damage.note("text behind the arguments was not read, at byte " + strconv.Itoa(p.at))
	}
	return v, damage, nil
}

// unreadable is the damage of a text that is no object.
func unreadable(damage *Damage, err error) *Damage {
	if damage == nil {
		damage = &Damage{}
	}
	damage.Unreadable = "they are no JSON object"
	var syntax *syntaxError
	if errors.As(err, &syntax) {
		damage.Unreadable = fmt.Sprintf("%s at byte %d", syntax.reason, syntax.at)
	}
	return damage
}

// merged is what two readings lost, one inside the other.
func merged(outer, inner *Damage) *Damage {
	if outer == nil {
		return inner
	}
	for _, note := range inner.Notes {
		outer.note(note)
	}
	if outer.Unreadable == "" {
		outer.Unreadable = inner.Unreadable
	}
	outer.Lost, outer.More = append(outer.Lost, inner.Lost...), outer.More || inner.More
	return outer
}
