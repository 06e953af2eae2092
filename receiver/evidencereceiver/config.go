package evidencereceiver

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record/delivery"
	"github.com/countersign-otel/countersign/receiver/evidencereceiver/internal/scheme"
)

// Config is what stands under receivers: evidence: in a collector's configuration.
type Config struct {
	// ServerConfig says where to listen, and how.
	ServerConfig confighttp.ServerConfig `mapstructure:",squash"`
	// Endpoints are the senders, by a name of your own.
	Endpoints map[string]EndpointConfig `mapstructure:"endpoints"`
	// MaxConcurrentRequests are served at a time; others are told to come again.
	MaxConcurrentRequests int `mapstructure:"max_concurrent_requests"`
	// RetryAfter is what a sender is told to wait when the pipeline is busy.
	RetryAfter time.Duration `mapstructure:"retry_after"`
	// SealKey is known to the evidence processors of other collectors that
	// these records reach; without one, only this process's own believe them.
	SealKey configopaque.String `mapstructure:"seal_key"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// EndpointConfig is one sender.
type EndpointConfig struct {
	// Path is where it sends; without one, / and the endpoint's name.
	Path string `mapstructure:"path"`
	// Source is the system of record; without one, the endpoint's name.
	Source string `mapstructure:"source"`
	// Connection tells providers of one source apart; without one, the endpoint's name.
	Connection string `mapstructure:"connection"`
	// Tenant owns what is sent; without one, the processor or exporter says (decision D37).
	Tenant string `mapstructure:"tenant"`
	// Trust lowers what the scheme earns, and never raises it (decision D10).
	Trust string `mapstructure:"trust"`
	// Scheme is how the sender shows who it is.
	Scheme string `mapstructure:"scheme"`
	// Secrets are any that it may sign with: several while one follows another.
	Secrets []configopaque.String `mapstructure:"secrets"`
	// Tolerance bounds how far a signed time may lie in the past or the future.
	Tolerance time.Duration `mapstructure:"tolerance"`
	// Events says how many events one body holds: one, array (a JSON array) or lines (one JSON text a line).
	Events string `mapstructure:"events"`
	// Headers are kept as attributes of the record. Most schemes do not sign them.
	Headers []string `mapstructure:"headers"`

	// The rest is for the schemes hmac and api_key; see package scheme.
	Header          string `mapstructure:"header"`
	Prefix          string `mapstructure:"prefix"`
	Encoding        string `mapstructure:"encoding"`
	Algorithm       string `mapstructure:"algorithm"`
	Signed          string `mapstructure:"signed"`
	TimestampHeader string `mapstructure:"timestamp_header"`
	DeliveryHeader  string `mapstructure:"delivery_header"`
	EventHeader     string `mapstructure:"event_header"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// What events may be.
const (
	oneEvent   = "one"
	arrayOf    = "array"
	linesOf    = "lines"
	gzipCoding = "gzip"
)

// defaultTolerance is what senders recommend.
const defaultTolerance = 5 * time.Minute

var _ confmap.Validator = (*Config)(nil)

// NewDefaultConfig listens on this machine only and has no endpoints.
func NewDefaultConfig() *Config {
	config := &Config{
		ServerConfig:          confighttp.NewDefaultServerConfig(),
		MaxConcurrentRequests: 64,
		// Below the minute beyond which some senders do not come again.
		RetryAfter: 5 * time.Second,
	}
	config.ServerConfig.NetAddr.Endpoint = "localhost:4321"
	config.ServerConfig.ReadTimeout = 10 * time.Second
	config.ServerConfig.MaxRequestBodySize = 4 << 20
	config.ServerConfig.CompressionAlgorithms = []string{"", gzipCoding}
	return config
}

func createDefaultConfig() component.Config { return NewDefaultConfig() }

// Validate reports everything that is wrong, each by its place in the
// configuration. No error repeats a secret.
func (c *Config) Validate() error {
	_, err := c.compile()
	return err
}

// compile is Validate with its result: the endpoints by name, in order.
func (c *Config) compile() ([]*endpoint, error) {
	errs := c.checkServer()
	if len(c.Endpoints) == 0 {
		errs = append(errs, errors.New("endpoints: there is none, so that nobody could send anything; add one for every sender"))
	}
	var all []*endpoint
	paths := map[string]string{}
	for _, name := range sortedNames(c.Endpoints) {
		config := c.Endpoints[name]
		made, endpointErrs := config.compile(name)
		for _, err := range endpointErrs {
			errs = append(errs, fmt.Errorf("endpoints::%s::%w", name, err))
		}
		if other, taken := paths[made.path]; taken {
			errs = append(errs, fmt.Errorf("endpoints::%s::path: %s is the path of %s too", name, made.path, other))
		}
		paths[made.path] = name
		all = append(all, made)
	}
	return all, errors.Join(errs...)
}

func sortedNames(endpoints map[string]EndpointConfig) []string {
	names := make([]string, 0, len(endpoints))
	for name := range endpoints {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *Config) checkServer() []error {
	var errs []error
	server := &c.ServerConfig
	if server.NetAddr.Endpoint == "" {
		errs = append(errs, errors.New("endpoint: it is empty; write where to listen, like localhost:4321"))
	}
	if server.MaxRequestBodySize < 1 {
		errs = append(errs, errors.New("max_request_body_size: it has to be 1 or more"))
	}
	for _, coding := range server.CompressionAlgorithms {
		if coding != "" && coding != gzipCoding {
			errs = append(errs, fmt.Errorf("compression_algorithms: %.40q: senders of webhooks use gzip or nothing; write \"\" and gzip", coding))
		}
	}
	if c.MaxConcurrentRequests < 1 {
		errs = append(errs, errors.New("max_concurrent_requests: it has to be 1 or more"))
	}
	if c.RetryAfter < time.Second {
		errs = append(errs, errors.New("retry_after: it has to be 1s or more"))
	}
	if _, err := delivery.NewSealer(string(c.SealKey)); err != nil {
		errs = append(errs, fmt.Errorf("seal_key: %w", err))
	}
	return errs
}

// unsigned is the endpoint without what checks signatures.
func (c *EndpointConfig) unsigned(name string) *endpoint {
	return &endpoint{
		name: name, path: cmp.Or(c.Path, "/"+name), events: cmp.Or(c.Events, oneEvent),
		delivery: delivery.Delivery{Tenant: c.Tenant, Source: cmp.Or(c.Source, name), Connection: cmp.Or(c.Connection, name)},
	}
}

// compile makes an endpoint. Errors start with the key.
func (c *EndpointConfig) compile(name string) (*endpoint, []error) {
	e := c.unsigned(name)
	errs := c.checkNames(e)
	found, ok := scheme.Find(c.Scheme)
	if !ok {
		return e, append(errs, fmt.Errorf("scheme: %.40q: write one of %s", c.Scheme, scheme.Names()))
	}
	errs = append(errs, c.checkScheme(&found)...)
	if err := e.trustOf(c.Trust, &found); err != nil {
		errs = append(errs, err)
	}
	verifier, err := found.New(c.options())
	if err != nil {
		errs = append(errs, err)
	}
	e.verifier = verifier
	return e, errs
}

func (c *EndpointConfig) checkNames(e *endpoint) []error {
	var errs []error
	if !strings.HasPrefix(e.path, "/") || path.Clean(e.path) != e.path || strings.ContainsAny(e.path, "{}%?# \t") {
		errs = append(errs, fmt.Errorf("path: %.80q: write a path like /webhooks/stripe", e.path))
	}
	source, err := engine.Identifier(e.delivery.Source)
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("source: %w", err))
	case source == engine.AgentSource:
		errs = append(errs, fmt.Errorf("source: %s is what agents say of themselves, which is no evidence", engine.AgentSource))
	}
	e.delivery.Source = source
	if err := engine.CheckOpaque("connection", e.delivery.Connection); err != nil {
		errs = append(errs, fmt.Errorf("connection: %w", err))
	}
	if c.Tenant != "" {
		if err := engine.CheckOpaque("tenant", c.Tenant); err != nil {
			errs = append(errs, fmt.Errorf("tenant: %w", err))
		}
	}
	if !slices.Contains([]string{oneEvent, arrayOf, linesOf}, e.events) {
		errs = append(errs, fmt.Errorf("events: %.40q: write one, array or lines", e.events))
	}
	for i, header := range c.Headers {
		if header == "" {
			errs = append(errs, fmt.Errorf("headers[%d]: it is empty; name a header", i))
			continue
		}
		if isSecret(header) {
			errs = append(errs, fmt.Errorf("headers[%d]: %s carries a secret, which telemetry must not", i, header))
			continue
		}
		e.headers = append(e.headers, keptHeader{
			name: http.CanonicalHeaderKey(header), attribute: "http.request.header." + strings.ToLower(header),
		})
	}
	return errs
}

// isSecret says which headers never become telemetry.
func isSecret(header string) bool {
	switch strings.ToLower(header) {
	case "authorization", "proxy-authorization", "cookie", "x-api-key":
		return true
	}
	return false
}

// checkScheme: an option that the scheme does not read would look like a setting and be none.
func (c *EndpointConfig) checkScheme(s *scheme.Scheme) []error {
	var errs []error
	for _, o := range []struct{ name, value string }{
		{scheme.OptionHeader, c.Header}, {scheme.OptionPrefix, c.Prefix}, {scheme.OptionEncoding, c.Encoding},
		{scheme.OptionAlgorithm, c.Algorithm}, {scheme.OptionSigned, c.Signed},
		{scheme.OptionTimestampHeader, c.TimestampHeader}, {scheme.OptionDeliveryHeader, c.DeliveryHeader},
		{scheme.OptionEventHeader, c.EventHeader},
	} {
		if o.value != "" && !slices.Contains(s.Takes, o.name) {
			errs = append(errs, fmt.Errorf("%s: the scheme %s does not read it; remove it", o.name, s.Name))
		}
	}
	switch {
	case c.Tolerance < 0:
		errs = append(errs, errors.New("tolerance: it is negative"))
	case c.Tolerance > 0 && !s.Timed:
		errs = append(errs, fmt.Errorf("tolerance: the scheme %s signs no time; remove it", s.Name))
	}
	return errs
}

func (c *EndpointConfig) options() scheme.Options {
	o := scheme.Options{
		Secrets: c.Secrets, Tolerance: c.Tolerance, Header: c.Header, Prefix: c.Prefix,
		Encoding: c.Encoding, Algorithm: c.Algorithm, Signed: c.Signed,
		TimestampHeader: c.TimestampHeader, DeliveryHeader: c.DeliveryHeader, EventHeader: c.EventHeader,
	}
	if o.Tolerance == 0 {
		o.Tolerance = defaultTolerance
	}
	return o
}
