package ledgerexporter

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"

	"github.com/countersign-otel/countersign/ledger"
)

// opener opens a store by its URL; it is ledger/open's in production.
type opener func(ctx context.Context, url string) (ledger.Ledger, error)

// keeper opens the store when it is first needed and keeps it open. It is safe
// for concurrent use.
type keeper struct {
	open         opener
	url          string
	createSchema bool
	logger       *zap.Logger
	// turn is taken by who opens or closes: unlike a mutex it can be waited for with a deadline.
	turn   chan struct{}
	store  ledger.Ledger
	closed bool

	status sync.Mutex
	host   component.Host
	failed bool
}

func newKeeper(config *Config, open opener, logger *zap.Logger) *keeper {
	return &keeper{
		open: open, url: config.storeURL(), createSchema: config.createsSchema(),
		logger: logger, turn: make(chan struct{}, 1),
	}
}

var errClosed = errors.New("the exporter was shut down")

// get returns the open store. While one caller opens it the others wait for the outcome.
func (k *keeper) get(ctx context.Context) (ledger.Ledger, error) {
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("open the ledger: %w", ctx.Err())
	}
	if k.closed {
		return nil, errClosed
	}
	if k.store != nil {
		return k.store, nil
	}
	store, err := k.openUsable(ctx)
	if err != nil {
		return nil, err
	}
	k.logger.Info("the ledger is open", zap.String("dialect", store.Capabilities().Dialect))
	k.store = store
	return store, nil
}

func (k *keeper) openUsable(ctx context.Context) (ledger.Ledger, error) {
	store, err := k.open(ctx, k.url)
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	if k.createSchema {
		err = store.Migrate(ctx)
	} else {
		err = store.CheckSchema(ctx)
	}
	if err == nil {
		return store, nil
	}
	if errors.Is(err, ledger.ErrNotMigrated) {
		err = fmt.Errorf("%w; run countersign migrate, or set create_schema: true", err)
	}
	return nil, errors.Join(fmt.Errorf("open the ledger: %w", err), store.Close())
}

// report tells the log and the host about the change from working to failing
// and back. The queue logs its retries as information only, and none before
// there is something to write: a wrong store would go unnoticed.
func (k *keeper) report(err error) {
	k.status.Lock()
	defer k.status.Unlock()
	changed := k.failed != (err != nil)
	k.failed = err != nil
	if !changed {
		return
	}
	if err != nil {
		k.logger.Warn("the ledger cannot be used: what comes for it waits in the sending queue", zap.Error(err))
	} else {
		k.logger.Info("the ledger can be used again")
	}
	if k.host == nil {
		return
	}
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if err != nil {
		event = componentstatus.NewRecoverableErrorEvent(err)
	}
	componentstatus.ReportStatus(k.host, event)
}

func (k *keeper) watchedBy(host component.Host) {
	k.status.Lock()
	defer k.status.Unlock()
	k.host = host
}

func (k *keeper) close() error {
	k.turn <- struct{}{}
	defer func() { <-k.turn }()
	k.closed = true
	if k.store == nil {
		return nil
	}
	store := k.store
	k.store = nil
	return store.Close()
}
