package ledgerexporter

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/countersign-otel/countersign/engine"
)

// Config is what stands under exporters: ledger: in a collector's configuration.
type Config struct {
	// Store is sqlite:PATH, postgres://... or memory: (gone at exit, for trying out). It may hold a password.
	Store configopaque.String `mapstructure:"store"`
	// Role is recorder or evidence.
	Role Role `mapstructure:"role"`
	// Sources are those that the role evidence may write facts of.
	Sources []string `mapstructure:"sources"`
	// Trust is the highest that the role evidence gives: shared or independent (decision D10).
	Trust string `mapstructure:"trust"`
	// Connection names the provider of facts that do not name theirs.
	Connection string `mapstructure:"connection"`
	// Tenant owns what names no tenant (decision D37).
	Tenant string `mapstructure:"tenant"`
	// Tenants are further ones that a processor in front may name; "*" is any.
	Tenants []string `mapstructure:"tenants"`
	// Watermarks are observed for these sources (decision D12); a source that is
	// not named has none from this exporter.
	Watermarks map[string]WatermarkConfig `mapstructure:"watermarks"`
	// CreateSchema brings the store's schema up to date at start; without it, only that of SQLite.
	CreateSchema *bool `mapstructure:"create_schema"`

	TimeoutConfig exporterhelper.TimeoutConfig                             `mapstructure:",squash"`
	QueueConfig   configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	RetryConfig   configretry.BackOffConfig                                `mapstructure:"retry_on_failure"`
}

// WatermarkConfig says how a source's watermark follows from its facts.
type WatermarkConfig struct {
	// Lateness is how long after it happened a fact may come. Everything that
	// happened longer than that before the newest fact is taken to have come.
	Lateness time.Duration `mapstructure:"lateness"`
	// IdleTimeout is how long the source may be silent until silence counts as
	// nothing having happened, and the clock moves the watermark on; 0 is for ever.
	IdleTimeout time.Duration `mapstructure:"idle_timeout"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Role says which side of the line an exporter stands on.
type Role string

// The two roles (AC "Recording actions and pushing facts").
const (
	Recorder Role = "recorder"
	Evidence Role = "evidence"
)

// NewDefaultConfig is a recorder that never gives an item up while the store is away.
func NewDefaultConfig() *Config {
	timeout := exporterhelper.NewDefaultTimeoutConfig()
	// A batch of thousands of items behind a busy database takes longer than the usual five seconds.
	timeout.Timeout = 30 * time.Second
	retry := configretry.NewDefaultBackOffConfig()
	// Zero never gives up: after the usual five minutes an outage would lose actions.
	retry.MaxElapsedTime = 0
	return &Config{
		Role:          Recorder,
		Trust:         engine.Shared.String(),
		Tenant:        engine.DefaultTenant,
		TimeoutConfig: timeout,
		QueueConfig:   configoptional.Some(defaultQueue()),
		RetryConfig:   retry,
	}
}

// defaultQueue makes few large transactions of many small requests: each costs
// five round trips and a flush to disk, whatever its size. What comes seldom
// waits for others for a twentieth of a second.
func defaultQueue() exporterhelper.QueueBatchConfig {
	batch := exporterhelper.NewDefaultBatchConfig()
	batch.MinSize = 5000
	batch.FlushTimeout = 50 * time.Millisecond
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.Batch = configoptional.Some(batch)
	// Four connections keep the database busy with batches of this size.
	queue.NumConsumers = 4
	return queue
}

func createDefaultConfig() component.Config { return NewDefaultConfig() }

// anyTenant in Tenants allows every tenant.
const anyTenant = "*"

// Validate names everything that is wrong, each with its key.
func (c *Config) Validate() error {
	errs := []error{c.checkStore()}
	errs = append(errs, c.checkRole()...)
	errs = append(errs, c.checkWatermarks()...)
	if err := engine.CheckOpaque("tenant", c.Tenant); err != nil {
		errs = append(errs, fmt.Errorf("tenant: %w", err))
	}
	for i, tenant := range c.Tenants {
		if err := engine.CheckOpaque("tenant", tenant); err != nil {
			errs = append(errs, fmt.Errorf("tenants[%d]: %w", i, err))
		}
	}
	if c.Connection != "" {
		if err := engine.CheckOpaque("connection", c.Connection); err != nil {
			errs = append(errs, fmt.Errorf("connection: %w", err))
		}
	}
	return errors.Join(errs...)
}

// checkStore never repeats the URL: it may hold a password.
func (c *Config) checkStore() error {
	text := string(c.Store)
	scheme, rest, found := strings.Cut(text, ":")
	switch {
	case text == "":
		return errors.New("store: it is empty; write sqlite:PATH or postgres://HOST/DATABASE")
	case !found:
		return errors.New("store: it has no scheme; write sqlite:PATH or postgres://HOST/DATABASE")
	}
	switch scheme {
	case "memory":
		return nil
	case "sqlite":
		if rest == "" {
			return errors.New("store: sqlite: names no file; write sqlite:PATH")
		}
		return nil
	case "postgres", "postgresql":
		if u, err := url.Parse(text); err != nil || u.Host == "" {
			return errors.New("store: it is no URL; write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters of the password percent-encoded")
		}
		return nil
	}
	return fmt.Errorf("store: %.20q is no kind of store; write sqlite:PATH or postgres://HOST/DATABASE", scheme)
}

func (c *Config) checkRole() []error {
	switch c.Role {
	case Recorder:
		if len(c.Sources) > 0 {
			return []error{errors.New("sources: a recorder writes no facts of systems of record; remove them, or use an exporter of role evidence")}
		}
		return nil
	case Evidence:
		return append(c.checkSources(), c.checkTrust())
	}
	return []error{fmt.Errorf("role: %q: write recorder or evidence", c.Role)}
}

func (c *Config) checkSources() []error {
	var errs []error
	if len(c.Sources) == 0 {
		errs = append(errs, errors.New("sources: list the sources that this exporter may write facts of"))
	}
	for i, source := range c.Sources {
		name, err := engine.Identifier(source)
		if err == nil && name == engine.AgentSource {
			err = fmt.Errorf("%s is what agents say of themselves, which is no evidence", engine.AgentSource)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("sources[%d]: %w", i, err))
		}
	}
	return errs
}

func (c *Config) checkWatermarks() []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Watermarks)) {
		w := c.Watermarks[name]
		known := slices.ContainsFunc(c.Sources, func(s string) bool { return engine.Fold(s) == engine.Fold(name) })
		if c.Role != Evidence || !known {
			errs = append(errs, fmt.Errorf("watermarks::%s: it is none of the sources that this exporter writes", name))
		}
		if w.Lateness < time.Second {
			errs = append(errs, fmt.Errorf("watermarks::%s::lateness: write how late a fact may come, 1s or more", name))
		}
		if w.IdleTimeout != 0 && w.IdleTimeout < time.Second {
			errs = append(errs, fmt.Errorf("watermarks::%s::idle_timeout: it has to be 1s or more, or 0 for never", name))
		}
	}
	return errs
}

func (c *Config) checkTrust() error {
	if trust, err := engine.ParseTrust(c.Trust); err != nil || trust == engine.SelfReported {
		return fmt.Errorf("trust: %q: write shared or independent", c.Trust)
	}
	return nil
}

// createsSchema: a SQLite file is the collector's own as much as anybody's,
// and its first user makes it; a server's schema is the operator's.
func (c *Config) createsSchema() bool {
	if c.CreateSchema != nil {
		return *c.CreateSchema
	}
	return !strings.HasPrefix(string(c.Store), "postgres")
}

// storeURL gives PostgreSQL as many connections as batches are written at
// once, unless the URL says how many.
func (c *Config) storeURL() string {
	text := string(c.Store)
	if !strings.HasPrefix(text, "postgres") || !c.QueueConfig.HasValue() {
		return text
	}
	u, err := url.Parse(text)
	if err != nil || u.Query().Has("pool_max_conns") {
		return text
	}
	query := u.Query()
	query.Set("pool_max_conns", strconv.Itoa(c.QueueConfig.Get().NumConsumers))
	u.RawQuery = query.Encode()
	return u.String()
}
