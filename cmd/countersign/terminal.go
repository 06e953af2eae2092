package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// terminal is where a command reads and prints.
type terminal struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	format         format
	style          style // of stdout
	errStyle       style // of stderr
	showsProgress  bool  // stderr is a terminal
}

func newTerminal(stdin io.Reader, stdout, stderr io.Writer) *terminal {
	return &terminal{
		stdin: stdin, stdout: stdout, stderr: stderr,
		format:        textFormat,
		style:         style{on: colours(stdout)},
		errStyle:      style{on: colours(stderr)},
		showsProgress: isTerminal(stderr),
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// colours are for terminals alone, and not where NO_COLOR is set (no-color.org).
func colours(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

// format is the value of --output.
type format string

const (
	textFormat format = "text"
	jsonFormat format = "json"
)

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "text|json" }
func (f *format) Set(text string) error {
	if !slices.Contains([]format{textFormat, jsonFormat}, format(text)) {
		return fmt.Errorf("write text or json")
	}
	*f = format(text)
	return nil
}

func (t *terminal) json() bool { return t.format == jsonFormat }

// printJSON prints one indented document.
func (t *terminal) printJSON(value any) error {
	encoder := json.NewEncoder(t.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func (t *terminal) printf(format string, args ...any) {
	fmt.Fprintf(t.stdout, format, args...)
}

// style colours text where that is wanted.
type style struct{ on bool }

func (s style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) red(text string) string    { return s.paint("31", text) }
func (s style) green(text string) string  { return s.paint("32", text) }
func (s style) yellow(text string) string { return s.paint("33", text) }
func (s style) bold(text string) string   { return s.paint("1", text) }
func (s style) dim(text string) string    { return s.paint("2", text) }

// verdict colours a word by what it says.
func (s style) verdict(word string) string {
	switch strings.TrimSpace(word) {
	case "PASS", "ok":
		return s.green(word)
	case "FAIL", "NO":
		return s.red(word)
	case "UNKNOWN", "PENDING":
		return s.yellow(word)
	}
	return word
}

// table prints columns of equal width. Widths are counted in characters, and
// colours are added after padding.
type table struct {
	head []string
	rows [][]string
	// notes are lines below a row, by its index.
	notes map[int][]string
}

func (b *table) add(cells ...string) { b.rows = append(b.rows, cells) }

func (t *terminal) print(b table) {
	widths := make([]int, len(b.head))
	for _, row := range append([][]string{b.head}, b.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	t.row(b.head, widths, t.style.bold)
	for i, row := range b.rows {
		t.row(row, widths, t.style.verdict)
		for _, note := range b.notes[i] {
			t.printf("%s\n", t.style.dim(note))
		}
	}
}

func (t *terminal) row(cells []string, widths []int, paint func(string) string) {
	for i, cell := range cells {
		if i == len(cells)-1 {
			t.printf("%s\n", paint(cell))
			return
		}
		t.printf("%s  ", paint(cell)+strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
	}
}

// printable makes text from outside safe for a terminal: control characters,
// which could move the cursor or hide what follows, are escaped.
func printable(text string) string {
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		if unprintable(c) {
			fmt.Fprintf(&b, `\u%04x`, c)
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}

func unprintable(c rune) bool {
	return c < ' ' || c >= 0x7f && c < 0xa0 || c >= 0x200e && c <= 0x200f || c >= 0x2028 && c <= 0x202e || c >= 0x2066 && c <= 0x2069
}
