package verifiedactionsreceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/history"
)

// server is the receiver.
type server struct {
	config   *Config
	settings receiver.Settings
	next     consumer.Traces

	keys     map[string]*credential
	tokens   []token
	metadata verifiedactions.Keys

	obsreport *receiverhelper.ObsReport
	counters  *counters
	now       func() time.Time
	// slots bounds the requests that are served at a time.
	slots chan struct{}
	// refused are the receipts that were refused for good.
	refused *lru.Cache[[32]byte, struct{}]

	history  *history.History
	http     *http.Server
	listener net.Listener
	serving  sync.WaitGroup
	stop     sync.Once
}

// refusedReceipts bounds how many refused receipts are remembered, as hashes.
const refusedReceipts = 4096

func newServer(set receiver.Settings, config *Config, next consumer.Traces) (*server, error) {
	keys, errs := config.AEVS.parseKeys()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	transport := "http"
	if config.ServerConfig.TLS.HasValue() {
		transport = "https"
	}
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: transport, ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	counters, err := newCounters(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	refused, err := lru.New[[32]byte, struct{}](refusedReceipts)
	if err != nil {
		return nil, err
	}
	return &server{
		config: config, settings: set, next: next,
		keys:      keys,
		tokens:    newTokens(config.VerifiedActions.Tokens),
		metadata:  verifiedactions.Keys{Version: config.VerifiedActions.VersionKey, Payload: config.VerifiedActions.PayloadKey},
		obsreport: report, counters: counters, now: time.Now,
		slots:   make(chan struct{}, config.MaxConcurrentRequests),
		refused: refused,
	}, nil
}

// Start opens what is remembered, and listens.
func (s *server) Start(ctx context.Context, host component.Host) error {
	client, persistent, err := s.openStorage(ctx, host)
	if err != nil {
		return err
	}
	s.history = history.New(client, s.config.AEVS.MaxReceipts, persistent)
	server, err := s.config.ServerConfig.ToServer(ctx, host.GetExtensions(), s.settings.TelemetrySettings,
		s.routes(), confighttp.WithErrorHandler(s.refuseBeforeRoute))
	if err != nil {
		return err
	}
	s.listener, err = s.config.ServerConfig.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	s.http = server
	s.serving.Go(func() {
		if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

// openStorage returns the storage extension's client, or memory.
func (s *server) openStorage(ctx context.Context, host component.Host) (client storage.Client, persistent bool, err error) {
	if s.config.Storage == nil {
		return history.NewMemory(), false, nil
	}
	found, ok := host.GetExtensions()[*s.config.Storage]
	if !ok {
		return nil, false, fmt.Errorf("storage: there is no extension %s; define it and list it under service::extensions", s.config.Storage)
	}
	extension, ok := found.(storage.Extension)
	if !ok {
		return nil, false, fmt.Errorf("storage: the extension %s stores nothing; name one like file_storage", s.config.Storage)
	}
	client, err = extension.GetClient(ctx, component.KindReceiver, s.settings.ID, "")
	if err != nil {
		return nil, false, fmt.Errorf("storage: %w", err)
	}
	return client, true, nil
}

// Shutdown lets what is being served end, as long as ctx allows.
func (s *server) Shutdown(ctx context.Context) error {
	var err error
	s.stop.Do(func() { err = s.shutdown(ctx) })
	return err
}

func (s *server) shutdown(ctx context.Context) error {
	var errs []error
	if s.http != nil {
		if err := s.http.Shutdown(ctx); err != nil {
			errs = append(errs, err, s.http.Close())
		}
		s.serving.Wait()
	}
	if s.history != nil {
		errs = append(errs, s.history.Close(context.WithoutCancel(ctx)))
	}
	s.counters.shutdown()
	return errors.Join(errs...)
}
