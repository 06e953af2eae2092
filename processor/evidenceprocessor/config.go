package evidenceprocessor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/ottlvalue"
	"github.com/countersign-otel/countersign/internal/record/delivery"
	"github.com/countersign-otel/countersign/internal/settings"
	"github.com/countersign-otel/countersign/processor/evidenceprocessor/internal/metadata"
)

// Config is what stands under processors: evidence: in a collector's configuration.
type Config struct {
	// Mappings are ready rules for well-known senders, by name or with settings.
	Mappings []MappingConfig `mapstructure:"mappings"`
	// Rules say which records become which facts. A record may become several.
	Rules []RuleConfig `mapstructure:"rules"`
	// Trust is that of records which no evidence receiver delivered: shared or
	// independent or self_reported. Without it they become no facts.
	Trust string `mapstructure:"trust"`
	// Connection names the provider of those records.
	Connection string `mapstructure:"connection"`
	// SealKey is that of evidence receivers in other collectors, whose records come here.
	SealKey configopaque.String `mapstructure:"seal_key"`
	// Tenancy says to whom everything here belongs.
	settings.Tenancy `mapstructure:",squash"`
}

// MappingConfig is a ready mapping with what is different here.
type MappingConfig struct {
	// Name is that of the mapping.
	Name string `mapstructure:"name"`
	// Source is what the facts are of; without it, the mapping's own.
	Source string `mapstructure:"source"`
	// Condition replaces the mapping's own, which most keep test data out with.
	Condition string `mapstructure:"condition"`
	// SubjectID comes before the mapping's own; where it gives no value, that one holds.
	SubjectID string `mapstructure:"subject_id"`
	// Attributes are added to those of every fact of the mapping.
	Attributes map[string]string `mapstructure:"attributes"`
}

var _ confmap.Unmarshaler = (*MappingConfig)(nil)

// UnmarshalText reads a mapping that is only named.
func (m *MappingConfig) UnmarshalText(text []byte) error {
	*m = MappingConfig{Name: string(text)}
	return nil
}

// Unmarshal reads a mapping with settings.
func (m *MappingConfig) Unmarshal(conf *confmap.Conf) error {
	for _, key := range ottlvalue.SortedNames(conf.ToStringMap()) {
		if !slices.Contains(mappingKeys, key) {
			return fmt.Errorf("has no key %s; known are %s", key, strings.Join(mappingKeys, ", "))
		}
	}
	return conf.Unmarshal(m)
}

var mappingKeys = []string{"name", "source", "condition", "subject_id", "attributes"}

// RuleConfig makes one fact of every record that it is for, or one of every
// item of a list in it. Values are OTTL value expressions unless said otherwise.
type RuleConfig struct {
	// Name is what metrics and errors call the rule; rules[0] and so on without it.
	Name string `mapstructure:"name"`
	// Source is plain text. With it, the rule is only for records of this
	// source; without it, for what any evidence receiver delivered.
	Source string `mapstructure:"source"`
	// Condition is an OTTL condition.
	Condition string `mapstructure:"condition"`
	// ForEach gives a list; the rule makes a fact of each item, which Item() reads.
	ForEach string `mapstructure:"for_each"`
	// FactType and SubjectKind are a name as it is, or an expression.
	FactType    string `mapstructure:"fact_type"`
	SubjectKind string `mapstructure:"subject_kind"`
	// SubjectID names the record of the source that the fact is about.
	SubjectID string `mapstructure:"subject_id"`
	// OccurredAt is a time or RFC 3339 text; without it the time of the log record.
	OccurredAt string `mapstructure:"occurred_at"`
	// Attributes are a map of names to expressions, or one expression that gives a map.
	Attributes AttributesConfig `mapstructure:"attributes"`
	// RawRef is the source's own id of the event; without it, it is made of the content (decision D36).
	RawRef string `mapstructure:"raw_ref"`
	// Links each give other subjects that are the same case (decision D7).
	Links []string `mapstructure:"links"`
	// Watermark is a time up to which the source has told everything (decision
	// D12). A rule with one makes no fact.
	Watermark string `mapstructure:"watermark"`
}

// AttributesConfig is a map of names to OTTL value expressions, or one of them.
type AttributesConfig struct {
	// Whole is one expression that gives a map.
	Whole string `mapstructure:"-"`
	// Values are expressions by name.
	Values map[string]string `mapstructure:"-"`
}

var _ confmap.Unmarshaler = (*AttributesConfig)(nil)

// UnmarshalText reads one expression.
func (a *AttributesConfig) UnmarshalText(text []byte) error {
	*a = AttributesConfig{Whole: string(text)}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (a AttributesConfig) MarshalText() ([]byte, error) { return []byte(a.Whole), nil }

// Unmarshal reads a map of names to expressions.
func (a *AttributesConfig) Unmarshal(conf *confmap.Conf) error {
	values := map[string]string{}
	for name, value := range conf.ToStringMap() {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("%s: an expression is text; put %v in quotes", name, value)
		}
		values[name] = text
	}
	*a = AttributesConfig{Values: values}
	return nil
}

// NewDefaultConfig has no rules, and believes evidence receivers alone.
func NewDefaultConfig() *Config { return &Config{} }

func createDefaultConfig() component.Config { return NewDefaultConfig() }

// Validate parses everything that can be parsed, so that a wrong expression is
// found before any telemetry comes. All errors are joined; each starts with
// the place in the configuration.
func (c *Config) Validate() error {
	_, err := c.compile()
	return err
}

// compile is Validate with its result.
func (c *Config) compile() (*compiled, error) {
	errs := c.Tenancy.Check()
	all := &compiled{connection: c.Connection}
	if c.Trust != "" {
		trust, err := engine.ParseTrust(c.Trust)
		if err != nil {
			errs = append(errs, fmt.Errorf("trust: %w", err))
		}
		all.trust = trust
	}
	if c.Connection != "" {
		if err := engine.CheckOpaque("connection", c.Connection); err != nil {
			errs = append(errs, fmt.Errorf("connection: %w", err))
		}
	}
	sealer, err := delivery.NewSealer(string(c.SealKey))
	if err != nil {
		errs = append(errs, fmt.Errorf("seal_key: %w", err))
	}
	all.sealer = sealer
	errs = append(errs, all.compileGroups(c)...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return all, nil
}

// Sources are those that the mappings and rules name, in order. any says that
// a rule is for whatever an evidence receiver delivers. The configuration has to be valid.
func (c *Config) Sources() (names []string, any bool) {
	all, err := c.compile()
	if err != nil {
		return nil, false
	}
	for _, g := range all.groups {
		for _, r := range g.rules {
			if r.source == "" {
				any = true
			} else {
				names = append(names, r.source)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), any
}

// FindConfig takes the settings of one evidence processor out of a whole
// collector configuration, for tools. name is the part after the slash of
// evidence/name; when it is empty there must be only one.
func FindConfig(collector *confmap.Conf, name string) (*Config, error) {
	config := NewDefaultConfig()
	if err := settings.FindProcessor(collector, metadata.Type.String(), name, config); err != nil {
		return nil, err
	}
	return config, nil
}
