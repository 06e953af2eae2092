package agentactionprocessor

import (
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
	"github.com/countersign-otel/countersign/internal/settings"
	"github.com/countersign-otel/countersign/processor/agentactionprocessor/dialect"
	"github.com/countersign-otel/countersign/processor/agentactionprocessor/internal/metadata"
)

// Config is what stands under processors: agent_action: in a collector's configuration.
type Config struct {
	// Dialects are those to recognise; without any, all that are on by default.
	Dialects []string `mapstructure:"dialects"`
	// Rules say which tool calls are recorded, as what. A call may be recorded by several.
	Rules []RuleConfig `mapstructure:"rules"`
	// VerifiedActions says where that metadata stands.
	VerifiedActions VerifiedActionsConfig `mapstructure:"verified_actions"`
	// Tenancy says to whom everything here belongs.
	settings.Tenancy `mapstructure:",squash"`
}

// RuleConfig records the tool calls that it is for under one contract.
// Values are OTTL value expressions unless said otherwise.
type RuleConfig struct {
	// Name is what metrics and errors call the rule; rules[0] and so on without it.
	Name string `mapstructure:"name"`
	// Tool is the tool's name, exact or a glob with * ? [a-z] {a,b}. Not an expression.
	Tool string `mapstructure:"tool"`
	// VerifiedAction restricts the rule to VerifiedActions of one type: web, llm, mcp or integration.
	VerifiedAction string `mapstructure:"verified_action"`
	// Condition is an OTTL condition.
	Condition string `mapstructure:"condition"`
	// Contract and ContractVersion name the contract; without a version, the latest at the time.
	Contract        string `mapstructure:"contract"`
	ContractVersion int    `mapstructure:"contract_version"`
	// ActionID identifies the action; without it the ids of the telemetry do (decision D13).
	ActionID string `mapstructure:"action_id"`
	// SubjectID names the record that the action changes.
	SubjectID string `mapstructure:"subject_id"`
	// SubjectKind and ActionType are plain text; without them the contract's hold.
	SubjectKind string `mapstructure:"subject_kind"`
	ActionType  string `mapstructure:"action_type"`
	WorkflowID  string `mapstructure:"workflow_id"`
	// AgentID is who acted; without it the agent that stands on the span or record.
	AgentID string `mapstructure:"agent_id"`
	Channel string `mapstructure:"channel"`
	// Compensates is the id of the action that this one corrects.
	Compensates string `mapstructure:"compensates"`
	// RequestedAt is a time, RFC 3339 text or Unix nanoseconds; without it the start of the call.
	RequestedAt string `mapstructure:"requested_at"`
	// Params are the action's parameters: all (the default), none, or a map of name to expression.
	Params ParamsConfig `mapstructure:"params"`
}

// ParamsConfig is all, none, or a map of parameter name to OTTL value expression.
type ParamsConfig struct {
	// Mode is all, none or empty, which is all where Values is nil.
	Mode string `mapstructure:"-"`
	// Values are expressions by name.
	Values map[string]string `mapstructure:"-"`
}

// What params may be in place of a map.
const (
	allParams = "all"
	noParams  = "none"
)

var _ confmap.Unmarshaler = (*ParamsConfig)(nil)

// UnmarshalText reads all or none.
func (p *ParamsConfig) UnmarshalText(text []byte) error {
	if mode := string(text); mode != allParams && mode != noParams {
		return fmt.Errorf("%q: write all, none, or a map of names to expressions", mode)
	}
	*p = ParamsConfig{Mode: string(text)}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (p ParamsConfig) MarshalText() ([]byte, error) { return []byte(p.Mode), nil }

// Unmarshal reads a map of names to expressions.
func (p *ParamsConfig) Unmarshal(conf *confmap.Conf) error {
	values := map[string]string{}
	for name, value := range conf.ToStringMap() {
		text, ok := value.(string)
		if !ok {
			return fmt.Errorf("%s: an expression is text; put %v in quotes", name, value)
		}
		values[name] = text
	}
	*p = ParamsConfig{Values: values}
	return nil
}

// VerifiedActionsConfig names the keys of VerifiedActions metadata; VA does not fix them.
type VerifiedActionsConfig struct {
	VersionKey string `mapstructure:"version_key"`
	PayloadKey string `mapstructure:"payload_key"`
	// MessageKeys are attributes that hold a whole chat message as JSON.
	MessageKeys []string `mapstructure:"message_keys"`
}

// NewDefaultConfig recognises all dialects that are on by default and has no rules.
func NewDefaultConfig() *Config {
	return &Config{VerifiedActions: VerifiedActionsConfig{
		VersionKey: verifiedactions.DefaultVersionKey,
		PayloadKey: verifiedactions.DefaultPayloadKey,
	}}
}

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
	recognizer, err := dialect.New(c.Dialects...)
	if err != nil {
		err = fmt.Errorf("dialects: %w", err)
	}
	errs := append([]error{err}, c.Tenancy.Check()...)
	errs = append(errs, c.VerifiedActions.check()...)
	rules, ruleErrs := compileRules(c.Rules)
	errs = append(errs, ruleErrs...)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	rules.recognizer = recognizer
	return rules, nil
}

func (c *VerifiedActionsConfig) check() []error {
	var errs []error
	if c.VersionKey == "" {
		errs = append(errs, errors.New("verified_actions.version_key: it is empty; name the attribute that holds the version"))
	}
	if c.PayloadKey == "" {
		errs = append(errs, errors.New("verified_actions.payload_key: it is empty; name the attribute that holds the payload"))
	}
	if c.VersionKey != "" && c.VersionKey == c.PayloadKey {
		errs = append(errs, errors.New("verified_actions.payload_key: it is the same as version_key"))
	}
	if slices.Contains(c.MessageKeys, "") {
		errs = append(errs, errors.New("verified_actions.message_keys: one is empty; name attributes that hold chat messages"))
	}
	return errs
}

// FindConfig takes the settings of one agent_action processor out of a whole
// collector configuration, for tools. name is the part after the slash of
// agent_action/name; when it is empty there must be only one.
func FindConfig(collector *confmap.Conf, name string) (*Config, error) {
	config := NewDefaultConfig()
	if err := settings.FindProcessor(collector, metadata.Type.String(), name, config); err != nil {
		return nil, err
	}
	return config, nil
}
