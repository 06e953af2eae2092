package web

import (
	"fmt"
	"math"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// layer is one colour of the chart, from the bottom up.
type layer struct {
	Name, Class string
	count       func(ledger.Tally) int
}

// layers part the total: what was compensated is drawn apart from what failed and stayed so.
var layers = []layer{
	{"PASS", "pass", func(t ledger.Tally) int { return t.Pass }},
	{"COMPENSATED", "compensated", func(t ledger.Tally) int { return min(t.Compensated, t.Fail) }},
	{"FAIL", "fail", func(t ledger.Tally) int { return t.Fail - min(t.Compensated, t.Fail) }},
	{"UNKNOWN", "unknown", func(t ledger.Tally) int { return t.Unknown }},
	{"PENDING", "pending", func(t ledger.Tally) int { return t.Pending }},
	{"UNVERIFIED", "unverified", func(t ledger.Tally) int { return t.Unverified }},
}

// segment is a rectangle.
type segment struct {
	X, Y, Width, Height float64
	Class               string
}

// chart is stacked counts over time, in the units of its viewBox.
type chart struct {
	// Shape is broad or slim, for wide screens and for narrow ones.
	Shape            string
	Width, Height    float64
	Left, Right, Top float64
	Bottom           float64
	Bars             []bar
	Grid             []tick
	Times            []tick
	Summary          string
}

type bar struct {
	X, Width, Top, Height float64
	Segments              []segment
	Title, Link           string
}

type tick struct {
	At   float64
	Text string
}

// charts have one unit a pixel on a screen of their width.
var (
	broadChart = chart{Shape: "broad", Width: 1120, Height: 240, Left: 52, Right: 1112, Top: 12, Bottom: 208}
	slimChart  = chart{Shape: "slim", Width: 340, Height: 180, Left: 40, Right: 336, Top: 10, Bottom: 150}
)

// drawCharts draws the same twice.
func drawCharts(span span, tallies []ledger.Tally, link func(since, until engine.Instant) string) []chart {
	slim := span
	slim.label *= 2 // half as many times fit
	return []chart{drawChart(broadChart, span, tallies, link), drawChart(slimChart, slim, tallies, link)}
}

// drawChart draws tallies by time. Intervals without actions stay empty.
func drawChart(c chart, span span, tallies []ledger.Tally, link func(since, until engine.Instant) string) chart {
	byTime := map[engine.Instant]ledger.Tally{}
	total := ledger.Tally{}
	for _, t := range tallies {
		sum := byTime[t.At]
		sum.Add(t)
		byTime[t.At] = sum
		total.Add(t)
	}
	most := 0
	for _, t := range byTime {
		most = max(most, t.Total)
	}
	top, step := roundScale(most)
	for value := 0; value <= top; value += step {
		c.Grid = append(c.Grid, tick{c.Bottom - float64(value)/float64(top)*(c.Bottom-c.Top), grouped(value)})
	}
	slots := int((span.until - span.since) / engine.Instant(span.step))
	slot := (c.Right - c.Left) / float64(slots)
	for i := range slots {
		at := span.since + engine.Instant(i)*engine.Instant(span.step)
		x := c.Left + float64(i)*slot
		if i%span.label == 0 {
			c.Times = append(c.Times, tick{x + slot/2, at.Time().Format(span.format)})
		}
		if t := byTime[at]; t.Total > 0 {
			c.Bars = append(c.Bars, c.bar(x, slot, top, at, span.step, t, link))
		}
	}
	c.Summary = fmt.Sprintf("%s between %s and %s UTC: %d PASS, %d FAIL of which %d were compensated, %d UNKNOWN, %d PENDING, %d not verified.",
		plural(total.Total, "action", "actions"), clock(span.since), clock(span.until), total.Pass, total.Fail, total.Compensated, total.Unknown, total.Pending, total.Unverified)
	return c
}

func (c *chart) bar(x, slot float64, top int, at engine.Instant, step engine.Duration, t ledger.Tally, link func(since, until engine.Instant) string) bar {
	gap := math.Min(6, slot*0.28)
	b := bar{X: x, Width: slot, Top: c.Top, Height: c.Bottom - c.Top, Link: link(at, at.Add(step))}
	b.Title = fmt.Sprintf("%s UTC: %s", at.Time().Format("2006-01-02 15:04"), plural(t.Total, "action", "actions"))
	y := c.Bottom
	for _, l := range layers {
		n := l.count(t)
		if n == 0 {
			continue
		}
		height := math.Max(1.5, float64(n)/float64(top)*(c.Bottom-c.Top))
		y -= height
		b.Segments = append(b.Segments, segment{round(x + gap/2), round(y), round(slot - gap), round(height), l.Class})
		b.Title += fmt.Sprintf(", %d %s", n, l.Name)
	}
	return b
}

// roundScale is the end of an axis and the distance of its lines.
func roundScale(most int) (top, step int) {
	if most <= 4 {
		return max(most, 1), 1
	}
	magnitude := math.Pow(10, math.Floor(math.Log10(float64(most)/4)))
	for _, factor := range []float64{1, 2, 2.5, 5, 10} {
		step = int(math.Ceil(factor * magnitude))
		if lines := (most + step - 1) / step; lines <= 5 {
			return lines * step, step
		}
	}
	return most, most
}

func round(x float64) float64 { return math.Round(x*100) / 100 }

// share is one bar of shares, 100 units wide.
func shares(t ledger.Tally) []segment {
	var parts []segment
	x := 0.0
	for _, l := range layers {
		n := l.count(t)
		if n == 0 || t.Total == 0 {
			continue
		}
		width := float64(n) / float64(t.Total) * 100
		parts = append(parts, segment{X: round(x), Width: round(math.Max(width, 0.8)), Height: 8, Class: l.Class})
		x += width
	}
	return parts
}
