// Package pgserver runs a throwaway PostgreSQL for tests: the real server, on a free port of
// localhost and on a Unix socket, in a temporary folder that is removed with it, also when the
// test binary is killed.
//
// A test binary shares one server, because starting one costs about a second:
//
//	func TestMain(m *testing.M) { pgserver.Main(m) }
//
//	func TestStore(t *testing.T) {
//		url := pgserver.Shared(t).Database(t)
//		...
//	}
//
// A test that breaks the server (stops it, or restarts it) starts its own with [Start].
//
// Where there is no PostgreSQL, tests fail with a word on what to install; they are never skipped.
// The default collation of every database here is a linguistic one (ICU, en-US), so that a
// comparison that was meant to be by bytes and does not say COLLATE "C" gives itself away.
//
// Limits: Unix only; a server is used by one machine's tests, not shared over a network.
package pgserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	superuser     = "postgres"
	startTimeout  = time.Minute
	stopTimeout   = 30 * time.Second
	maxSocketPath = 100 // the kernel's limit is 107 on Linux, 103 on macOS
)

// Server is one running PostgreSQL cluster. Its methods are safe for concurrent use, but a test
// that calls Stop, Crash or Restart must be the server's only user.
type Server struct {
	bin        string // folder of initdb and postgres
	dir        string // everything of this server, removed at the end
	port       int
	password   string
	credential *syscall.Credential // nil unless we are root
	fsync      bool
	settings   []string
	watchdog   *watchdog

	mu         sync.Mutex // guards what follows
	postmaster *process   // nil while the server is down
	templates  map[string]*template
	databases  int
}

// Option changes how a server is started.
type Option func(*Server)

// WithFsync keeps the durability settings of production (fsync, full_page_writes). The default
// is without them: what a crash of the machine would lose does not matter to most tests, a crash of
// the server loses nothing either way.
func WithFsync() Option { return func(s *Server) { s.fsync = true } }

// WithSetting sets a parameter of the server, like "track_commit_timestamp=on".
func WithSetting(setting string) Option {
	return func(s *Server) { s.settings = append(s.settings, setting) }
}

// Start starts a server that ends with the test.
func Start(tb testing.TB, options ...Option) *Server {
	tb.Helper()
	s, err := start(options...)
	if err != nil {
		tb.Fatalf("pgserver: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.close(); err != nil {
			tb.Errorf("pgserver: %v", err)
		}
	})
	return s
}

var shared struct {
	sync.Mutex
	server *Server
	err    error
	main   bool
}

// Main is the body of a TestMain whose tests use [Shared]. It runs the tests, ends the shared
// server if a test started it, and exits.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is [Main] without the exit, for a TestMain that has more to do at the end, such as looking
// for leaked goroutines. It returns the exit code.
func Run(m *testing.M) int {
	shared.Lock()
	shared.main = true
	shared.Unlock()

	code := m.Run()

	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		return code
	}
	if err := shared.server.close(); err != nil {
		fmt.Fprintf(os.Stderr, "pgserver: %v\n", err)
		return max(code, 1)
	}
	return code
}

// Shared returns the server of this test binary, and starts it when it is first asked for, so that
// a run of tests that need no database does not wait for one. The package's TestMain must call
// [Main] or [Run].
func Shared(tb testing.TB) *Server {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.main {
		tb.Fatal("pgserver: Shared needs `func TestMain(m *testing.M) { pgserver.Main(m) }` in this package, which ends the server")
	}
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = start()
	}
	if shared.err != nil {
		tb.Fatalf("pgserver: %v", shared.err)
	}
	return shared.server
}

// URL returns the address of the maintenance database, as the superuser, over TCP.
func (s *Server) URL() string { return s.DatabaseURL("postgres") }

// DatabaseURL returns the address of the named database, as the superuser, over TCP.
func (s *Server) DatabaseURL(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.password),
		Host:     s.Address(),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Address returns host:port of the TCP listener, for a proxy between a test and its server.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// SocketDir returns the folder of the Unix socket, which PostgreSQL clients take as a host name.
func (s *Server) SocketDir() string { return s.dir }

// Log returns what the server has logged so far.
func (s *Server) Log() string {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Stop ends the server as an administrator would (fast shutdown: open transactions are rolled
// back, data are flushed). It does nothing to a server that is down.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	if err := s.signal(syscall.SIGINT); err != nil {
		tb.Fatalf("pgserver: stop: %v", err)
	}
}

// Crash ends the server at once, as if its processes had died (immediate shutdown): connections
// break, and the next start recovers from the write-ahead log. It does nothing to a server that
// is down.
func (s *Server) Crash(tb testing.TB) {
	tb.Helper()
	if err := s.signal(syscall.SIGQUIT); err != nil {
		tb.Fatalf("pgserver: crash: %v", err)
	}
}

// Resume starts a stopped or crashed server again, on the same port and with the same data.
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.postmaster != nil {
		return
	}
	if err := s.launch(); err != nil {
		tb.Fatalf("pgserver: resume: %v", err)
	}
}

// Restart crashes the server and starts it again; when it returns, the server takes connections.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.Crash(tb)
	s.Resume(tb)
}

func start(options ...Option) (*Server, error) {
	bin, err := findBinaries()
	if err != nil {
		return nil, err
	}
	credential, err := unprivileged()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, credential: credential, password: randomHex(), templates: map[string]*template{}}
	for _, option := range options {
		option(s)
	}
	if s.dir, err = makeFolder(credential); err != nil {
		return nil, err
	}
	// From here on the watchdog removes the folder, whatever becomes of this process.
	if s.watchdog, err = startWatchdog(s.dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.initialize(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *Server) initialize() error {
	if err := s.initdb(); err != nil {
		return err
	}
	// The port is free when we look and may be taken when the server binds: try again with another.
	var err error
	for range 5 {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.launch(); err == nil {
			return nil
		}
	}
	return err
}

func (s *Server) initdb() error {
	passwordFile := filepath.Join(s.dir, "password")
	if err := s.writeFile(passwordFile, s.password); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"),
		"--pgdata", s.data(), "--username", superuser, "--pwfile", passwordFile, "--auth", "scram-sha-256",
		"--encoding", "UTF8", "--locale", "C", "--locale-provider", "icu", "--icu-locale", "en-US",
		"--no-sync", "--no-instructions")
	cmd.Dir = s.dir
	cmd.SysProcAttr = s.processAttributes()
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w\n%s", s.dir, err, bytes.TrimSpace(output))
	}
	return nil
}

// launch starts the postmaster and waits until it answers. The caller holds the lock or is alone.
func (s *Server) launch() error {
	settings := []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(s.port), "unix_socket_directories=" + s.dir,
		"max_connections=200", "shared_buffers=64MB", "timezone=UTC", "log_line_prefix=%m [%p] %d ",
	}
	settings = append(settings, s.settings...)
	if !s.fsync {
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	args := []string{"-D", s.data()}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	postmaster, err := startProcess(filepath.Join(s.bin, "postgres"), args, s.dir, s.logFile(), s.processAttributes())
	if err != nil {
		return err
	}
	if err := s.waitReady(postmaster); err != nil {
		return fmt.Errorf("%w\n%s", err, s.Log())
	}
	s.postmaster = postmaster
	return nil
}

func (s *Server) waitReady(postmaster *process) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-postmaster.done:
			return fmt.Errorf("postgres in %s ended before it took connections: %w", s.dir, postmaster.err)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("postgres in %s takes no connection after %s: %w", s.dir, startTimeout, err), postmaster.end(syscall.SIGQUIT))
		case <-ticker.C:
		}
	}
}

func (s *Server) signal(signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.postmaster == nil {
		return nil
	}
	err := s.postmaster.end(signal)
	s.postmaster = nil
	return err
}

func (s *Server) close() error {
	return errors.Join(s.signal(syscall.SIGQUIT), s.watchdog.finish())
}

func (s *Server) data() string    { return filepath.Join(s.dir, "data") }
func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

func (s *Server) processAttributes() *syscall.SysProcAttr {
	// A process group of its own: an interrupt typed at a terminal is for the test binary, whose end
	// the watchdog then sees.
	return &syscall.SysProcAttr{Credential: s.credential, Setpgid: true}
}

func (s *Server) writeFile(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	if s.credential == nil {
		return nil
	}
	return os.Chown(path, int(s.credential.Uid), int(s.credential.Gid))
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func randomHex() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails, says its documentation
	return hex.EncodeToString(b[:])
}
