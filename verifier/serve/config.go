// Package serve is the sidecar: it wires the settle loop, the HTTP API and the
// emitter over one store, and ends them in order.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/verifier/emit"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/telemetry"
	"github.com/countersign-otel/countersign/verifier/webhook"
)

// DefaultListen is where the API is served.
const DefaultListen = "localhost:8383"

// Config of the sidecar. Load makes one from a file, the environment and flags.
type Config struct {
	// Store is sqlite:PATH, postgres://... or memory:.
	Store string `mapstructure:"store"`
	// Migrate brings the schema up to date at start.
	Migrate bool `mapstructure:"migrate"`
	// Listen is the API's host:port; port 0 takes a free one. Anything but
	// localhost needs a key in the store.
	Listen string `mapstructure:"listen"`
	// TLS serves HTTPS, and asks clients for certificates with ClientCAFile; nil serves HTTP.
	TLS *configtls.ServerConfig `mapstructure:"tls"`
	// AddressFile, when set, is written with the URL of the API once it answers.
	AddressFile string `mapstructure:"address_file"`
	// Contracts are files and folders of contracts to publish at start; *_test.yaml is left out.
	Contracts []string `mapstructure:"contracts"`
	// Settlement bounds the wait for evidence.
	Settlement Settlement `mapstructure:"settlement"`
	// Emit sends verdicts back as telemetry.
	Emit emit.Config `mapstructure:"emit"`
	// Webhooks tell endpoints of events.
	Webhooks webhook.Config `mapstructure:"webhooks"`
	// Telemetry sends the sidecar's own metrics.
	Telemetry telemetry.Config `mapstructure:"telemetry"`
	// Metrics says where /metrics is.
	Metrics Metrics `mapstructure:"metrics"`
	// Limits bound what clients may ask for.
	Limits Limits `mapstructure:"limits"`
	// Page is the web page, served beside the API.
	Page PageConfig `mapstructure:"page"`
	// RequestTimeout bounds a request apart from its waiting.
	RequestTimeout time.Duration `mapstructure:"request_timeout"`
	// ShutdownTimeout is how long requests may take to end at shutdown.
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout"`
}

// Settlement is AC "Settlement waits for evidence". Lengths are whole seconds.
type Settlement struct {
	RecheckInterval time.Duration `mapstructure:"recheck_interval"`
	MaxLag          time.Duration `mapstructure:"max_lag"`
	Workers         int           `mapstructure:"workers"`
	BatchSize       int           `mapstructure:"batch_size"`
	// PollInterval bounds how late missed wake-ups are noticed.
	PollInterval time.Duration `mapstructure:"poll_interval"`
	// LeaseFor is how long a killed sidecar's work waits for another one.
	LeaseFor time.Duration `mapstructure:"lease_for"`
}

// Metrics says where /metrics is. It needs no key and tells of all tenants.
type Metrics struct {
	// Listen is host:port of a listener for /metrics alone, in the clear; or
	// MetricsWithAPI. Empty is that while the API listens on localhost, and nowhere otherwise.
	Listen string `mapstructure:"listen"`
}

// MetricsWithAPI serves /metrics where the API is, whoever can reach that.
const MetricsWithAPI = "api"

// metricsWithAPI says whether the API serves /metrics.
func (c Config) metricsWithAPI() bool {
	return c.Metrics.Listen == MetricsWithAPI || c.Metrics.Listen == "" && loopback(c.Listen)
}

// metricsAlone says whether /metrics has a listener of its own.
func (c Config) metricsAlone() bool {
	return c.Metrics.Listen != "" && c.Metrics.Listen != MetricsWithAPI
}

// Limits bound what clients may ask for.
type Limits struct {
	keys.Limits `mapstructure:",squash"`
	// Connections is how many clients may be connected at once; further ones are told to come again.
	Connections int `mapstructure:"connections"`
}

// PageConfig is the web page.
type PageConfig struct {
	// TraceURL is where a trace is shown, with {trace_id} and {span_id} for its
	// ids; empty shows no link.
	TraceURL string `mapstructure:"trace_url"`
}

// Default serves a SQLite file on localhost and sends nothing.
func Default() Config {
	settings := report.DefaultSettings()
	return Config{
		Store: "sqlite:countersign.db", Migrate: true, Listen: DefaultListen,
		Settlement: Settlement{
			RecheckInterval: duration(settings.RecheckInterval), MaxLag: duration(settings.MaxLag),
			Workers: 2, BatchSize: 500, PollInterval: time.Second, LeaseFor: time.Minute,
		},
		Emit:      emit.DefaultConfig(),
		Webhooks:  webhook.DefaultConfig(),
		Telemetry: telemetry.DefaultConfig(),
		// More than the 10,000 calls that may wait, and their listeners.
		Limits:         Limits{Limits: keys.DefaultLimits(), Connections: 20_000},
		RequestTimeout: 30 * time.Second, ShutdownTimeout: 15 * time.Second,
	}
}

func duration(d engine.Duration) time.Duration { return time.Duration(d) * time.Second }

// ErrConfig is wrapped by every error about settings.
var ErrConfig = errors.New("invalid settings")

// Load makes settings: the defaults, then the YAML file at path (none when
// empty; ${env:NAME} stands for a variable), then COUNTERSIGN_* variables, then
// flags by the setting's key. It reports everything that is wrong at once.
func Load(ctx context.Context, path string, lookup func(name string) (string, bool), flags map[string]string) (Config, error) {
	c := Default()
	if path != "" {
		if err := c.loadFile(ctx, path); err != nil {
			return Config{}, fmt.Errorf("%w: %s: %w", ErrConfig, path, err)
		}
	}
	var all []error
	for _, s := range Settings() {
		if text, ok := lookup(s.Env()); ok && text != "" {
			if err := s.set(&c, text); err != nil {
				all = append(all, fmt.Errorf("%w: %s: %w", ErrConfig, s.Env(), err))
			}
		}
		if text, ok := flags[s.Key]; ok {
			if err := s.set(&c, text); err != nil {
				all = append(all, fmt.Errorf("%w: --%s: %w", ErrConfig, s.Flag(), err))
			}
		}
	}
	if err := errors.Join(append(all, c.Validate())...); err != nil {
		return Config{}, err
	}
	return c, nil
}

func (c *Config) loadFile(ctx context.Context, path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no such file")
	}
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              []string{"file:" + path},
		ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory(), envprovider.NewFactory()},
		DefaultScheme:     "env",
	})
	if err != nil {
		return err
	}
	conf, err := resolver.Resolve(ctx)
	if err != nil {
		return errors.Join(err, resolver.Shutdown(ctx))
	}
	return errors.Join(explain(conf.Unmarshal(c)), resolver.Shutdown(ctx))
}

// Validate names every setting that is wrong and what is allowed.
func (c Config) Validate() error {
	var all []error
	fail := func(format string, args ...any) {
		all = append(all, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if c.Store == "" {
		fail("store is empty; write sqlite:PATH, postgres://... or memory:")
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		fail("listen is %q; write host:port, like %s", c.Listen, DefaultListen)
	}
	if c.TLS != nil {
		if err := errors.Join(c.TLS.Config.Validate(), c.TLS.Validate()); err != nil {
			fail("tls: %w", err)
		}
	}
	s := c.Settlement
	for _, length := range []struct {
		key   string
		value time.Duration
	}{
		{"settlement.recheck_interval", s.RecheckInterval}, {"settlement.max_lag", s.MaxLag}, {"settlement.lease_for", s.LeaseFor},
	} {
		if length.value < time.Second || length.value%time.Second != 0 {
			fail("%s is %s; write whole seconds, at least 1s", length.key, length.value)
		}
	}
	for _, length := range []struct {
		key   string
		value time.Duration
	}{
		{"settlement.poll_interval", s.PollInterval}, {"request_timeout", c.RequestTimeout}, {"shutdown_timeout", c.ShutdownTimeout},
	} {
		if length.value <= 0 {
			fail("%s is %s; write a length above 0, like 1s", length.key, length.value)
		}
	}
	if c.metricsAlone() {
		if _, _, err := net.SplitHostPort(c.Metrics.Listen); err != nil {
			fail("metrics.listen is %q; write host:port, like localhost:9464, or api", c.Metrics.Listen)
		}
	}
	if s.Workers < 1 || s.Workers > 64 {
		fail("settlement.workers is %d; write 1 to 64", s.Workers)
	}
	if s.BatchSize < 1 || s.BatchSize > 10_000 {
		fail("settlement.batch_size is %d; write 1 to 10000", s.BatchSize)
	}
	if err := c.Limits.Validate(); err != nil {
		fail("limits: %w", err)
	}
	if c.Limits.Connections < 1 || c.Limits.Connections > 1_000_000 {
		fail("limits.connections is %d; write 1 to 1000000", c.Limits.Connections)
	}
	return errors.Join(append(all, c.Emit.Validate(), c.Webhooks.Validate(), c.Telemetry.Validate())...)
}

// loopback says whether an address can be reached from this machine only.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
