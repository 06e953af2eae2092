package telemetry

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver keeps the last metrics that came, with the value of the header x-token.
type receiver struct {
	pmetricotlp.UnimplementedGRPCServer
	mu    sync.Mutex
	last  pmetric.Metrics
	token string
	came  int
}

func (r *receiver) take(m pmetric.Metrics, token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.token, r.came = m, token, r.came+1
}

func (r *receiver) Export(ctx context.Context, request pmetricotlp.ExportRequest) (pmetricotlp.ExportResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	r.take(request.Metrics(), strings.Join(md.Get("x-token"), ","))
	return pmetricotlp.NewExportResponse(), nil
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, got *http.Request) {
	body, err := io.ReadAll(got.Body)
	request := pmetricotlp.NewExportRequest()
	if err != nil || got.URL.Path != "/prefix/v1/metrics" || request.UnmarshalProto(body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.take(request.Metrics(), got.Header.Get("x-token"))
}

// TestMetricsArrive over both protocols, at the latest at the end.
func TestMetricsArrive(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	overGRPC, overHTTP := &receiver{}, &receiver{}
	server := grpc.NewServer()
	pmetricotlp.RegisterGRPCServer(server, overGRPC)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	web := httptest.NewServer(overHTTP)
	defer web.Close()
	for endpoint, to := range map[string]struct {
		protocol string
		receiver *receiver
	}{listener.Addr().String(): {GRPC, overGRPC}, web.URL + "/prefix/": {HTTP, overHTTP}} {
		registry := prometheus.NewRegistry()
		settled := prometheus.NewCounter(prometheus.CounterOpts{Name: "countersign_settled_total"})
		registry.MustRegister(settled)
		settled.Add(3)
		c := DefaultConfig()
		c.Endpoint, c.Protocol, c.Interval = endpoint, to.protocol, time.Hour
		c.TLS.Insecure = true
		c.Headers = map[string]configopaque.String{"x-token": "secret"}
		c.Resource = map[string]string{"deployment.environment.name": "test"}
		e, err := New(t.Context(), c, Options{Gatherer: registry, Version: "1.2.3", Instance: "me"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if to.receiver.came != 1 || to.receiver.token != "secret" {
			t.Fatalf("%s: %d requests, token %q", to.protocol, to.receiver.came, to.receiver.token)
		}
		rm := to.receiver.last.ResourceMetrics().At(0)
		want := map[string]any{"service.name": "countersign", "service.version": "1.2.3", "service.instance.id": "me", "deployment.environment.name": "test"}
		for name, value := range want {
			if got := rm.Resource().Attributes().AsRaw()[name]; got != value {
				t.Errorf("%s: %s is %v, want %v", to.protocol, name, got, value)
			}
		}
		m := rm.ScopeMetrics().At(0).Metrics().At(0)
		if m.Name() != "countersign_settled_total" && m.Name() != "countersign_settled" || m.Sum().DataPoints().At(0).DoubleValue() != 3 {
			t.Errorf("%s: got %s %v", to.protocol, m.Name(), m.Sum().DataPoints().At(0).DoubleValue())
		}
	}
}

func TestAnEndpointThatIsAwayEndsNothing(t *testing.T) {
	c := DefaultConfig()
	c.Endpoint, c.Timeout = "http://127.0.0.1:1", 200*time.Millisecond
	e, err := New(t.Context(), c, Options{Gatherer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config){
		`telemetry.protocol is "smtp"; write grpc or http/protobuf`:                                            func(c *Config) { c.Protocol = "smtp" },
		`telemetry.interval is 1ms; write a length of at least 1s`:                                             func(c *Config) { c.Interval = time.Millisecond },
		`telemetry.timeout is 0s; write a length above 0, like 10s`:                                            func(c *Config) { c.Timeout = 0 },
		`telemetry.endpoint is "localhost"; write host:port, http://host:port or https://host:port`:            func(c *Config) { c.Endpoint = "localhost" },
		`telemetry.endpoint is "ftp://localhost:1"; write host:port, http://host:port or https://host:port`:    func(c *Config) { c.Endpoint = "ftp://localhost:1" },
		`telemetry.endpoint is "http://localhost:x/a"; write host:port, http://host:port or https://host:port`: func(c *Config) { c.Endpoint = "http://localhost:x/a" },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); err == nil || err.Error() != ErrConfig.Error()+": "+want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
