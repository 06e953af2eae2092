package web

import (
	"slices"

	"github.com/countersign-otel/countersign/engine"
)

// extent is a time from the first to the last of some moments.
type extent struct{ from, to engine.Instant }

func newExtent(at engine.Instant) extent { return extent{at, at} }

func (e *extent) include(at engine.Instant) {
	e.from, e.to = min(e.from, at), max(e.to, at)
}

func (e extent) length() engine.Instant { return e.to - e.from }

// padded leaves room on both sides, and is at least half a minute long.
func (e extent) padded() extent {
	room := max(e.length()/14, 1)
	if short := 30 - e.length() - 2*room; short > 0 {
		room += short / 2
	}
	return extent{max(e.from-room, 0), e.to + room}
}

// axis puts moments on a line: those within to scale, those before and after in
// gutters, in order.
type axis struct {
	extent
	left, right   float64
	gutter        float64
	start, end    float64 // of what is to scale
	before, after []engine.Instant
}

// newAxis makes gutters where moments lie beyond the extent.
func newAxis(e extent, moments []engine.Instant, left, right, gutter float64) axis {
	a := axis{extent: e, left: left, right: right, gutter: gutter, start: left, end: right}
	sorted := slices.Clone(moments)
	slices.Sort(sorted)
	for _, at := range slices.Compact(sorted) {
		switch {
		case at < e.from:
			a.before = append(a.before, at)
		case at > e.to:
			a.after = append(a.after, at)
		}
	}
	if len(a.before) > 0 {
		a.start += a.gutter
	}
	if len(a.after) > 0 {
		a.end -= a.gutter
	}
	return a
}

func (a axis) x(at engine.Instant) float64 {
	switch {
	case at < a.from:
		return a.left + a.gutter*place(a.before, at)
	case at > a.to:
		return a.end + a.gutter*place(a.after, at)
	}
	return a.start + float64(at-a.from)/float64(a.to-a.from)*(a.end-a.start)
}

// place is where a moment stands in a gutter, as a share of its width.
func place(moments []engine.Instant, at engine.Instant) float64 {
	i, found := slices.BinarySearch(moments, at)
	rank := float64(i)
	if found {
		rank += 0.5
	}
	if len(moments) == 0 {
		return 0.5
	}
	return 0.12 + 0.76*rank/float64(len(moments))
}

// clamped is x, and the ends of the drawing for what is beyond every moment that is drawn.
func (a axis) clamped(at engine.Instant) float64 {
	switch {
	case at < a.from && len(a.before) == 0:
		return a.left
	case at > a.to && len(a.after) == 0:
		return a.right
	case at < a.from && at < a.before[0]:
		return a.left
	case at > a.to && at > a.after[len(a.after)-1]:
		return a.right
	}
	return a.x(at)
}

// shows says whether a moment has a place of its own.
func (a axis) shows(at engine.Instant) bool {
	if at >= a.from && at <= a.to {
		return true
	}
	_, before := slices.BinarySearch(a.before, at)
	_, after := slices.BinarySearch(a.after, at)
	return before || after
}

var tickSteps = []engine.Duration{
	1, 2, 5, 10, 15, 30, engine.Minute, 2 * engine.Minute, 5 * engine.Minute, 10 * engine.Minute, 15 * engine.Minute, 30 * engine.Minute,
	engine.Hour, 2 * engine.Hour, 3 * engine.Hour, 6 * engine.Hour, 12 * engine.Hour, engine.Day, 2 * engine.Day, engine.Week, 2 * engine.Week, 4 * engine.Week, 26 * engine.Week, 104 * engine.Week,
}

// ticks are round moments, at most some more than most of them.
func (a axis) ticks(most int64) []tick {
	step := tickSteps[len(tickSteps)-1]
	for _, s := range tickSteps {
		if int64(a.length())/int64(s) <= most {
			step = s
			break
		}
	}
	for int64(a.length())/int64(step) > most {
		step *= 2
	}
	format := "15:04"
	switch {
	case step < engine.Minute:
		format = "15:04:05"
	case step >= 26*engine.Week:
		format = "Jan 2006"
	case step >= engine.Day:
		format = "Jan 2"
	}
	var ticks []tick
	first := (a.from + engine.Instant(step) - 1) / engine.Instant(step) * engine.Instant(step)
	for at := first; at <= a.to; at += engine.Instant(step) {
		if x := a.x(at); x > a.start+14 && x < a.end-14 {
			ticks = append(ticks, tick{round(x), at.Time().Format(format)})
		}
	}
	return ticks
}

// breaks are the ends of what is to scale, and the gutters beyond, of a height.
func (a axis) breaks(height float64) (at []float64, gutters []gutter) {
	if len(a.before) > 0 {
		at = append(at, round(a.start))
		gutters = append(gutters, gutter{a.left, a.gutter, height, "earlier"})
	}
	if len(a.after) > 0 {
		at = append(at, round(a.end))
		gutters = append(gutters, gutter{round(a.end), a.gutter, height, "later"})
	}
	return at, gutters
}
