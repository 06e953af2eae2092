package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

// KeyEventList is a page of the audit log of keys, the newest first.
type KeyEventList struct {
	Events []KeyEvent `json:"events"`
	Next   *string    `json:"next_cursor" doc:"null on the last page"`
}

// KeyEvent is what was done to a key, or with it. What is the same on one day is one event.
type KeyEvent struct {
	Kind    string         `json:"kind" enum:"created,rotated,revoked,used,refused,expired_use" doc:"refused: the key may not do what was asked; expired_use: it had expired or was revoked"`
	KeyID   string         `json:"key_id"`
	Prefix  string         `json:"prefix" doc:"visible start of the secret"`
	Route   string         `json:"route" doc:"pattern of the endpoint; empty for what was done to the key"`
	Status  string         `json:"status" doc:"class of the answers, like 2xx; empty for what was done to the key"`
	Remote  string         `json:"remote" doc:"address of the client, of IPv6 its /64; empty for what was done to the key"`
	Detail  string         `json:"detail" doc:"role of a created key, id of the key that replaces a rotated one, why a use was refused"`
	FirstAt engine.Instant `json:"first_at" doc:"when it happened first on that day (UTC)"`
	LastAt  engine.Instant `json:"last_at" doc:"when it happened last on that day"`
	Times   int            `json:"times"`
}

// KeyEvents is GET /keys/audit.
func (s *Service) KeyEvents(ctx context.Context, caller Caller, filter ledger.KeyEventFilter) (KeyEventList, error) {
	if err := caller.need(keys.Inspect); err != nil {
		return KeyEventList{}, err
	}
	var page ledger.KeyEventPage
	err := s.view(ctx, func(tx ledger.Tx) (err error) {
		page, err = tx.KeyEvents(ctx, caller.Tenant, filter)
		if errors.Is(err, ledger.ErrFilter) {
			return badParameter("cursor", "is not one that a page gave as next_cursor")
		}
		return err
	})
	if err != nil {
		return KeyEventList{}, err
	}
	list := KeyEventList{Events: make([]KeyEvent, len(page.Events))}
	for i, e := range page.Events {
		list.Events[i] = KeyEvent{e.Kind, e.KeyID, e.Prefix, e.Route, e.Status, e.Remote, e.Detail, e.FirstAt, e.LastAt, e.Times}
	}
	if page.Next != "" {
		list.Next = &page.Next
	}
	return list, nil
}

type keyEventsInput struct {
	Key    string `query:"key" maxLength:"200" doc:"id of a key, or the visible start of its secret"`
	Kind   string `query:"kind" enum:"created,rotated,revoked,used,refused,expired_use" doc:"in any case"`
	Since  string `query:"since" doc:"RFC 3339: happened at or after, for the last time"`
	Until  string `query:"until" doc:"RFC 3339: happened before, for the first time"`
	Cursor string `query:"cursor" maxLength:"1000" doc:"next_cursor of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

// keyAudit is the endpoint of the audit log.
func (h *handler) keyAudit() {
	register(h, operation("list-key-events", http.MethodGet, "/v1/keys/audit", "List what was done to keys, and with them", keys.Inspect, 422), keys.Inspect,
		func(ctx context.Context, caller Caller, in *keyEventsInput) (*output[KeyEventList], error) {
			filter := ledger.KeyEventFilter{Key: in.Key, Kind: in.Kind, Cursor: in.Cursor, Limit: in.Limit}
			var err error
			if filter.Since, err = instantParameter("since", in.Since); err != nil {
				return nil, err
			}
			if filter.Until, err = instantParameter("until", in.Until); err != nil {
				return nil, err
			}
			return body(h.KeyEvents(ctx, caller, filter))
		})
}
