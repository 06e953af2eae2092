package emit

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// destination is somewhere that verdicts are told.
type destination interface {
	// String names it in logs.
	String() string
	// wants says whether it takes an event; it is done with others at once.
	wants(i *item) bool
	// deliver sends items and says for each what went wrong.
	deliver(ctx context.Context, items []item) []error
	close() error
}

// route is a destination and how it fares. What one destination does not take
// holds no other: one that failed is left alone for a while.
type route struct {
	destination
	// name is otlp, phoenix or langfuse.
	name string
	// failures in a row, and the last one.
	failures int
	err      error
	// restUntil is when to try again.
	restUntil engine.Instant
}

// eventKey names an event of the outbox.
type eventKey struct {
	tenant string
	id     int64
}

// taken remembers which destinations took an event that another one still
// waits for, so that it is told once by this process. Another process, or this
// one after a restart, may tell it again; ids make that harmless.
type taken struct {
	known *lru.Cache[eventKey, map[string]bool]
}

// takenKept bounds what is remembered.
const takenKept = 100_000

func newTaken() taken {
	known, err := lru.New[eventKey, map[string]bool](takenKept)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return taken{known}
}

func (t taken) by(destination fmt.Stringer, event ledger.OutboxEvent) bool {
	names, _ := t.known.Get(eventKey{event.Tenant, event.ID})
	return names[destination.String()]
}

func (t taken) add(destination fmt.Stringer, event ledger.OutboxEvent) {
	key := eventKey{event.Tenant, event.ID}
	names, ok := t.known.Get(key)
	if !ok {
		names = map[string]bool{}
		t.known.Add(key, names)
	}
	names[destination.String()] = true
}

func (t taken) forget(events []ledger.OutboxEvent) {
	for _, event := range events {
		t.known.Remove(eventKey{event.Tenant, event.ID})
	}
}

// waits says whether some destination took an event that another one did not.
func (t taken) waits(event ledger.OutboxEvent) bool {
	return t.known.Contains(eventKey{event.Tenant, event.ID})
}

// mostRefusals is how often an event is refused for good before it is given up
// for that destination: with the pauses between, some 17 minutes, in which
// somebody may mend a setting.
const mostRefusals = 12

// errGivenUp: a destination refused an event so often that it is done with it.
var errGivenUp = errors.New("given up")

// permanent says whether the other side will not take an event, however often it is told.
func permanent(err error) bool {
	var answer *statusError
	return errors.Is(err, errRefused) || errors.As(err, &answer) && refusal(answer.status)
}

// refusal says whether an HTTP status is about what was sent, and for good.
func refusal(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity
}

type refusalKey struct {
	eventKey
	destination string
}

// refusals counts what was refused for good, in this process. What is forgotten is only counted anew.
type refusals struct {
	counts *lru.Cache[refusalKey, int]
}

func newRefusals() refusals {
	counts, err := lru.New[refusalKey, int](takenKept)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return refusals{counts}
}

// refused counts a refusal and says whether the event is given up.
func (e *Emitter) refused(r *route, i *item, err error) bool {
	key := refusalKey{eventKey{i.Tenant, i.ID}, r.String()}
	count, _ := e.refusals.counts.Get(key)
	count++
	about := []any{"to", r.String(), "tenant", i.Tenant, "action_id", i.Action.Action.ActionID, "claim_id", i.Action.ClaimID, "run_seq", i.Run.Seq, "kind", i.Kind, "error", err}
	if count == mostRefusals {
		e.refusals.counts.Remove(key)
		e.givenUp.WithLabelValues(r.name).Inc()
		e.Logger.Error("a verdict was refused as telemetry time and again and is given up there; it stays in the store", append(about, "refusals", count)...)
		return true
	}
	e.refusals.counts.Add(key, count)
	if count == 1 {
		e.Logger.Warn("a verdict is refused as telemetry; trying again for a while", about...)
	}
	return false
}

// deliver tells a batch to every destination that wants it, and says for each
// event what went wrong. stuck is an error when no destination works now.
func (e *Emitter) deliver(ctx context.Context, items []item) (failures []error, stuck error) {
	failures = make([]error, len(items))
	for _, r := range e.routes {
		var due []int
		for i := range items {
			if r.wants(&items[i]) && !e.taken.by(r, items[i].OutboxEvent) {
				due = append(due, i)
			}
		}
		if len(due) == 0 {
			continue
		}
		e.deliverTo(ctx, r, items, due, failures)
	}
	for _, r := range e.routes {
		if r.failures == 0 {
			return failures, nil
		}
		stuck = r.err
	}
	return failures, stuck
}

// understood says whether an error is about one event, and not about the destination.
func understood(err error) bool {
	return errors.Is(err, errOvertaken) || errors.Is(err, errRefused) || refusing(err)
}

// deliverTo tells the items at some indices to one destination. When it works
// for none of them, it rests.
func (e *Emitter) deliverTo(ctx context.Context, r *route, items []item, due []int, failures []error) {
	if r.restUntil > e.Now() {
		for _, i := range due {
			failures[i] = r.err
		}
		return
	}
	batch := make([]item, len(due))
	for n, i := range due {
		batch[n] = items[i]
	}
	var last error
	works := false
	for n, err := range r.deliver(ctx, batch) {
		switch i := due[n]; {
		case err == nil:
			e.taken.add(r, batch[n].OutboxEvent)
		case permanent(err) && e.refused(r, &batch[n], err):
			e.taken.add(r, batch[n].OutboxEvent)
			if failures[i] == nil {
				failures[i] = errGivenUp
			}
		default:
			last = fmt.Errorf("%s: %w", r, err)
			failures[i] = last
		}
		works = works || err == nil || understood(err)
	}
	if works {
		r.failures, r.restUntil, r.err = 0, 0, nil
		return
	}
	r.failures++
	r.err = last
	if len(e.routes) > 1 { // alone, it is the emitter that pauses
		r.restUntil = e.Now().Add(max(1, engine.Duration(e.backOff(r.failures).Seconds())))
		e.Logger.Warn("telling verdicts failed; trying again", "to", r.String(), "failures", r.failures, "error", last)
	}
}
