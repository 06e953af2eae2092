package api

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// usesInterval is how late the last use of a key may be stored.
const usesInterval = 10 * time.Second

// Uses collects uses of keys and stores them in batches, so that no request
// writes for it. Give Touch to Options and run it.
type Uses struct {
	store  ledger.Ledger
	now    func() engine.Instant
	logger *slog.Logger

	mu   sync.Mutex
	last map[useKey]engine.Instant
}

type useKey struct{ tenant, id string }

// NewUses makes a collector over a store; logger may be nil.
func NewUses(store ledger.Ledger, now func() engine.Instant, logger *slog.Logger) *Uses {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Uses{store: store, now: now, logger: logger, last: map[useKey]engine.Instant{}}
}

// Touch notes a use of a key.
func (u *Uses) Touch(tenant, keyID string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[useKey{tenant, keyID}] = u.now()
}

// Run stores uses now and then until ctx ends, and then what is left.
func (u *Uses) Run(ctx context.Context) error {
	ticker := time.NewTicker(usesInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			u.flush(context.WithoutCancel(ctx))
			return nil
		case <-ticker.C:
			u.flush(ctx)
		}
	}
}

// flush stores what was collected. Uses that cannot be stored are lost: no request waits for them.
func (u *Uses) flush(ctx context.Context) {
	u.mu.Lock()
	uses := make([]ledger.KeyUse, 0, len(u.last))
	for key, at := range u.last {
		uses = append(uses, ledger.KeyUse{Tenant: key.tenant, ID: key.id, At: at})
	}
	clear(u.last)
	u.mu.Unlock()
	if len(uses) == 0 {
		return
	}
	err := u.store.Update(ctx, func(tx ledger.Tx) error { return tx.TouchKeys(ctx, uses) })
	if err != nil {
		u.logger.Warn("the last use of keys could not be stored", "error", err)
	}
}
