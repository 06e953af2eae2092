package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

// DeadLetterList is webhooks that were given up, the last ones first.
type DeadLetterList struct {
	DeadLetters []DeadLetter `json:"dead_letters"`
	Next        *string      `json:"next_cursor" doc:"null on the last page"`
}

// DeadLetter is an event that an endpoint did not take.
type DeadLetter struct {
	ID        string          `json:"id" doc:"webhook-id of every attempt"`
	Endpoint  string          `json:"endpoint" doc:"the endpoint's name in the settings"`
	EventID   string          `json:"event_id"`
	Type      string          `json:"type"`
	CreatedAt engine.Instant  `json:"created_at"`
	GivenUpAt engine.Instant  `json:"given_up_at"`
	Attempts  int             `json:"attempts"`
	Status    *int            `json:"status" doc:"HTTP status of the last answer; null when there was none"`
	Error     string          `json:"error" doc:"what was wrong with the last attempt"`
	Payload   json.RawMessage `json:"payload" doc:"what was sent"`
}

// DeadLetters is GET /webhooks/dead-letters.
func (s *Service) DeadLetters(ctx context.Context, caller Caller, filter ledger.DeadLetterFilter) (list DeadLetterList, err error) {
	if err := caller.need(keys.Inspect); err != nil {
		return DeadLetterList{}, err
	}
	var page ledger.DeadLetterPage
	err = s.view(ctx, func(tx ledger.Tx) error {
		page, err = tx.DeadLetters(ctx, caller.Tenant, filter)
		if errors.Is(err, ledger.ErrFilter) {
			return badParameter("cursor", "is not one that a page gave as next_cursor")
		}
		return err
	})
	if err != nil {
		return DeadLetterList{}, err
	}
	list.DeadLetters = make([]DeadLetter, len(page.Deliveries))
	for i, d := range page.Deliveries {
		list.DeadLetters[i] = deadLetter(d)
	}
	if page.Next != "" {
		list.Next = &page.Next
	}
	return list, nil
}

func deadLetter(d ledger.Delivery) DeadLetter {
	shown := DeadLetter{
		ID: d.ID, Endpoint: d.Endpoint, EventID: d.Event.String(), Type: d.Kind, CreatedAt: d.CreatedAt,
		Attempts: d.Attempts, Error: d.Error, Payload: json.RawMessage(d.Payload),
	}
	if d.FinishedAt != nil {
		shown.GivenUpAt = *d.FinishedAt
	}
	if d.Status != 0 {
		shown.Status = &d.Status
	}
	return shown
}

// Replayed says that a delivery is due again.
type Replayed struct {
	ID    string         `json:"id"`
	DueAt engine.Instant `json:"due_at"`
}

// Replay is POST /webhooks/deliveries/{id}/replay: the event is sent again, under
// the same id, whether it was given up or delivered.
func (s *Service) Replay(ctx context.Context, caller Caller, id string) (Replayed, error) {
	if err := caller.need(keys.Replay); err != nil {
		return Replayed{}, err
	}
	now := s.Now()
	err := s.update(ctx, func(tx ledger.Tx) error {
		replayed, err := tx.ReplayDeliveries(ctx, caller.Tenant, []string{id}, now)
		if err == nil && len(replayed) == 0 {
			err = notFound("no webhook %q is kept; those that were delivered or given up long ago are removed", clip(id))
		}
		return err
	})
	return Replayed{id, now}, err
}

type deadLettersInput struct {
	Endpoint string `query:"endpoint" doc:"the endpoint's name"`
	Cursor   string `query:"cursor" maxLength:"1000" doc:"next_cursor of the page before"`
	Limit    int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

type deliveryInput struct {
	ID string `path:"id" maxLength:"200" doc:"webhook-id, like msg_..."`
}

// webhooks are the endpoints for who looks after those that are told.
func (h *handler) webhooks() {
	register(h, operation("list-dead-letters", http.MethodGet, "/v1/webhooks/dead-letters", "List webhooks that were given up", keys.Inspect, 422), keys.Inspect,
		func(ctx context.Context, caller Caller, in *deadLettersInput) (*output[DeadLetterList], error) {
			return body(h.DeadLetters(ctx, caller, ledger.DeadLetterFilter{Endpoint: in.Endpoint, Cursor: in.Cursor, Limit: in.Limit}))
		})
	register(h, operation("replay-webhook", http.MethodPost, "/v1/webhooks/deliveries/{id}/replay", "Send a webhook again", keys.Replay, 404), keys.Replay,
		func(ctx context.Context, caller Caller, in *deliveryInput) (*output[Replayed], error) {
			return body(h.Replay(ctx, caller, in.ID))
		})
}
