package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine"
)

// FirstParking is the lowest Position.N of work that was parked: a run has at most so many events.
const FirstParking = 16

// ParkedEvent is the kind of events about work that was parked. Those of runs are Run.Events.
const ParkedEvent = "action.parked"

// ErrPosition is wrapped by ParsePosition.
var ErrPosition = errors.New("invalid event id")

// Position is a place in the sequence of a tenant's events. Events are
// committed in the order of their positions, so that who has read up to one has
// missed nothing before it. The zero Position stands before the first event.
type Position struct {
	// Seq is the run's, or that of the run before the work was parked.
	Seq int64
	// N tells events of one Seq apart.
	N int
}

// String is the id of an event, like 42-0.
func (p Position) String() string { return strconv.FormatInt(p.Seq, 10) + "-" + strconv.Itoa(p.N) }

// Compare is negative when p stands before q.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Seq, q.Seq), cmp.Compare(p.N, q.N))
}

// ParsePosition reads what String printed. It fails with ErrPosition.
func ParsePosition(text string) (Position, error) {
	seq, n, _ := strings.Cut(text, "-")
	var p Position
	var err, nErr error
	p.Seq, err = strconv.ParseInt(seq, 10, 64)
	p.N, nErr = strconv.Atoi(n)
	if err != nil || nErr != nil || p.Seq < 0 || p.N < 0 || p.String() != text {
		return Position{}, fmt.Errorf("%w: write one that an event had, like 42-0", ErrPosition)
	}
	return p, nil
}

// Event is what happened to an action: a run that tells it, or parked work. It
// holds what stood in the store when the event was read, without reports.
type Event struct {
	Position
	// Kind is one of Run.Events, or ParkedEvent; empty for a run that told nothing.
	Kind     string
	ClaimID  string
	ActionID string
	Contract ContractRef
	// AgentID, WorkflowID, Compensates, TraceID and SpanID may be empty.
	AgentID, WorkflowID, SubjectID, Compensates, TraceID, SpanID string
	// At is when the run was computed, or the work was parked.
	At engine.Instant
	// Status, Headline and both verdicts are those of a run.
	Status, Headline string
	Outcome, Policy  EventVerdict
	// Error is why the work was parked.
	Error string
}

// EventVerdict is one verdict of a run.
type EventVerdict struct {
	engine.Verdict
	Hash [32]byte
}

// EventPage is one page of events, in order.
type EventPage struct {
	Events []Event
	// Next is where the next page begins; the position that was asked for when nothing is new.
	Next Position
	// More: the next page is not empty.
	More bool
}

// AddRow is for stores: it adds a row of the sequence, whose N is 0 for a run,
// with the run's events, and leaves out what does not stand after a position.
func (p *EventPage) AddRow(after Position, row Event, kinds []string) {
	if row.Kind == ParkedEvent || len(kinds) == 0 {
		kinds = []string{row.Kind}
	}
	for n, kind := range kinds {
		e := row
		e.N, e.Kind = row.N+n, kind
		if e.Compare(after) > 0 {
			p.Events = append(p.Events, e)
			p.Next = e.Position
		}
	}
}
