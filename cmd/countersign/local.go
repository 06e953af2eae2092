package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/api"
	"github.com/countersign-otel/countersign/verifier/settle"
	"github.com/countersign-otel/countersign/verifier/view"
)

// local is the API on a store that this process opened. Whoever can open the
// store can do everything, so the caller is an analyst.
type local struct {
	store    ledger.Ledger
	verifier *settle.Verifier
	hub      *api.Hub
	service  *api.Service
	caller   api.Caller
}

// openLocal works at the time that the clock tells.
func openLocal(ctx context.Context, url, tenant string, clock func() engine.Instant) (*local, error) {
	store, err := openStore(ctx, url)
	if err != nil {
		return nil, err
	}
	return newLocal(store, tenant, clock), nil
}

func newLocal(store ledger.Ledger, tenant string, clock func() engine.Instant) *local {
	l := &local{store: store, hub: api.NewHub(store, 0, nil), caller: api.Analyst(tenant)}
	contracts := ledger.NewContractCache(0)
	l.verifier = settle.New(settle.Config{
		Ledger: store, Contracts: contracts, Owner: owner(), Now: clock, OnStored: l.hub.Stored,
	})
	l.service = api.NewService(api.Config{
		Ledger: store, Verifier: l.verifier, Contracts: contracts, Now: clock, Hub: l.hub,
	})
	return l
}

// owner names this process in leases.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return "cli:" + host + ":" + strconv.Itoa(os.Getpid())
}

func (l *local) Close() error { return l.store.Close() }

func (l *local) Record(ctx context.Context, body []byte) (view.Recorded, bool, error) {
	return l.service.Record(ctx, l.caller, body)
}

func (l *local) Verify(ctx context.Context, body []byte) (api.Verified, error) {
	return l.service.Verify(ctx, l.caller, body)
}

func (l *local) Get(ctx context.Context, ref string) (view.Verification, error) {
	return l.service.Get(ctx, l.caller, ref)
}

func (l *local) List(ctx context.Context, filter ledger.ActionFilter) (api.Page, error) {
	return l.service.List(ctx, l.caller, filter)
}

func (l *local) Summary(ctx context.Context, filter ledger.ActionFilter) (api.Counts, error) {
	return l.service.Summary(ctx, l.caller, filter)
}

func (l *local) Push(ctx context.Context, body []byte) (api.Pushed, error) {
	return l.service.Push(ctx, l.caller, body)
}

func (l *local) Contracts(ctx context.Context, id string) (api.ContractList, error) {
	if id == "" {
		return l.service.ListContracts(ctx, l.caller)
	}
	return l.service.Contract(ctx, l.caller, id)
}

func (l *local) Sources(ctx context.Context) (api.SourceList, error) {
	return l.service.Sources(ctx, l.caller)
}

func (l *local) Orphans(ctx context.Context, query api.OrphanQuery) (api.OrphanList, error) {
	return l.service.Orphans(ctx, l.caller, query)
}

func (l *local) Rejected(ctx context.Context, query api.RejectedQuery) (api.RejectedList, error) {
	return l.service.Rejected(ctx, l.caller, query)
}

func (l *local) DeadLetters(ctx context.Context, filter ledger.DeadLetterFilter) (api.DeadLetterList, error) {
	return l.service.DeadLetters(ctx, l.caller, filter)
}

func (l *local) KeyEvents(ctx context.Context, filter ledger.KeyEventFilter) (api.KeyEventList, error) {
	return l.service.KeyEvents(ctx, l.caller, filter)
}

func (l *local) Replay(ctx context.Context, id string) (api.Replayed, error) {
	return l.service.Replay(ctx, l.caller, id)
}

// Wait settles what is due itself meanwhile, because no sidecar need be
// running on this store. Leases keep it apart from one that is.
func (l *local) Wait(ctx context.Context, ref string, timeout time.Duration) (api.Waited, error) {
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	var settling, watching error
	background.Go(func() { settling = l.verifier.Run(ctx) })
	background.Go(func() { watching = l.hub.Run(ctx) })
	waited, err := l.service.Wait(ctx, l.caller, ref, timeout)
	cancel()
	background.Wait()
	return waited, errors.Join(err, unlessEnded(settling), unlessEnded(watching))
}

// unlessEnded leaves out that somebody was told to stop, which is no news.
func unlessEnded(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
