package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/ledger"
)

// longestReconnect bounds the pause between two attempts to listen again.
const longestReconnect = 5 * time.Second

var listen = named("Listen")

// listener is the one connection that listens, on behalf of all callers of
// Wake. It starts with the first of them and reconnects until it is closed.
type listener struct {
	config *pgx.ConnConfig
	ctx    context.Context
	cancel context.CancelFunc
	loop   sync.WaitGroup

	starting  sync.Mutex // held while the first connection is made
	listening bool

	mu       sync.Mutex
	sleepers map[chan struct{}]struct{}
}

func newListener(config *pgx.ConnConfig) *listener {
	l := &listener{config: config.Copy(), sleepers: map[chan struct{}]struct{}{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Wake implements ledger.Ledger.
func (s *Store) Wake(ctx context.Context) (<-chan struct{}, error) { return s.listener.wake(ctx) }

func (l *listener) wake(ctx context.Context) (<-chan struct{}, error) {
	if err := l.start(ctx); err != nil {
		return nil, err
	}
	signal := make(chan struct{}, 1)
	l.mu.Lock()
	l.sleepers[signal] = struct{}{}
	l.mu.Unlock()
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		delete(l.sleepers, signal)
		l.mu.Unlock()
		close(signal)
	})
	return signal, nil
}

// start listens before it returns, so that nothing that happens afterwards is missed.
func (l *listener) start(ctx context.Context) error {
	l.starting.Lock()
	defer l.starting.Unlock()
	if l.ctx.Err() != nil {
		return fmt.Errorf("%w: the store is closed", ledger.ErrUnavailable)
	}
	if l.listening {
		return nil
	}
	conn, err := l.connect(ctx)
	if err != nil {
		return err
	}
	l.listening = true
	l.loop.Go(func() { l.run(conn) })
	return nil
}

func (l *listener) connect(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, l.config)
	if err != nil {
		return nil, fail(listen.Name, err)
	}
	if _, err := conn.Exec(ctx, listen.Text); err != nil {
		_ = conn.Close(ctx)
		return nil, fail(listen.Name, err)
	}
	return conn, nil
}

func (l *listener) run(conn *pgx.Conn) {
	for conn != nil {
		if _, err := conn.WaitForNotification(l.ctx); err != nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			_ = conn.Close(ctx)
			cancel()
			conn = l.reconnect()
		}
		// After a reconnect too: something may have been missed.
		l.signal()
	}
}

// reconnect returns nil when the listener was closed.
func (l *listener) reconnect() *pgx.Conn {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, longestReconnect) {
		if rest(l.ctx, pause/2+rand.N(pause)) != nil {
			return nil
		}
		if conn, err := l.connect(l.ctx); err == nil {
			return conn
		}
	}
}

func (l *listener) signal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for sleeper := range l.sleepers {
		select {
		case sleeper <- struct{}{}:
		default: // told already and not looked yet
		}
	}
}

func (l *listener) close() {
	l.cancel()
	l.starting.Lock()
	defer l.starting.Unlock()
	l.loop.Wait()
}
