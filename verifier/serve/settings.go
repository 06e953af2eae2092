package serve

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"
)

// Setting is one setting that can also be a flag or a variable.
type Setting struct {
	// Key is the path in the YAML file, like settlement.max_lag.
	Key string
	// Usage says what it is for.
	Usage string
	set   func(*Config, string) error
}

// Flag is the setting's name on the command line, like settlement-max-lag.
func (s Setting) Flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(s.Key) }

// Env is the setting's variable, like COUNTERSIGN_SETTLEMENT_MAX_LAG.
func (s Setting) Env() string {
	return "COUNTERSIGN_" + strings.ToUpper(strings.ReplaceAll(s.Key, ".", "_"))
}

// Settings lists what can be set outside the file, in the order of help texts.
func Settings() []Setting {
	return []Setting{
		{"store", "sqlite:PATH, postgres://... or memory:", text(func(c *Config) *string { return &c.Store })},
		{"migrate", "bring the store's schema up to date at start", boolean(func(c *Config) *bool { return &c.Migrate })},
		{"listen", "address of the HTTP API; port 0 takes a free one", text(func(c *Config) *string { return &c.Listen })},
		{"address_file", "file to write the API's URL to", text(func(c *Config) *string { return &c.AddressFile })},
		{"contracts", "files and folders of contracts to publish at start, separated by commas", func(c *Config, v string) error {
			c.Contracts = splitList(v)
			return nil
		}},
		{"settlement.recheck_interval", "how often a verdict that waits for a source is looked at again", length(func(c *Config) *time.Duration { return &c.Settlement.RecheckInterval })},
		{"settlement.max_lag", "how long after the window a source is waited for", length(func(c *Config) *time.Duration { return &c.Settlement.MaxLag })},
		{"settlement.workers", "how many batches settle side by side", number(func(c *Config) *int { return &c.Settlement.Workers })},
		{"settlement.batch_size", "how many actions settle at once", number(func(c *Config) *int { return &c.Settlement.BatchSize })},
		{"settlement.poll_interval", "how late a missed wake-up may be noticed", length(func(c *Config) *time.Duration { return &c.Settlement.PollInterval })},
		{"settlement.lease_for", "how long a killed sidecar's work waits for another one", length(func(c *Config) *time.Duration { return &c.Settlement.LeaseFor })},
		{"emit.endpoint", "where verdicts go as OTLP; empty sends nothing", text(func(c *Config) *string { return &c.Emit.Endpoint })},
		{"emit.protocol", "grpc or http/protobuf", text(func(c *Config) *string { return &c.Emit.Protocol })},
		{"emit.headers", "headers of OTLP requests, like name=value,name=value", headers(func(c *Config) *map[string]configopaque.String { return &c.Emit.Headers })},
		{"emit.tls.insecure", "OTLP without TLS", boolean(func(c *Config) *bool { return &c.Emit.TLS.Insecure })},
		{"emit.tls.ca_file", "certificate of the OTLP endpoint's authority", text(func(c *Config) *string { return &c.Emit.TLS.CAFile })},
		{"emit.compression", "gzip or none", text(func(c *Config) *string { return &c.Emit.Compression })},
		{"emit.span_mode", "linked, child or off", text(func(c *Config) *string { return &c.Emit.SpanMode })},
		{"emit.public_url", "where this API is reached from outside, for links in telemetry", text(func(c *Config) *string { return &c.Emit.PublicURL })},
		{"emit.phoenix.endpoint", "Arize Phoenix that takes settled verdicts as span annotations; empty for none", text(func(c *Config) *string { return &c.Emit.Phoenix.Endpoint })},
		{"emit.phoenix.api_key", "its API key; better a variable than a flag", secret(func(c *Config) *configopaque.String { return &c.Emit.Phoenix.APIKey })},
		{"emit.langfuse.endpoint", "Langfuse that takes settled verdicts as scores; empty for none", text(func(c *Config) *string { return &c.Emit.Langfuse.Endpoint })},
		{"emit.langfuse.public_key", "public key of its project", text(func(c *Config) *string { return &c.Emit.Langfuse.PublicKey })},
		{"emit.langfuse.secret_key", "secret key of its project; better a variable than a flag", secret(func(c *Config) *configopaque.String { return &c.Emit.Langfuse.SecretKey })},
		{"emit.langfuse.environment", "environment of the scores; empty takes Langfuse's default", text(func(c *Config) *string { return &c.Emit.Langfuse.Environment })},
		{"telemetry.endpoint", "where the sidecar's own metrics go as OTLP; empty sends none", text(func(c *Config) *string { return &c.Telemetry.Endpoint })},
		{"telemetry.protocol", "grpc or http/protobuf", text(func(c *Config) *string { return &c.Telemetry.Protocol })},
		{"telemetry.headers", "headers of requests with metrics, like name=value,name=value", headers(func(c *Config) *map[string]configopaque.String { return &c.Telemetry.Headers })},
		{"telemetry.tls.insecure", "metrics without TLS", boolean(func(c *Config) *bool { return &c.Telemetry.TLS.Insecure })},
		{"telemetry.tls.ca_file", "certificate of the metrics endpoint's authority", text(func(c *Config) *string { return &c.Telemetry.TLS.CAFile })},
		{"telemetry.interval", "how often metrics are sent", length(func(c *Config) *time.Duration { return &c.Telemetry.Interval })},
		{"metrics.listen", "address of /metrics alone, or api to show it wherever the API listens; empty shows it with an API on localhost", text(func(c *Config) *string { return &c.Metrics.Listen })},
		{"limits.key_rate", "requests a second of one key; 0 for no limit", number(func(c *Config) *int { return &c.Limits.KeyRate })},
		{"limits.key_burst", "requests at once of one key", number(func(c *Config) *int { return &c.Limits.KeyBurst })},
		{"limits.address_rate", "requests a second without a key, of one remote address; 0 for no limit", number(func(c *Config) *int { return &c.Limits.AddressRate })},
		{"limits.address_burst", "requests at once without a key, of one remote address", number(func(c *Config) *int { return &c.Limits.AddressBurst })},
		{"limits.failed_keys", "keys that are not good that one remote address may try, at once and then each minute; 0 for no limit", number(func(c *Config) *int { return &c.Limits.FailedKeys })},
		{"limits.trusted_proxies", "networks whose X-Forwarded-For is believed, separated by commas", func(c *Config, v string) error {
			c.Limits.TrustedProxies = splitList(v)
			return nil
		}},
		{"limits.connections", "clients that may be connected at once", number(func(c *Config) *int { return &c.Limits.Connections })},
		{"page.trace_url", "where the page's links to traces lead, like https://grafana.example/trace/{trace_id}?span={span_id}", text(func(c *Config) *string { return &c.Page.TraceURL })},
		{"request_timeout", "longest time of a request apart from its waiting", length(func(c *Config) *time.Duration { return &c.RequestTimeout })},
		{"shutdown_timeout", "how long requests may take to end at shutdown", length(func(c *Config) *time.Duration { return &c.ShutdownTimeout })},
	}
}

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error {
		*field(c) = v
		return nil
	}
}

func secret(field func(*Config) *configopaque.String) func(*Config, string) error {
	return func(c *Config, v string) error {
		*field(c) = configopaque.String(v)
		return nil
	}
}

func boolean(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, v string) error {
		parsed, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", v)
		}
		*field(c) = parsed
		return nil
	}
}

func number(field func(*Config) *int) func(*Config, string) error {
	return func(c *Config, v string) error {
		parsed, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("%q is no whole number", v)
		}
		*field(c) = parsed
		return nil
	}
}

func length(field func(*Config) *time.Duration) func(*Config, string) error {
	return func(c *Config, v string) error {
		parsed, err := time.ParseDuration(v)
		if err != nil {
			return fmt.Errorf("%q is no length of time; write one like 15m, 48h or 10s", v)
		}
		*field(c) = parsed
		return nil
	}
}

// headers keeps the values out of errors: they are secrets.
func headers(field func(*Config) *map[string]configopaque.String) func(*Config, string) error {
	return func(c *Config, v string) error {
		parsed := map[string]configopaque.String{}
		for _, pair := range splitList(v) {
			name, secret, ok := strings.Cut(pair, "=")
			if name = strings.TrimSpace(name); !ok || name == "" {
				return errors.New("a header is not written name=value")
			}
			parsed[name] = configopaque.String(strings.TrimSpace(secret))
		}
		*field(c) = parsed
		return nil
	}
}

func splitList(v string) []string {
	var list []string
	for _, part := range strings.Split(v, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}
