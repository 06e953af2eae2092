package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

// timeline is one action drawn to scale, in the units of its viewBox: a lane
// for each check, one for each source's watermark, and one for what else is
// known of the subject. Moments far from the window stand in gutters beyond a
// break of the axis, in order and not to scale.
type timeline struct {
	// Shape is broad or slim; First is where the viewBox begins.
	Shape         string
	First         float64
	Width, Height float64
	Left, Right   float64
	Top, Bottom   float64
	Lanes         []lane
	Heads         []heading
	Lines         []line
	Ticks         []tick
	Breaks        []float64
	Gutters       []gutter
	// Events say the same in words, for those who do not see the drawing.
	Events []happening
	Scales []choice
	// More: the subject has more records than are drawn.
	More        int
	Description string
}

type heading struct {
	Y    float64
	Text string
}

type gutter struct {
	X, Width, Height float64
	Text             string
}

// lane is one line of the drawing.
type lane struct {
	Y, LabelY   float64
	Label, Full string
	// State is ok, failed, awaited or empty.
	State string
	Bars  []stretch
	Marks []mark
}

// stretch is a length of time.
type stretch struct {
	X, Width    float64
	Class       string
	Text, Title string
}

// mark is a moment; Path is its shape.
type mark struct {
	X           float64
	Path, Class string
	Label       string
	LabelX      float64
	Anchor      string
	Title       string
}

// line is a moment that goes through all lanes.
type line struct {
	X, LabelX, LabelY float64
	Class, Anchor     string
	Label, Title      string
}

// happening is one line of the list beside the drawing.
type happening struct {
	At           engine.Instant
	Offset, Text string
	Class        string
}

// asked is what a call looks for, as its key says it (decision D24).
type asked struct {
	Primitive string `json:"primitive"`
	Type      string `json:"type"`
	Source    string `json:"source"`
	Within    int64  `json:"within"`
	Lookback  int64  `json:"lookback"`
	Over      int64  `json:"over"`
}

func askedBy(call primitive.Call) asked {
	var a asked
	_ = json.Unmarshal([]byte(call.Key(nil)), &a) // a call without these has none of them
	return a
}

// about says whether a fact is of the type that a call looks for.
func (a asked) about(f *engine.Fact) bool {
	return a.Type != "" && f.Type == a.Type && (a.Source == "" || f.Source == a.Source)
}

// reach is how far before and after the request a contract looks.
func reach(c *contract.Contract) (before, after engine.Duration) {
	before, after = engine.Hour, c.Window
	for _, call := range c.Calls {
		a := askedBy(call)
		before = max(before, engine.Duration(a.Lookback), engine.Duration(a.Over))
		after = max(after, engine.Duration(a.Within))
	}
	return before, after
}

// measures of a drawing, in units of its viewBox.
type measures struct {
	shape string
	width float64
	// left is where the lanes begin; labels stand before it, or above the lane when it is 0.
	left, margin float64
	gutter       float64
	high         float64
	// letters is how long a label may be, ticks how many there are.
	letters, ticks int
}

var (
	wideMeasures = measures{shape: "broad", width: 1100, left: 292, margin: 16, gutter: 92, high: 30, letters: 36, ticks: 8}
	slimMeasures = measures{shape: "slim", width: 360, margin: 4, gutter: 46, high: 46, letters: 48, ticks: 4}
)

const (
	headHeight  = 24.0
	linesHeight = 70.0
	axisHeight  = 34.0
)

var sectionNames = map[contract.Section]string{
	contract.Preconditions: "Must be true before", contract.Limits: "Limits on the request", contract.AggregateLimits: "Totals over many actions",
	contract.ForbiddenEffects: "Must not happen", contract.ReversedBy: "Would undo it later", contract.ExpectedEffects: "Must happen",
}

// drawing makes a timeline.
type drawing struct {
	timeline
	measures
	found
	verification view.Verification
	now          engine.Instant
	request      engine.Instant
	closes       engine.Instant
	axis         axis
	y            float64
}

func drawTimeline(f found, v view.Verification, now engine.Instant, scale string, m measures) *timeline {
	a := f.stored.Action
	d := &drawing{found: f, measures: m, verification: v, now: now, request: a.RequestedAt, closes: f.contract.SettlesAt(a.RequestedAt)}
	d.Shape, d.Width, d.Left, d.Right = m.shape, m.width, m.left, m.width-m.margin
	d.scale(scale)
	d.y = linesHeight
	d.Top = linesHeight - 6
	d.checkLanes()
	d.sourceLanes()
	d.otherFacts()
	d.Bottom = d.y + 2
	d.lines()
	d.Height = d.Bottom + axisHeight - d.First
	d.Ticks = d.axis.ticks(int64(m.ticks))
	d.Breaks, d.Gutters = d.axis.breaks(d.Bottom - d.Top)
	d.happenings()
	d.More = 0
	if len(f.facts) >= factsDrawn {
		d.More = factsDrawn
	}
	d.Description = d.describe()
	return &d.timeline
}

// scale chooses the time that is drawn to scale: the whole window, or, when the
// verdict is a PASS that needed little of it, what happened.
func (d *drawing) scale(asked string) {
	moments := d.moments()
	around := (d.closes - d.request) / 4
	near := func(at engine.Instant) bool { return at >= d.request-around && at <= d.closes+2*around }
	window := newExtent(d.request)
	happened := newExtent(d.request)
	window.include(d.closes)
	for _, at := range moments {
		if near(at) {
			window.include(at)
			happened.include(at)
		}
	}
	small := happened.length() < window.length()/8 && d.verification.Status == ledger.Settled &&
		d.verification.Outcome != nil && d.verification.Outcome.RawVerdict == engine.Verified
	close := asked == "close" || (asked != "window" && small)
	chosen := window
	if close {
		chosen = happened
	}
	specials := append(moments, d.request, d.closes)
	d.axis = newAxis(chosen.padded(), specials, d.Left, d.Right, d.gutter)
	path := actionPath(d.stored.ClaimID)
	if happened.length() < window.length() {
		d.Scales = []choice{
			{"whole window", path + "?scale=window#timeline", !close},
			{"what happened", path + "?scale=close#timeline", close},
		}
	}
}

// moments are all that is drawn, beside request and window.
func (d *drawing) moments() []engine.Instant {
	var all []engine.Instant
	for i := range d.facts {
		all = append(all, d.facts[i].OccurredAt)
	}
	for _, check := range d.verification.Checks {
		if check.Evidence != nil && check.Evidence.OccurredAt != nil {
			all = append(all, *check.Evidence.OccurredAt)
		}
	}
	if at, ok := d.settled(); ok {
		all = append(all, at)
	} else if d.pending() {
		all = append(all, d.now)
	}
	if r := d.verification.Resolution; r != nil {
		all = append(all, r.At)
	}
	return all
}

func (d *drawing) settled() (engine.Instant, bool) {
	if d.verification.Run == nil || d.verification.Status != ledger.Settled {
		return 0, false
	}
	return d.verification.Run.ComputedAt, true
}

func (d *drawing) pending() bool { return d.verification.Status != ledger.Settled }

// next begins a lane.
func (d *drawing) next(label, full, state string) *lane {
	l := lane{Y: d.y + d.high/2, Label: clip(d.letters, label), Full: plain(full), State: state}
	if d.left == 0 {
		l.Y, l.LabelY = d.y+d.high-12, 20-d.high
	}
	d.Lanes = append(d.Lanes, l)
	d.y += d.high
	return &d.Lanes[len(d.Lanes)-1]
}

func (d *drawing) head(text string) {
	d.Heads = append(d.Heads, heading{d.y + headHeight - 7, text})
	d.y += headHeight
}

func (d *drawing) checkLanes() {
	section := contract.Section("")
	for i, check := range d.contract.Checks {
		if check.Section != section {
			section = check.Section
			d.head(sectionNames[section])
		}
		row := report.Check{Section: check.Section, Description: check.Call.Describe()}
		state := ""
		if i < len(d.verification.Checks) {
			row = d.verification.Checks[i]
			state = passed(row, d.verification.Status)
		}
		l := d.next(checkName(row), row.Description, state)
		d.fillLane(l, askedBy(check.Call), row, state)
	}
}

// fillLane draws where a check looked and what it found there.
func (d *drawing) fillLane(l *lane, a asked, row report.Check, state string) {
	from, to := d.looked(a, row.Section)
	if row.Section == contract.Limits {
		m := d.markOf(d.request, shapeOf(row.Section, state), markClass(state), "in the request: "+row.Description)
		if text, ok := row.Value.(string); ok {
			m.Label = clip(24, text)
			m.place(d)
		}
		l.Marks = append(l.Marks, m)
		return
	}
	l.Bars = append(l.Bars, d.stretch(from, to, "looked", "", "looked for from "+clock(from)+" to "+clock(to)+" UTC"))
	for i := range d.facts {
		f := &d.facts[i]
		if a.about(f) && f.RawRef != rawRef(row.Evidence) && d.axis.shows(f.OccurredAt) {
			l.Marks = append(l.Marks, d.markOf(f.OccurredAt, "ring", "seen", d.factTitle(f)))
		}
	}
	if e := row.Evidence; e != nil && e.OccurredAt != nil {
		m := d.markOf(*e.OccurredAt, shapeOf(row.Section, state), markClass(state), d.evidenceTitle(e))
		m.Label = offset(d.request, *e.OccurredAt)
		m.place(d)
		l.Marks = append(l.Marks, m)
	}
	if gap, ok := d.gap(row, state, from, to); ok {
		l.Bars = append(l.Bars, gap)
	}
	spread(l.Marks)
}

// looked is the time that a check looks at.
func (d *drawing) looked(a asked, section contract.Section) (from, to engine.Instant) {
	switch section {
	case contract.Preconditions:
		return d.request.Sub(engine.Duration(a.Lookback)), d.request
	case contract.AggregateLimits:
		end := d.request.Add(engine.Duration(a.Within))
		return end.Sub(engine.Duration(a.Over)), end
	}
	return d.request, d.request.Add(engine.Duration(a.Within))
}

// gap is what was expected and not seen.
func (d *drawing) gap(row report.Check, state string, from, to engine.Instant) (stretch, bool) {
	if row.OK || row.Evidence != nil || d.verification.Run == nil {
		return stretch{}, false
	}
	switch row.Section {
	case contract.ExpectedEffects:
		if state == "awaited" {
			if d.now > from && d.now < to {
				from = d.now
			}
			return d.stretch(from, to, "gap awaited", "awaited", "expected, and not seen so far"), true
		}
		return d.stretch(from, to, "gap missing", "expected, not seen", "expected, and not seen in this time"), true
	case contract.Preconditions:
		return d.stretch(from, to, "gap missing", "no record", "no such record in this time"), true
	}
	return stretch{}, false
}

func (d *drawing) stretch(from, to engine.Instant, class, text, title string) stretch {
	left, right := d.axis.clamped(from), d.axis.clamped(to)
	return stretch{X: round(left), Width: round(max(right-left, 2)), Class: class, Text: text, Title: title}
}

func markClass(state string) string {
	switch state {
	case "ok":
		return "ok"
	case "failed":
		return "bad"
	}
	return "seen"
}

// shapeOf tells states, what was seen and what was not allowed apart without colour.
func shapeOf(section contract.Section, state string) string {
	switch {
	case section == contract.Preconditions || section == contract.Limits:
		return "square"
	case section == contract.ExpectedEffects || state == "ok":
		return "disc"
	}
	return "diamond"
}

func (d *drawing) markOf(at engine.Instant, shape, class, title string) mark {
	m := mark{X: round(d.axis.x(at)), Class: class, Title: plain(title)}
	m.Path = shapePath(shape, m.X)
	return m
}

// letter is about how wide a letter of the small labels is.
const letter = 6.6

// place puts a mark's label beside it, on the side that has room and is not across the request.
func (m *mark) place(d *drawing) {
	long := float64(len([]rune(m.Label))) * letter
	left := m.X < d.axis.x(d.request)-1 && m.X-long-14 > d.Left || m.X+long+14 > d.Right
	m.Anchor, m.LabelX = "start", m.X+10
	if left {
		m.Anchor, m.LabelX = "end", m.X-10
	}
}

// shapePath draws a shape around a point on the middle of a lane; the lane is moved to its place.
func shapePath(shape string, x float64) string {
	switch shape {
	case "disc":
		return fmt.Sprintf("M%g -5.5a5.5 5.5 0 1 0 .01 0z", x)
	case "ring":
		return fmt.Sprintf("M%g -3.5a3.5 3.5 0 1 0 .01 0z", x)
	case "square":
		return fmt.Sprintf("M%g -5h10v10h-10z", x-5)
	case "diamond":
		return fmt.Sprintf("M%g -7l7 7l-7 7l-7 -7z", x)
	}
	return fmt.Sprintf("M%g -4v8", x)
}

// spread drops labels that would stand on another mark.
func spread(marks []mark) {
	for i := range marks {
		for j := range marks {
			distance := marks[j].X - marks[i].X
			if marks[i].Anchor == "end" {
				distance = -distance
			}
			if i != j && distance > 0 && distance < 10+letter*float64(len([]rune(marks[i].Label))) {
				marks[i].Label = ""
			}
		}
	}
}

func (d *drawing) factTitle(f *engine.Fact) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, %s UTC (%s)", f.Source, f.Type, clock(f.OccurredAt), offset(d.request, f.OccurredAt))
	if f.SubjectID != d.stored.Action.SubjectID {
		fmt.Fprintf(&b, ", on %s", clip(60, f.SubjectID))
	}
	for i, a := range attributes(f.Attributes) {
		if i == 6 {
			b.WriteString(", …")
			break
		}
		fmt.Fprintf(&b, ", %s = %s", clip(60, a.Name), clip(60, a.Value))
	}
	fmt.Fprintf(&b, ", %s", clip(80, f.RawRef))
	return b.String()
}

func (d *drawing) evidenceTitle(e *report.Evidence) string {
	if i := slices.IndexFunc(d.facts, func(f engine.Fact) bool { return f.RawRef == e.RawRef }); i >= 0 {
		return d.factTitle(&d.facts[i])
	}
	return fmt.Sprintf("%s %s, %s UTC, %s", e.Source, e.FactType, clock(*e.OccurredAt), clip(80, e.RawRef))
}

// sourceLanes show up to when each source has reported.
func (d *drawing) sourceLanes() {
	if len(d.verification.Sources) == 0 {
		return
	}
	d.head("Reported up to")
	for _, s := range d.verification.Sources {
		label := s.Source
		if s.Trust != nil {
			label += ", " + words(s.Trust.String())
		}
		if s.Watermark == nil {
			l := d.next(label, label+", declares no watermark", "")
			l.Bars = append(l.Bars, stretch{X: d.Left, Width: round(d.Right - d.Left), Class: "current", Text: "declares no watermark: taken as current"})
			continue
		}
		state, class := "", "reported"
		if *s.Watermark < d.closes {
			class = "reported behind"
		}
		l := d.next(label, label+", everything up to "+clock(*s.Watermark)+" UTC has been sent", state)
		end := d.axis.clamped(*s.Watermark)
		l.Bars = append(l.Bars, stretch{X: d.Left, Width: round(max(end-d.Left, 2)), Class: class, Title: "everything up to " + clock(*s.Watermark) + " UTC has been sent"})
		m := mark{X: round(end), Path: fmt.Sprintf("M%g -7v14", round(end)), Class: "watermark", Label: offset(d.request, *s.Watermark), Title: "watermark " + clock(*s.Watermark) + " UTC"}
		m.place(d)
		l.Marks = append(l.Marks, m)
	}
}

// otherFacts are records of the subject that no check looks for.
func (d *drawing) otherFacts() {
	calls := make([]asked, len(d.contract.Checks))
	for i, check := range d.contract.Checks {
		calls[i] = askedBy(check.Call)
	}
	var l *lane
	for i := range d.facts {
		f := &d.facts[i]
		if slices.ContainsFunc(calls, func(a asked) bool { return a.about(f) }) {
			continue
		}
		if l == nil {
			d.head("Else")
			l = d.next("other records of the subject", "records of the subject and those linked to it that no check looks for", "")
		}
		l.Marks = append(l.Marks, d.markOf(f.OccurredAt, "ring", "seen", d.factTitle(f)))
	}
}

// lines are the moments that matter to all lanes, their labels on as many rows as they need.
func (d *drawing) lines() {
	d.line(d.request, "request", "request")
	d.line(d.closes, "close", "window closes")
	if at, ok := d.settled(); ok {
		d.line(at, "settled "+strings.ToLower(d.verdict()), "settled "+d.verdict())
	} else {
		d.line(d.now, "now", "now")
	}
	if r := d.verification.Resolution; r != nil {
		d.line(r.At, "resolution", words(r.State))
	}
	if e := d.verification.Reversal; e != nil && e.OccurredAt != nil {
		d.line(*e.OccurredAt, "reversal", "reversed")
	}
	slices.SortStableFunc(d.Lines, func(a, b line) int { return int(a.X*100) - int(b.X*100) })
	ends := [4]float64{}
	lowest := 0.0
	for i := range d.Lines {
		placeLabel(&d.Lines[i], &ends, d.Width)
		lowest = max(lowest, d.Lines[i].LabelY)
	}
	d.First = d.Top
	for i := range d.Lines {
		d.Lines[i].LabelY += d.Top - 8 - lowest
		d.First = min(d.First, d.Lines[i].LabelY-14)
	}
}

func (d *drawing) verdict() string { return verdictOf(d.verification.Status, d.verification.Policy) }

func (d *drawing) line(at engine.Instant, class, label string) {
	x := round(d.axis.x(at))
	text := label + " " + shortClock(d.request, at)
	d.Lines = append(d.Lines, line{X: x, Class: class, Label: text, Title: label + " " + clock(at) + " UTC"})
}

// placeLabel puts a line's label on the first row that is free, left of the line where the drawing ends.
func placeLabel(l *line, ends *[4]float64, width float64) {
	const rowHeight = 14.0
	long := float64(len([]rune(l.Label))) * (letter + .6)
	l.Anchor, l.LabelX = "start", l.X+4
	start := l.LabelX
	if l.LabelX+long > width-2 && l.X-4-long > 0 {
		l.Anchor, l.LabelX = "end", l.X-4
		start = l.LabelX - long
	}
	row := 0
	for row < len(ends)-1 && ends[row] > start {
		row++
	}
	ends[row] = max(ends[row], start+long+8)
	l.LabelY = 12 + float64(row)*rowHeight
}

// happenings are the drawing in words, in order of time.
func (d *drawing) happenings() {
	add := func(at engine.Instant, class, format string, args ...any) {
		d.Events = append(d.Events, happening{at, offset(d.request, at), plain(fmt.Sprintf(format, args...)), class})
	}
	add(d.request, "request", "the agent requested it")
	add(d.closes, "close", "the window closed")
	if d.closes > d.now {
		d.Events[len(d.Events)-1].Text = "the window closes"
	}
	used := map[string]string{}
	for _, check := range d.verification.Checks {
		if ref := rawRef(check.Evidence); ref != "" {
			used[ref] = markClass(passed(check, d.verification.Status))
		}
	}
	for i := range d.facts {
		f := &d.facts[i]
		class := "seen"
		if c, ok := used[f.RawRef]; ok {
			class = c
		}
		add(f.OccurredAt, class, "%s %s%s", f.Source, f.Type, aboutSubject(f, d.stored.Action.SubjectID))
	}
	if at, ok := d.settled(); ok {
		add(at, "settled", "the verdict settled: %s", d.verdict())
	}
	if r := d.verification.Resolution; r != nil {
		add(r.At, "resolution", "%s by %s", words(r.State), r.By)
	}
	slices.SortStableFunc(d.Events, func(a, b happening) int { return int(a.At - b.At) })
}

func aboutSubject(f *engine.Fact, subject string) string {
	if f.SubjectID == subject {
		return ""
	}
	return " on the linked " + clip(60, f.SubjectID)
}

// describe is the drawing in one breath.
func (d *drawing) describe() string {
	missing := 0
	for _, check := range d.verification.Checks {
		if check.Section == contract.ExpectedEffects && !check.OK {
			missing++
		}
	}
	text := fmt.Sprintf("Timeline of the action: requested %s UTC, window until %s UTC, %s of the subject", clock(d.request), clock(d.closes), plural(len(d.facts), "record", "records"))
	if missing > 0 {
		text += fmt.Sprintf(", %s not seen", plural(missing, "expected effect", "expected effects"))
	}
	return text + ". The list below says the same in words."
}
