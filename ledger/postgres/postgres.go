package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-otel/countersign/engine/sqleval"
	"github.com/countersign-otel/countersign/ledger"
)

// compiledContracts is how many contract versions keep their compiled statement.
const compiledContracts = 256

// Store is a ledger on PostgreSQL. It is safe for concurrent use.
type Store struct {
	pool     *pgxpool.Pool
	listener *listener
	compiled *lru.Cache[string, *sqleval.Statement]
	retries  int
	// patience bounds the wait for evidence that is under way.
	patience time.Duration
	// lookFirst is how many batches of facts are still to be looked up before they are written.
	lookFirst atomic.Int64
}

var _ ledger.Ledger = (*Store)(nil)

// Option changes how Open sets up the store.
type Option func(*pgxpool.Config)

// WithMaxConnections bounds the connection pool; the default is that of the
// URL's pool_max_conns, else the larger of 4 and the number of processors. Wake
// takes one connection more, outside the pool.
func WithMaxConnections(n int) Option {
	return func(c *pgxpool.Config) { c.MaxConns = int32(n) }
}

// WithApplicationName is what pg_stat_activity shows; the default is "countersign".
func WithApplicationName(name string) Option {
	return func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = name }
}

// sessionSettings are those of every connection of the pool, unless the URL says otherwise.
var sessionSettings = map[string]string{
	"application_name": "countersign", "jit": "off", "lock_timeout": "10s",
	// A plan that is kept from when a table was nearly empty must not read all of it later.
	"enable_seqscan": "off",
	// A program that froze in the middle of a transaction holds up verifiers no longer than this.
	"idle_in_transaction_session_timeout": "60s",
}

// Open sets up a store at a postgres:// URL, or a libpq key=value string with
// the same settings. It does not connect: a server that is down shows as
// ledger.ErrUnavailable from the first call, and is reconnected to when it is
// back. CheckSchema tells whether the store can be used.
func Open(ctx context.Context, url string, options ...Option) (ledger.Ledger, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("store URL: %w", err) // the text has the password removed
	}
	settings := config.ConnConfig.RuntimeParams
	for name, value := range sessionSettings {
		if _, set := settings[name]; !set {
			settings[name] = value
		}
	}
	for _, option := range options {
		option(config)
	}
	if config.MaxConns < 1 {
		return nil, fmt.Errorf("store: %d connections are too few; allow at least 1", config.MaxConns)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fail("connection pool", err)
	}
	compiled, err := lru.New[string, *sqleval.Statement](compiledContracts)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &Store{
		pool:     pool,
		listener: newListener(config.ConnConfig),
		compiled: compiled,
		retries:  maxRetries,
		patience: evidencePatience,
	}, nil
}

// Capabilities implements ledger.Ledger.
func (s *Store) Capabilities() ledger.Capabilities {
	return ledger.Capabilities{Notifies: true, Dialect: "postgres"}
}

// Close implements ledger.Ledger. It waits for transactions that are under way.
func (s *Store) Close() error {
	s.listener.close()
	s.pool.Close()
	return nil
}

// connectionConfig is a copy for a connection outside the pool.
func (s *Store) connectionConfig() *pgx.ConnConfig { return s.pool.Config().ConnConfig.Copy() }
