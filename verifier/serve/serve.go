package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
	"github.com/countersign-otel/countersign/verifier/api"
	"github.com/countersign-otel/countersign/verifier/emit"
	"github.com/countersign-otel/countersign/verifier/feed"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/settle"
	"github.com/countersign-otel/countersign/verifier/telemetry"
	"github.com/countersign-otel/countersign/verifier/web"
	"github.com/countersign-otel/countersign/verifier/webhook"
)

// Options of Run that are no settings.
type Options struct {
	// Version is that of the program.
	Version string
	// Logger may be nil.
	Logger *slog.Logger
	// Now is the clock; nil is the machine's.
	Now func() engine.Instant
	// Ready is called once the API answers, with its URL; may be nil.
	Ready func(url string)

	// headerTimeout and bodyTimeout are how long a client may take to send; zero takes the defaults.
	headerTimeout, bodyTimeout time.Duration
	// metricsReady is called with the URL of /metrics, if it has a listener of its own; may be nil.
	metricsReady func(url string)
	// derive is the second evaluator; nil is the true one. Fault tests replace it.
	derive func(*contract.Contract, *engine.Snapshot) []engine.Evaluation
}

// Run serves until ctx ends, and then ends what it holds: requests first, then
// the settle loop, then what sends, so that the last verdicts are still sent.
func Run(ctx context.Context, c Config, o Options) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = func() engine.Instant { return engine.Instant(time.Now().Unix()) }
	}
	store, err := openStore(ctx, c)
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, c, o, store), store.Close())
}

// openStore opens and migrates. Its errors name the store, without its password.
func openStore(ctx context.Context, c Config) (ledger.Ledger, error) {
	store, err := open.Ledger(ctx, c.Store)
	if err != nil {
		return nil, fmt.Errorf("the store %s cannot be opened: %w", redact(c.Store), err)
	}
	if c.Migrate {
		err = store.Migrate(ctx)
	} else {
		err = store.CheckSchema(ctx)
	}
	if err == nil {
		return store, nil
	}
	if errors.Is(err, ledger.ErrNotMigrated) {
		err = fmt.Errorf("%w; run countersign migrate, or set migrate: true", err)
	}
	return nil, errors.Join(fmt.Errorf("the store %s cannot be used: %w", redact(c.Store), err), store.Close())
}

// redact leaves a password out of a store's URL.
func redact(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(its address cannot be read)"
	}
	return u.Redacted()
}

// sidecar is the parts of a running one.
type sidecar struct {
	Config
	Options
	store     ledger.Ledger
	registry  *prometheus.Registry
	verifier  *settle.Verifier
	hub       *api.Hub
	feed      *feed.Feed
	uses      *api.Uses
	page      *web.Page
	emitter   *emit.Emitter
	webhooks  *webhook.Sender
	backlog   *backlog
	orphans   *orphans
	telemetry *telemetry.Exporter
	server    *http.Server
	metrics   *metricsServer
}

func run(ctx context.Context, c Config, o Options, store ledger.Ledger) error {
	published, err := publish(ctx, store, c.Contracts, o.Now())
	if err != nil {
		return err
	}
	if err := refuseOpenDoor(ctx, store, c.Listen, o.Now()); err != nil {
		return err
	}
	listener, err := listen(ctx, "listen", c.Listen)
	if err != nil {
		return err
	}
	s := &sidecar{Config: c, Options: o, store: store}
	if err := s.wire(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	if s.metrics, err = s.listenForMetrics(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	base, err := s.announce(listener)
	if err != nil {
		return errors.Join(err, listener.Close(), s.metrics.close())
	}
	s.Logger.Info("serving", "url", base, "store", redact(c.Store), "contracts_published", published, "emit", c.Emit.Endpoint, "version", o.Version)
	return s.serve(ctx, listener, base)
}

// refuseOpenDoor refuses to listen beyond this machine while nobody could have a key.
func refuseOpenDoor(ctx context.Context, store ledger.Ledger, listen string, now engine.Instant) error {
	if loopback(listen) {
		return nil
	}
	found := false
	err := store.View(ctx, func(tx ledger.Tx) (err error) {
		found, err = tx.AnyKey(ctx, keys.Roles(), now)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: listen is %s, which others can reach, and the store has no key that is good; make one first with countersign keys create, or listen on localhost", ErrConfig, listen)
	}
	return err
}

func listen(ctx context.Context, setting, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	flag := Setting{Key: setting}.Flag()
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: %s is in use by another program; end it, or choose another address with --%s (port 0 takes a free one)", setting, address, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s: this user may not listen on %s; choose a port above 1023 with --%s", setting, address, flag)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return listener, nil
}

// wire makes the parts.
func (s *sidecar) wire(ctx context.Context) error {
	s.registry = prometheus.NewRegistry()
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	counted := newMetrics(s.registry, s.Version)
	contracts := ledger.NewContractCache(0)
	owner := ownerName()
	s.backlog = newBacklog(s.registry, s.store, s.Now, s.Logger)
	s.orphans = newOrphans(s.registry, s.store, s.Now, s.Logger)
	s.hub = api.NewHub(s.store, s.Settlement.PollInterval, s.Logger)
	s.feed = feed.New(s.store, s.Settlement.PollInterval, s.Logger)
	s.uses = api.NewUses(s.store, s.Now, s.Logger)
	guard, err := keys.NewGuard(s.Limits.Limits, nil)
	if err != nil {
		return fmt.Errorf("%w: limits: %w", ErrConfig, err)
	}
	page, err := web.New(web.Config{
		Ledger: s.store, Contracts: contracts, Feed: s.feed, Now: s.Now, TraceURL: s.Page.TraceURL, PublicURL: s.Emit.PublicURL, Store: redact(s.Store),
		Secure: s.TLS != nil, Guard: guard, Note: s.uses.Note, Logger: s.Logger,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	s.page = page
	s.verifier = settle.New(settle.Config{
		Ledger: s.store, Contracts: contracts, Owner: owner, Now: s.Now, Logger: s.Logger,
		Settings: report.Settings{
			RecheckInterval: engine.Duration(s.Settlement.RecheckInterval / time.Second),
			MaxLag:          engine.Duration(s.Settlement.MaxLag / time.Second),
		},
		BatchSize: s.Settlement.BatchSize, Workers: s.Settlement.Workers, PollInterval: s.Settlement.PollInterval,
		LeaseFor: engine.Duration(s.Settlement.LeaseFor / time.Second), Derive: s.derive,
		OnStored: func(tenant string, runs []ledger.Run) {
			s.hub.Stored(tenant, runs)
			s.feed.Nudge()
		},
		Observe: counted.observe,
		OnParked: func(_ string, parked []ledger.Parked) {
			s.feed.Nudge()
			counted.park(parked)
		},
	})
	s.emitter, err = emit.New(ctx, s.Emit, emit.Options{
		Ledger: s.store, Contracts: contracts, Owner: owner, Now: s.Now, Version: s.Version,
		Registry: s.registry, Logger: s.Logger, PollInterval: s.Settlement.PollInterval,
	})
	if err != nil {
		return err
	}
	s.telemetry, err = telemetry.New(ctx, s.Telemetry, telemetry.Options{Gatherer: s.registry, Version: s.Version, Instance: owner, Logger: s.Logger})
	if err != nil {
		return err
	}
	s.webhooks, err = webhook.New(s.Webhooks, webhook.Options{
		Ledger: s.store, Owner: owner, Now: s.Now, Version: s.Version,
		Registry: s.registry, Logger: s.Logger, PollInterval: s.Settlement.PollInterval,
	})
	if err != nil {
		return err
	}
	service := api.NewService(api.Config{
		Ledger: s.store, Verifier: s.verifier, Contracts: contracts, Now: s.Now, Hub: s.hub, Feed: s.feed, Logger: s.Logger, OnPushed: s.refused,
	})
	return s.wireServer(ctx, s.page.Handler(api.Handler(service, api.Options{
		Version: s.Version, Registry: s.registry, HideMetrics: !s.metricsWithAPI(), Guard: guard, Note: s.uses.Note, RequestTimeout: s.RequestTimeout, BodyTimeout: s.bodyTimeout,
	})))
}

// refused tells the page of facts that a push could not get in.
func (s *sidecar) refused(caller api.Caller, pushed api.Pushed) {
	if len(pushed.Rejected) == 0 && pushed.Conflicting == 0 {
		return
	}
	refusal := web.Refusal{At: s.Now(), Key: caller.Prefix, Rejected: len(pushed.Rejected), Conflicting: pushed.Conflicting}
	for _, r := range pushed.Rejected {
		refusal.Add(r.Pointer, r.Error)
	}
	s.page.Refused(caller.Tenant, refusal)
}

func (s *sidecar) wireServer(ctx context.Context, handler http.Handler) error {
	s.server = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: cmp.Or(s.headerTimeout, 10*time.Second),
		ReadTimeout:       time.Minute,
		WriteTimeout:      s.RequestTimeout + time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
	}
	if s.TLS == nil {
		if !loopback(s.Listen) {
			s.Logger.Warn("keys travel in the clear: listening beyond this machine without TLS", "listen", s.Listen)
		}
		return nil
	}
	settings, err := s.TLS.LoadTLSConfig(ctx)
	if err != nil {
		return fmt.Errorf("%w: tls: %w", ErrConfig, err)
	}
	s.server.TLSConfig = settings
	return nil
}

// ownerName differs between processes, also of one host.
func ownerName() string {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + ":" + strconv.Itoa(os.Getpid()) + ":" + hex.EncodeToString(random)
}

// announce writes the address file, in one step so that nobody reads half of it.
func (s *sidecar) announce(listener net.Listener) (string, error) {
	base := "http://" + listener.Addr().String()
	if s.TLS != nil {
		base = "https://" + listener.Addr().String()
	}
	if s.AddressFile == "" {
		return base, nil
	}
	temporary, err := os.CreateTemp(filepath.Dir(s.AddressFile), ".address-*")
	if err != nil {
		return "", fmt.Errorf("address_file: %w", err)
	}
	_, err = temporary.WriteString(base + "\n")
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), s.AddressFile)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("address_file: %w", err), os.Remove(temporary.Name()))
	}
	return base, nil
}

// serve runs the parts until ctx ends or one of them fails, and ends them in order.
func (s *sidecar) serve(ctx context.Context, listener net.Listener, base string) error {
	failed := make(chan error, 11)
	hub := start(ctx, failed, s.hub.Run)
	listening := start(ctx, failed, s.feed.Run)
	uses := start(ctx, failed, s.uses.Run)
	settling := start(ctx, failed, s.verifier.Run)
	emitting := start(ctx, failed, s.emitter.Run)
	telling := start(ctx, failed, s.webhooks.Run)
	counting := start(ctx, failed, s.backlog.run)
	explaining := start(ctx, failed, s.orphans.run)
	exporting := start(ctx, failed, s.telemetry.Run)
	showing := start(ctx, failed, s.metrics.run)
	serving := start(ctx, failed, func(context.Context) error { return s.accept(listener) })
	if s.Ready != nil {
		s.Ready(base)
	}
	var cause error
	select {
	case <-ctx.Done():
		s.Logger.Info("ending", "cause", context.Cause(ctx))
	case cause = <-failed:
		s.Logger.Error("ending because a part failed", "error", cause)
	}
	hub.end() // lets those who wait go
	listening.end()
	defer s.page.Close()
	cause = errors.Join(cause, s.shutdown())
	serving.end()
	uses.end()
	settling.end()
	emitting.end()
	telling.end()
	counting.end()
	explaining.end()
	showing.end()
	exporting.end() // last, so that it tells of all that came before
	close(failed)
	for err := range failed {
		cause = errors.Join(cause, err)
	}
	return cause
}

func (s *sidecar) accept(listener net.Listener) error {
	listener = hold(s.server, listener, s.Limits.Connections)
	var err error
	if s.TLS != nil {
		err = s.server.ServeTLS(listener, "", "")
	} else {
		err = s.server.Serve(listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("listen: %w", err)
}

func (s *sidecar) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.ShutdownTimeout)
	defer cancel()
	err := errors.Join(s.server.Shutdown(ctx), s.hub.Drain(ctx))
	if errors.Is(err, context.DeadlineExceeded) {
		s.Logger.Warn("requests were cut off at shutdown", "after", s.ShutdownTimeout)
		return s.server.Close()
	}
	return err
}

// part is a running part of the sidecar.
type part struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// start runs a part until it is ended: not when ctx ends, because the parts end in order.
func start(ctx context.Context, failed chan<- error, run func(context.Context) error) *part {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &part{cancel: cancel}
	p.done.Go(func() {
		err := run(ctx)
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return // it was ended before it had begun
		}
		if err != nil {
			failed <- err
		}
	})
	return p
}

func (p *part) end() {
	p.cancel()
	p.done.Wait()
}

func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, limit))
}
