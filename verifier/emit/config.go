package emit

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configtls"
)

// Protocols of OTLP.
const (
	GRPC = "grpc"
	HTTP = "http/protobuf"
)

// Modes of the verdict span.
const (
	// Linked: a trace of its own with a link to the action's span, because tail
	// samplers lose children that come hours late.
	Linked = "linked"
	// Child: a child of the action's span, with the checks as its children.
	Child = "child"
	// Off: no verdict span.
	Off = "off"
)

// Config says where verdicts go as telemetry, and how. Keys are named as in
// the collector's OTLP exporters.
type Config struct {
	// Endpoint is host:port or http(s)://host:port. Empty: nothing is sent, and
	// events are removed as they come.
	Endpoint string `mapstructure:"endpoint"`
	// Protocol is grpc or http/protobuf.
	Protocol string `mapstructure:"protocol"`
	// Headers go with every request.
	Headers map[string]configopaque.String `mapstructure:"headers"`
	// TLS holds for endpoints without http://.
	TLS configtls.ClientConfig `mapstructure:"tls"`
	// Compression is gzip or none.
	Compression string `mapstructure:"compression"`
	// Timeout bounds one request.
	Timeout time.Duration `mapstructure:"timeout"`
	// SpanMode is linked, child or off.
	SpanMode string `mapstructure:"span_mode"`
	// PublicURL is where this API is reached from outside, for links in events; may be empty.
	PublicURL string `mapstructure:"public_url"`
	// Resource attributes beside service.name and service.version.
	Resource map[string]string `mapstructure:"resource"`
	// Phoenix and Langfuse take settled verdicts as annotations of the action's span; off without an endpoint.
	Phoenix  PhoenixConfig  `mapstructure:"phoenix"`
	Langfuse LangfuseConfig `mapstructure:"langfuse"`
	// BatchSize is how many events go in one request, 1 to 10000.
	BatchSize int `mapstructure:"batch_size"`
	// MaxBackOff is the longest pause between two attempts.
	MaxBackOff time.Duration `mapstructure:"max_back_off"`
}

// DefaultConfig sends nothing until it is told where to.
func DefaultConfig() Config {
	return Config{
		Protocol: GRPC, Compression: "gzip", Timeout: 10 * time.Second, SpanMode: Linked,
		BatchSize: 256, MaxBackOff: 30 * time.Second,
	}
}

// ErrConfig is wrapped by errors about settings.
var ErrConfig = errors.New("invalid emit settings")

// Validate names the setting that is wrong and what is allowed.
func (c Config) Validate() error {
	var all []error
	fail := func(format string, args ...any) {
		all = append(all, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if c.Protocol != GRPC && c.Protocol != HTTP {
		fail("emit.protocol is %q; write %s or %s", c.Protocol, GRPC, HTTP)
	}
	if c.Compression != "gzip" && c.Compression != "none" {
		fail("emit.compression is %q; write gzip or none", c.Compression)
	}
	if c.SpanMode != Linked && c.SpanMode != Child && c.SpanMode != Off {
		fail("emit.span_mode is %q; write %s, %s or %s", c.SpanMode, Linked, Child, Off)
	}
	if c.BatchSize < 1 || c.BatchSize > 10_000 {
		fail("emit.batch_size is %d; write 1 to 10000", c.BatchSize)
	}
	if c.Timeout <= 0 {
		fail("emit.timeout is %s; write a length above 0, like 10s", c.Timeout)
	}
	if c.MaxBackOff <= 0 {
		fail("emit.max_back_off is %s; write a length above 0, like 30s", c.MaxBackOff)
	}
	if c.Endpoint != "" {
		if _, err := c.target(); err != nil {
			fail("%w", err)
		}
	}
	if c.PublicURL != "" {
		if u, err := url.Parse(c.PublicURL); err != nil || u.Host == "" {
			fail("emit.public_url is %q; write an address like https://countersign.example", c.PublicURL)
		}
	}
	if err := c.TLS.Validate(); err != nil {
		fail("emit.tls: %w", err)
	}
	if err := c.Phoenix.validate(); err != nil {
		fail("%w", err)
	}
	if err := c.Langfuse.validate(); err != nil {
		fail("%w", err)
	}
	return errors.Join(all...)
}

// target is an endpoint in parts.
type target struct {
	host  string
	path  string
	plain bool
}

// target reads the endpoint. http:// means no TLS, https:// TLS; without a
// scheme the tls settings say it.
func (c Config) target() (target, error) {
	text := c.Endpoint
	t := target{plain: c.TLS.Insecure}
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		if scheme != "http" && scheme != "https" {
			return target{}, fmt.Errorf("emit.endpoint is %q; write host:port, http://host:port or https://host:port", text)
		}
		t.plain, text = scheme == "http", rest
	}
	t.host, t.path, _ = strings.Cut(text, "/")
	if t.path = strings.TrimSuffix(t.path, "/"); t.path != "" {
		t.path = "/" + t.path
	}
	if u, err := url.Parse("http://" + t.host); err != nil || u.Port() == "" || u.Hostname() == "" {
		return target{}, fmt.Errorf("emit.endpoint is %q; write host:port, http://host:port or https://host:port", c.Endpoint)
	}
	return t, nil
}
