package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/countersign-otel/countersign/verifier/api"
)

// mostScrapers is how many clients may be connected for /metrics alone.
const mostScrapers = 100

// metricsServer serves /metrics on an address of its own; nil serves nothing.
type metricsServer struct {
	listener net.Listener
	server   *http.Server
}

// listenForMetrics says where metrics are, also when that is nowhere.
func (s *sidecar) listenForMetrics(ctx context.Context) (*metricsServer, error) {
	if !s.metricsAlone() {
		if !s.metricsWithAPI() {
			s.Logger.Warn("/metrics is not served, because it needs no key and tells of all tenants; set metrics.listen to an address that only Prometheus reaches, or to api", "listen", s.Listen)
		}
		return nil, nil
	}
	listener, err := listen(ctx, "metrics.listen", s.Metrics.Listen)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", api.Metrics(s.registry))
	m := &metricsServer{server: &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
	}}
	m.listener = hold(m.server, listener, mostScrapers)
	url := "http://" + listener.Addr().String() + "/metrics"
	s.Logger.Info("serving metrics", "url", url)
	if s.metricsReady != nil {
		s.metricsReady(url)
	}
	return m, nil
}

// run serves until ctx ends.
func (m *metricsServer) run(ctx context.Context) error {
	if m == nil {
		<-ctx.Done()
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = m.server.Close() })
	defer stop()
	if err := m.server.Serve(m.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (m *metricsServer) close() error {
	if m == nil {
		return nil
	}
	return m.listener.Close()
}
