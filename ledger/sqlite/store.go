package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/countersign-otel/countersign/engine/sqleval"
	"github.com/countersign-otel/countersign/ledger"
)

const (
	// readers is how many views run side by side.
	readers = 4
	// compiledContracts is how many contract versions keep their compiled statement.
	compiledContracts = 256
	// defaultBusyTimeout is how long one attempt waits for a lock that another process holds.
	defaultBusyTimeout = 5 * time.Second
)

// Store is a ledger in a SQLite file. It is safe for concurrent use.
type Store struct {
	// path is what errors name; "memory" for a store without a file.
	path     string
	dsn      string
	database *sql.DB
	writer   *pool
	readers  *pool
	// anchor keeps a store in memory alive while no other connection is open; nil for a file.
	anchor *connection
	// queue lines this process up with other writers of the file; nil for none.
	queue *queue
	// file is what was opened; nil in memory, and before it is known.
	file     os.FileInfo
	compiled *lru.Cache[string, *sqleval.Statement]
	wakes    *wakes
	settings
}

var _ ledger.Ledger = (*Store)(nil)

// Option changes how Open sets up the store.
type Option func(*settings)

type settings struct {
	// busyTimeout is how long one attempt to begin waits, retries how many more are made.
	busyTimeout time.Duration
	retries     int
}

// WithBusyTimeout is how long one attempt waits for another process to finish
// writing, and how many more attempts are made.
func WithBusyTimeout(timeout time.Duration, retries int) Option {
	return func(s *settings) { s.busyTimeout, s.retries = timeout, retries }
}

// Open opens the store in the file at path, which is made when it is not there;
// its folder must be. It does not migrate. It fails with ledger.ErrReadOnly
// where nothing can be written, and with ledger.ErrUnavailable where another
// process keeps the file locked; every error names the path and the remedy.
func Open(ctx context.Context, path string, options ...Option) (ledger.Ledger, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("%w: path %q of the SQLite file: %w", ledger.ErrUnavailable, path, err)
	}
	if err := checkPath(absolute); err != nil {
		return nil, err
	}
	location := url.URL{Scheme: "file", Path: filepath.ToSlash(absolute)}
	return open(ctx, absolute, location.String(), options)
}

// OpenMemory opens an empty store of its own in memory, gone with Close.
func OpenMemory(ctx context.Context, options ...Option) (ledger.Ledger, error) {
	return open(ctx, memoryPath, "file:/"+rand.Text()+"?vfs=memdb", options)
}

// memoryPath stands for the path of a store in memory.
const memoryPath = "memory"

func open(ctx context.Context, path, location string, options []Option) (ledger.Ledger, error) {
	set := settings{busyTimeout: defaultBusyTimeout, retries: maxRetries}
	for _, option := range options {
		option(&set)
	}
	compiled, err := lru.New[string, *sqleval.Statement](compiledContracts)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, dsn: dsn(location, set.busyTimeout), compiled: compiled, settings: set}
	if s.database, err = sql.Open("sqlite", s.dsn); err != nil {
		return nil, s.fail("open", err)
	}
	s.database.SetMaxIdleConns(0) // what is idle is idle in the pools below
	s.writer = newPool(1, func(ctx context.Context) (*connection, error) { return s.connect(ctx, s.forWriting()...) })
	s.readers = newPool(readers, func(ctx context.Context) (*connection, error) { return s.connect(ctx, "PRAGMA query_only = 1") })
	s.wakes = newWakes(s)
	if path == memoryPath {
		if s.anchor, err = s.connect(ctx); err != nil {
			return nil, errors.Join(s.fail("open", err), s.Close())
		}
	} else if s.queue, err = openQueue(path); err != nil {
		s.queue = nil // whether the folder can be written is found out next; the queue only makes for order
	}
	if err := s.probe(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if path != memoryPath {
		if s.file, err = os.Stat(path); err != nil {
			return nil, errors.Join(s.fail("open", err), s.Close())
		}
	}
	return s, nil
}

// dsn adds what every connection needs. Order matters to SQLite: the driver
// sets busy_timeout first, the rest by name.
func dsn(location string, busy time.Duration) string {
	separator := "?"
	if u, err := url.Parse(location); err == nil && u.RawQuery != "" {
		separator = "&"
	}
	pragmas := url.Values{"_pragma": {
		"busy_timeout(" + strconv.FormatInt(busy.Milliseconds(), 10) + ")",
		"cache_size(-32768)", // 32 MiB a connection, at most
		"foreign_keys(1)",
		"journal_size_limit(67108864)", // what a burst leaves behind on the disk
		"journal_mode(WAL)",            // a store in memory stays without
		"synchronous(FULL)",
		"temp_store(MEMORY)",
		// Larger than the default of 1000 pages: a page that many batches touch is copied back once.
		"wal_autocheckpoint(4000)",
	}}
	return location + separator + pragmas.Encode()
}

// forWriting is what the writer needs besides: to be told at once that a file
// is busy, because it waits in the queue. In memory, a commit waits for readers.
func (s *Store) forWriting() []string {
	if s.path == memoryPath {
		return nil
	}
	return []string{"PRAGMA busy_timeout = 0"}
}

// probe begins to write and takes it back, so that a file that cannot be written shows now.
func (s *Store) probe(ctx context.Context) error {
	return s.again(ctx, func() error {
		return s.writer.with(ctx, s.path, func(c *connection) error {
			if err := s.beginWriting(ctx, c); err != nil {
				return s.fail("open", err)
			}
			err := c.control(ctx, "PRAGMA user_version = 0") // which nothing uses
			return errors.Join(s.fail("open", err), c.rollback(context.WithoutCancel(ctx)))
		})
	})
}

// errGone: the path names another file than the one that is open, or none.
var errGone = errors.New("it is not the file that was opened")

// inPlace fails when the file was removed or replaced since it was opened. The
// open one goes on working, and everything that is written there is lost with
// the process.
func (s *Store) inPlace() error {
	if s.file == nil {
		return nil
	}
	now, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(s.file, now) {
		return errGone
	}
	return nil // what else may be wrong, SQLite finds
}

// Capabilities implements ledger.Ledger.
func (s *Store) Capabilities() ledger.Capabilities {
	return ledger.Capabilities{Dialect: "sqlite", ViewsBlockWriters: s.path == memoryPath}
}

// Close implements ledger.Ledger. It waits for transactions that are under way.
func (s *Store) Close() error {
	s.wakes.close()
	err := errors.Join(s.readers.close(), s.writer.close())
	if s.anchor != nil {
		err = errors.Join(err, s.anchor.close())
	}
	return s.fail("close", errors.Join(err, s.database.Close(), s.queue.close()))
}
