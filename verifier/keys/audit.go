package keys

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// Use is one request with a key, for the audit log.
type Use struct {
	// Key is the zero Key when it is unknown.
	Key ledger.Key
	// Route is the pattern of the endpoint, without what callers put into it.
	Route string
	// Status is the HTTP status of the answer.
	Status int
	From   netip.Addr
	// Gone is ErrRevoked or ErrExpired for a key that was good once.
	Gone error
}

// Kind is the kind of event that a use is.
func (u Use) Kind() string {
	switch {
	case u.Gone != nil:
		return ledger.KeyExpiredUse
	case u.Status == http.StatusUnauthorized, u.Status == http.StatusForbidden:
		return ledger.KeyRefused
	}
	return ledger.KeyUsed
}

// Event is what the audit log keeps of a use.
func (u Use) Event(at engine.Instant) ledger.KeyEvent {
	event := about(u.Key, u.Kind(), "", at)
	event.Route, event.Status, event.Remote = u.Route, strconv.Itoa(u.Status/100)+"xx", u.Remote()
	switch {
	case errors.Is(u.Gone, ErrRevoked):
		event.Detail = "revoked"
	case errors.Is(u.Gone, ErrExpired):
		event.Detail = "expired"
	}
	return event
}

// Remote is the address that sent it, of IPv6 its /64; empty when it is not known.
func (u Use) Remote() string {
	if !u.From.IsValid() {
		return ""
	}
	return network(u.From).String()
}

func about(key ledger.Key, kind, detail string, at engine.Instant) ledger.KeyEvent {
	return ledger.KeyEvent{Tenant: key.Tenant, Kind: kind, KeyID: key.ID, Prefix: key.Prefix, Detail: detail, FirstAt: at}
}

// Revoke makes a key worthless, at once. One that was revoked before keeps its
// time. It fails with ledger.ErrNotFound for an unknown id.
func Revoke(ctx context.Context, store ledger.Ledger, tenant, id string, now engine.Instant) error {
	return store.Update(ctx, func(tx ledger.Tx) error {
		key, err := byID(ctx, tx, tenant, id)
		if err != nil || key.RevokedAt != nil {
			return err
		}
		if err := tx.RevokeKey(ctx, tenant, id, now); err != nil {
			return err
		}
		return tx.NoteKeyEvents(ctx, []ledger.KeyEvent{about(key, ledger.KeyRevoked, "", now)})
	})
}

// successorOf is the id of the key that a key was rotated to, empty for none.
func successorOf(ctx context.Context, tx ledger.Tx, tenant, id string) (string, error) {
	page, err := tx.KeyEvents(ctx, tenant, ledger.KeyEventFilter{Key: id, Kind: ledger.KeyRotated, Limit: 1})
	if err != nil || len(page.Events) == 0 {
		return "", err
	}
	return page.Events[0].Detail, nil
}
