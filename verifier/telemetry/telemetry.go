// Package telemetry sends the sidecar's own metrics as OTLP: the same that
// /metrics shows, so that there is one set of names.
package telemetry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configtls"
	prombridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"google.golang.org/grpc/credentials"
)

// Protocols of OTLP.
const (
	GRPC = "grpc"
	HTTP = "http/protobuf"
)

// Config says where metrics go, in the words of the collector's OTLP exporters.
type Config struct {
	// Endpoint is host:port or http(s)://host:port. Empty: nothing is sent; /metrics is served all the same.
	Endpoint string `mapstructure:"endpoint"`
	// Protocol is grpc or http/protobuf.
	Protocol string `mapstructure:"protocol"`
	// Headers go with every request.
	Headers map[string]configopaque.String `mapstructure:"headers"`
	// TLS holds for endpoints without http://.
	TLS configtls.ClientConfig `mapstructure:"tls"`
	// Interval is the time between two requests.
	Interval time.Duration `mapstructure:"interval"`
	// Timeout bounds one request.
	Timeout time.Duration `mapstructure:"timeout"`
	// Resource attributes beside service.name, service.version and service.instance.id.
	Resource map[string]string `mapstructure:"resource"`
}

// DefaultConfig sends nothing until it is told where to.
func DefaultConfig() Config {
	return Config{Protocol: GRPC, Interval: 30 * time.Second, Timeout: 10 * time.Second}
}

// ErrConfig is wrapped by errors about settings.
var ErrConfig = errors.New("invalid telemetry settings")

// Validate names the setting that is wrong and what is allowed.
func (c Config) Validate() error {
	var all []error
	fail := func(format string, args ...any) {
		all = append(all, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if c.Protocol != GRPC && c.Protocol != HTTP {
		fail("telemetry.protocol is %q; write %s or %s", c.Protocol, GRPC, HTTP)
	}
	if c.Interval < time.Second {
		fail("telemetry.interval is %s; write a length of at least 1s", c.Interval)
	}
	if c.Timeout <= 0 {
		fail("telemetry.timeout is %s; write a length above 0, like 10s", c.Timeout)
	}
	if _, err := c.target(); c.Endpoint != "" && err != nil {
		fail("%w", err)
	}
	if err := c.TLS.Validate(); err != nil {
		fail("telemetry.tls: %w", err)
	}
	return errors.Join(all...)
}

// target is the endpoint with a scheme: http means no TLS.
func (c Config) target() (*url.URL, error) {
	text := c.Endpoint
	if !strings.Contains(text, "://") {
		scheme := "https://"
		if c.TLS.Insecure {
			scheme = "http://"
		}
		text = scheme + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" || u.User != nil {
		return nil, fmt.Errorf("telemetry.endpoint is %q; write host:port, http://host:port or https://host:port", c.Endpoint)
	}
	return u, nil
}

// Options of an Exporter.
type Options struct {
	// Gatherer is what /metrics shows.
	Gatherer prometheus.Gatherer
	// Version is that of the program; Instance names this process.
	Version, Instance string
	// Logger may be nil.
	Logger *slog.Logger
}

// Exporter sends metrics until Run ends.
type Exporter struct {
	config   Config
	provider *metric.MeterProvider
	logger   *slog.Logger
}

// New checks the settings. It connects lazily: an endpoint that is away is no error here.
func New(ctx context.Context, c Config, o Options) (*Exporter, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Exporter{config: c, logger: o.Logger}
	if c.Endpoint == "" {
		return e, nil
	}
	exporter, err := c.exporter(ctx)
	if err != nil {
		return nil, err
	}
	attributes := []attribute.KeyValue{
		attribute.String("service.name", "countersign"), attribute.String("service.version", o.Version), attribute.String("service.instance.id", o.Instance),
	}
	for name, value := range c.Resource {
		attributes = append(attributes, attribute.String(name, value))
	}
	e.provider = metric.NewMeterProvider(
		metric.WithResource(resource.NewSchemaless(attributes...)),
		metric.WithReader(metric.NewPeriodicReader(exporter,
			metric.WithInterval(c.Interval), metric.WithTimeout(c.Timeout),
			metric.WithProducer(prombridge.NewMetricProducer(prombridge.WithGatherer(o.Gatherer))))),
	)
	return e, nil
}

func (c Config) exporter(ctx context.Context) (metric.Exporter, error) {
	to, err := c.target()
	if err != nil {
		return nil, err
	}
	headers := make(map[string]string, len(c.Headers))
	for name, value := range c.Headers {
		headers[name] = string(value)
	}
	settings, err := c.TLS.LoadTLSConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("telemetry.tls: %w", err)
	}
	if settings == nil {
		settings = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.Protocol == GRPC {
		options := []otlpmetricgrpc.Option{otlpmetricgrpc.WithEndpoint(to.Host), otlpmetricgrpc.WithHeaders(headers), otlpmetricgrpc.WithTimeout(c.Timeout)}
		if to.Scheme == "http" {
			options = append(options, otlpmetricgrpc.WithInsecure())
		} else {
			options = append(options, otlpmetricgrpc.WithTLSCredentials(credentials.NewTLS(settings)))
		}
		return otlpmetricgrpc.New(ctx, options...)
	}
	options := []otlpmetrichttp.Option{
		otlpmetrichttp.WithEndpoint(to.Host), otlpmetrichttp.WithURLPath(strings.TrimSuffix(to.Path, "/") + "/v1/metrics"),
		otlpmetrichttp.WithHeaders(headers), otlpmetrichttp.WithTimeout(c.Timeout),
	}
	if to.Scheme == "http" {
		options = append(options, otlpmetrichttp.WithInsecure())
	} else {
		options = append(options, otlpmetrichttp.WithTLSClientConfig(settings))
	}
	return otlpmetrichttp.New(ctx, options...)
}

// Run waits for ctx to end, and sends what there is then.
func (e *Exporter) Run(ctx context.Context) error {
	if e.provider == nil {
		<-ctx.Done()
		return nil
	}
	// The SDK has one place for errors in the process.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		e.logger.Warn("sending the sidecar's own metrics failed; the next ones are sent all the same", "endpoint", e.config.Endpoint, "error", err)
	}))
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(e.config.Timeout, 5*time.Second))
	defer cancel()
	if err := e.provider.Shutdown(ending); err != nil {
		e.logger.Warn("the sidecar's last metrics were not sent", "endpoint", e.config.Endpoint, "error", err)
	}
	return nil
}
