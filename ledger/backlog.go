package ledger

import "github.com/countersign-otel/countersign/engine"

// Backlog is what a store has still to do, across tenants.
type Backlog struct {
	// Outbox counts events that wait to be sent as telemetry; OldestOutbox is when the first of them happened, 0 for none.
	Outbox       int64
	OldestOutbox engine.Instant
	// Due counts verifications that could be done now, Scheduled all that are due some time, Parked what waits for somebody to look.
	Due, Scheduled, Parked int64
	// Webhooks counts deliveries that wait, DeadLetters those that were given up.
	Webhooks, DeadLetters int64
}

// SourceLag is how far a source has got.
type SourceLag struct {
	Source string
	// Watermark is the earliest of its connections' in any tenant.
	Watermark engine.Instant
}
