package evidencereceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/countersign-otel/countersign/internal/record/delivery"
)

// server is the receiver.
type server struct {
	config    *Config
	settings  receiver.Settings
	next      consumer.Logs
	endpoints []*endpoint
	sealer    *delivery.Sealer
	obsreport *receiverhelper.ObsReport
	counters  *counters
	warnings  *warnings
	now       func() time.Time
	// slots bounds the deliveries that are served at a time.
	slots chan struct{}

	http    *http.Server
	address string
	serving sync.WaitGroup
	stop    sync.Once
}

var errBusy = errors.New("too many deliveries at a time")

func newServer(set receiver.Settings, config *Config, next consumer.Logs) (*server, error) {
	endpoints, err := config.compile()
	if err != nil {
		return nil, err
	}
	sealer, err := delivery.NewSealer(string(config.SealKey))
	if err != nil {
		return nil, fmt.Errorf("seal_key: %w", err)
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
	counters, err := newCounters(set.TelemetrySettings, config)
	if err != nil {
		return nil, err
	}
	return &server{
		config: config, settings: set, next: next, endpoints: endpoints, sealer: sealer,
		obsreport: report, counters: counters, warnings: newWarnings(set.Logger), now: time.Now,
		slots: make(chan struct{}, config.MaxConcurrentRequests),
	}, nil
}

// routes: what is no endpoint answers 404, and what is no POST 405.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, e := range s.endpoints {
		mux.Handle("POST "+e.path, s.handler(e))
	}
	return mux
}

// Start listens.
func (s *server) Start(ctx context.Context, host component.Host) error {
	server, err := s.serverOf(ctx, host)
	if err != nil {
		return err
	}
	listener, err := s.config.ServerConfig.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	s.http = server
	s.address = listener.Addr().String()
	s.serving.Go(func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

// serverOf leaves compressed bodies as they come, because some senders sign them so.
func (s *server) serverOf(ctx context.Context, host component.Host) (*http.Server, error) {
	server := s.config.ServerConfig
	options := []confighttp.ToServerOption{confighttp.WithErrorHandler(refuseBeforeRoute)}
	if server.CompressionAlgorithms == nil || slices.Contains(server.CompressionAlgorithms, gzipCoding) {
		options = append(options, confighttp.WithDecoder(gzipCoding, asItComes))
	}
	server.CompressionAlgorithms = []string{""}
	return server.ToServer(ctx, host.GetExtensions(), s.settings.TelemetrySettings, s.routes(), options...)
}

func asItComes(io.ReadCloser) (io.ReadCloser, error) { return nil, nil }

// refuseBeforeRoute answers what the server refuses by itself: an unknown
// content coding, or a client that an extension does not let in. Its words stay inside.
func refuseBeforeRoute(w http.ResponseWriter, _ *http.Request, _ string, status int) {
	w.WriteHeader(status)
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
	s.counters.builder.Shutdown()
	return errors.Join(errs...)
}
