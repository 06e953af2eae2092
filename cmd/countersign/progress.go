package main

import (
	"fmt"
	"strings"
)

const barWidth = 30

// progress draws one line on a terminal for long work, and nothing elsewhere.
type progress struct {
	terminal *terminal
	what     string
	total    int64
	shown    int // per mille that is on screen
}

func (t *terminal) progress(what string, total int64) *progress {
	return &progress{terminal: t, what: what, total: total, shown: -1}
}

// at says how far the work is. It draws only when the bar changes.
func (p *progress) at(done int64) {
	if !p.terminal.showsProgress || p.total <= 0 {
		return
	}
	share := int(min(done, p.total) * 1000 / p.total)
	if share == p.shown {
		return
	}
	p.shown = share
	filled := share * barWidth / 1000
	fmt.Fprintf(p.terminal.stderr, "\r%s [%s%s] %d/%d", p.what, strings.Repeat("=", filled), strings.Repeat(" ", barWidth-filled), done, p.total)
}

// done clears the line.
func (p *progress) done() {
	if p.shown >= 0 {
		fmt.Fprint(p.terminal.stderr, "\r\x1b[K")
	}
}
