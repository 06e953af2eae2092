package ledger

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine"
)

// States of a delivery.
const (
	DeliveryWaiting   = "waiting"
	DeliveryDelivered = "delivered"
	// DeliveryDead: given up, until somebody replays it.
	DeliveryDead = "dead"
)

// NewDelivery is one event that an endpoint is to be told.
type NewDelivery struct {
	// ID tells deliveries of a tenant apart, and is the same for the same event and endpoint.
	ID    string
	Event Position
	Kind  string
	// Payload is sent as it stands with every attempt.
	Payload string
}

// Delivery is one event on its way to an endpoint.
type Delivery struct {
	NewDelivery
	Endpoint, State string
	CreatedAt       engine.Instant
	// Attempts counts leases since the delivery was enqueued or replayed.
	Attempts int
	// Status is the HTTP status of the last answer, 0 for none; Error what was wrong with it.
	Status int
	Error  string
	// DueAt is when the next attempt may be; FinishedAt when it was delivered or given up, nil while it waits.
	DueAt      engine.Instant
	FinishedAt *engine.Instant
}

// DeliveryResult is what came of one attempt.
type DeliveryResult struct {
	ID string
	// State is DeliveryWaiting for another attempt at DueAt.
	State  string
	DueAt  engine.Instant
	Status int
	Error  string
}

// DeadLetterFilter selects deliveries that were given up; zero fields select all.
type DeadLetterFilter struct {
	Endpoint string
	// Cursor is DeadLetterPage.Next of the page before.
	Cursor string
	// Limit is 1 to 500; 0 means 50.
	Limit int
}

// DeadLetterPage is one page, the last ones that were given up first.
type DeadLetterPage struct {
	Deliveries []Delivery
	// Next is empty on the last page.
	Next string
}

// DeadLetterCursor is for stores: where a page begins, before everything for an
// empty text. It fails with ErrFilter.
func (f DeadLetterFilter) DeadLetterCursor() (finishedAt int64, id string, err error) {
	if f.Cursor == "" {
		return int64(engine.MaxInstant) + 1, "", nil
	}
	at, id, ok := strings.Cut(f.Cursor, ".")
	finishedAt, err = strconv.ParseInt(at, 10, 64)
	if !ok || err != nil {
		return 0, "", fmt.Errorf("%w: the cursor is not one that a page gave as next", ErrFilter)
	}
	return finishedAt, id, nil
}

// PageOf is for stores: it makes a page of up to one delivery more than was asked for.
func (f DeadLetterFilter) PageOf(found []Delivery) DeadLetterPage {
	if len(found) <= f.limit() {
		return DeadLetterPage{Deliveries: found}
	}
	found = found[:f.limit()]
	last := found[len(found)-1]
	return DeadLetterPage{Deliveries: found, Next: fmt.Sprintf("%d.%s", *last.FinishedAt, last.ID)}
}

// Ask is for stores: one more than a page holds.
func (f DeadLetterFilter) Ask() int { return f.limit() + 1 }

func (f DeadLetterFilter) limit() int {
	if f.Limit <= 0 || f.Limit > 500 {
		return 50
	}
	return f.Limit
}
