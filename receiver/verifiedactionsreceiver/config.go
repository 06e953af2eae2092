package verifiedactionsreceiver

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/aevs"
)

// Config is what stands under receivers: verified_actions: in a collector's configuration.
type Config struct {
	// ServerConfig says where to listen, and how.
	ServerConfig confighttp.ServerConfig `mapstructure:",squash"`
	// AEVS is served when it has keys.
	AEVS AEVSConfig `mapstructure:"aevs"`
	// VerifiedActions is served when it has tokens, or when the server has auth.
	VerifiedActions VerifiedActionsConfig `mapstructure:"verified_actions"`
	// Storage is the extension that remembers receipts over a restart.
	Storage *component.ID `mapstructure:"storage"`
	// MaxConcurrentRequests are served at a time; others are told to come again.
	MaxConcurrentRequests int `mapstructure:"max_concurrent_requests"`
	// RetryAfter is what a sender is told to wait when the pipeline is busy.
	RetryAfter time.Duration `mapstructure:"retry_after"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// AEVSConfig says whose receipts are taken.
type AEVSConfig struct {
	Keys []KeyConfig `mapstructure:"keys"`
	// ReplayWindow is how old the time of a request may be.
	ReplayWindow time.Duration `mapstructure:"replay_window"`
	// ClockSkew is how far in the future it may be.
	ClockSkew time.Duration `mapstructure:"clock_skew"`
	// MaxBatchReceipts bounds one batch. With 0, batches are refused for good,
	// and SDKs send receipts one by one.
	MaxBatchReceipts int `mapstructure:"max_batch_receipts"`
	// MaxReceipts bounds how many receipts are remembered.
	MaxReceipts int `mapstructure:"max_receipts"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// KeyConfig is one AEVS key: an API key, or of version 2 an id and a public key.
type KeyConfig struct {
	APIKey configopaque.String `mapstructure:"api_key"`
	// ID and PublicKey (PEM) check signatures of version 2 without the secret.
	// The anchors of chains are then not checked.
	ID        string `mapstructure:"id"`
	PublicKey string `mapstructure:"public_key"`
	// Tenant is what the processor's tenant_from_auth: tenant reads.
	Tenant string `mapstructure:"tenant"`
	// Agents are those that may use the key; without any, all may.
	Agents []AgentConfig `mapstructure:"agents"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// AgentConfig is an agent that may use a key.
type AgentConfig struct {
	ID string `mapstructure:"id"`
	// Name is what the agent is called in telemetry and contracts; without one, the id.
	Name string `mapstructure:"name"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// VerifiedActionsConfig says who may send VerifiedActions.
type VerifiedActionsConfig struct {
	Tokens []TokenConfig `mapstructure:"tokens"`
	// VersionKey and PayloadKey are the metadata entries of a message, and the
	// attributes of the spans; VA does not fix them.
	VersionKey string `mapstructure:"version_key"`
	PayloadKey string `mapstructure:"payload_key"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// TokenConfig is a bearer token.
type TokenConfig struct {
	Token configopaque.String `mapstructure:"token"`
	// Tenant is what the processor's tenant_from_auth: tenant reads.
	Tenant string `mapstructure:"tenant"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var _ confmap.Validator = (*Config)(nil)

// NewDefaultConfig listens on this machine only and lets nobody in.
func NewDefaultConfig() *Config {
	config := &Config{
		ServerConfig: confighttp.NewDefaultServerConfig(),
		AEVS: AEVSConfig{
			ReplayWindow:     5 * time.Minute,
			ClockSkew:        time.Minute,
			MaxBatchReceipts: 100,
			MaxReceipts:      50_000,
		},
		VerifiedActions: VerifiedActionsConfig{
			VersionKey: verifiedactions.DefaultVersionKey,
			PayloadKey: verifiedactions.DefaultPayloadKey,
		},
		MaxConcurrentRequests: 64,
		RetryAfter:            5 * time.Second,
	}
	config.ServerConfig.NetAddr.Endpoint = "localhost:4320"
	config.ServerConfig.ReadTimeout = 30 * time.Second
	config.ServerConfig.MaxRequestBodySize = 20 << 20
	return config
}

func createDefaultConfig() component.Config { return NewDefaultConfig() }

// Validate reports everything that is wrong, each by its place in the
// configuration. No error repeats a secret.
func (c *Config) Validate() error {
	_, keyErrs := c.AEVS.parseKeys()
	errs := append(keyErrs, c.AEVS.checkLimits()...)
	errs = append(errs, c.VerifiedActions.check()...)
	if c.ServerConfig.NetAddr.Endpoint == "" {
		errs = append(errs, errors.New("endpoint: it is empty; write where to listen, like localhost:4320"))
	}
	if c.ServerConfig.MaxRequestBodySize < 0 {
		errs = append(errs, errors.New("max_request_body_size: it is negative"))
	}
	if c.MaxConcurrentRequests < 1 {
		errs = append(errs, errors.New("max_concurrent_requests: it has to be 1 or more"))
	}
	if c.RetryAfter < time.Second {
		errs = append(errs, errors.New("retry_after: it has to be 1s or more"))
	}
	if len(c.AEVS.Keys) == 0 && !c.servesActions() {
		errs = append(errs, errors.New("aevs.keys: there is none, and neither a token under verified_actions.tokens nor auth, so nobody could send anything; add one of them"))
	}
	return errors.Join(errs...)
}

// servesActions says whether anybody may send VerifiedActions.
func (c *Config) servesActions() bool {
	return len(c.VerifiedActions.Tokens) > 0 || c.ServerConfig.Auth.HasValue()
}

func (c *AEVSConfig) checkLimits() []error {
	var errs []error
	if c.ReplayWindow <= 0 {
		errs = append(errs, errors.New("aevs.replay_window: it has to be more than 0"))
	}
	if c.ClockSkew < 0 {
		errs = append(errs, errors.New("aevs.clock_skew: it is negative"))
	}
	if c.MaxBatchReceipts < 0 {
		errs = append(errs, errors.New("aevs.max_batch_receipts: it is negative; write 0 to have receipts sent one by one"))
	}
	if c.MaxReceipts < 1 {
		errs = append(errs, errors.New("aevs.max_receipts: it has to be 1 or more"))
	}
	return errs
}

// parseKeys returns the keys by their id.
func (c *AEVSConfig) parseKeys() (map[string]*credential, []error) {
	keys := make(map[string]*credential, len(c.Keys))
	var errs []error
	for i := range c.Keys {
		place := fmt.Sprintf("aevs.keys[%d]", i)
		made, keyErrs := c.Keys[i].parse(place)
		errs = append(errs, keyErrs...)
		if made == nil {
			continue
		}
		if keys[made.key.ID()] != nil {
			errs = append(errs, fmt.Errorf("%s: an earlier key has the id %s too", place, made.key.ID()))
		}
		keys[made.key.ID()] = made
	}
	return keys, errs
}

func (k *KeyConfig) parse(place string) (*credential, []error) {
	var errs []error
	made := &credential{tenant: k.Tenant, agents: map[string]string{}}
	for i, agent := range k.Agents {
		where := fmt.Sprintf("%s.agents[%d]", place, i)
		if err := engine.CheckOpaque(where+".id", agent.ID); err != nil {
			errs = append(errs, err)
		}
		made.agents[agent.ID] = agent.Name
		if agent.Name != "" {
			if err := engine.CheckOpaque(where+".name", agent.Name); err != nil {
				errs = append(errs, err)
			}
		}
	}
	errs = append(errs, checkTenant(place, k.Tenant)...)
	var err error
	switch {
	case k.APIKey != "" && (k.ID != "" || k.PublicKey != ""):
		err = errors.New("api_key: it is set and so is id or public_key; an API key has both in it")
	case k.APIKey != "":
		if made.key, err = aevs.ParseKey(string(k.APIKey)); err != nil {
			err = fmt.Errorf("api_key: %w", err)
		}
	case k.PublicKey != "":
		if made.key, err = aevs.ParsePublicKey(k.ID, k.PublicKey); err != nil {
			err = fmt.Errorf("public_key: %w", err)
		}
	default:
		err = errors.New("api_key: it is empty; write the key that the SDK has, or id and public_key of version 2")
	}
	if err != nil {
		return nil, append(errs, fmt.Errorf("%s.%w", place, err))
	}
	return made, errs
}

func checkTenant(place, tenant string) []error {
	if tenant == "" {
		return nil
	}
	if err := engine.CheckOpaque(place+".tenant", tenant); err != nil {
		return []error{err}
	}
	return nil
}

func (c *VerifiedActionsConfig) check() []error {
	var errs []error
	for i := range c.Tokens {
		place := fmt.Sprintf("verified_actions.tokens[%d]", i)
		if len(c.Tokens[i].Token) < minTokenBytes {
			errs = append(errs, fmt.Errorf("%s.token: it has less than %d characters, so that it could be guessed", place, minTokenBytes))
		}
		errs = append(errs, checkTenant(place, c.Tokens[i].Tenant)...)
	}
	if c.VersionKey == "" {
		errs = append(errs, errors.New("verified_actions.version_key: it is empty; name the metadata entry that holds the version"))
	}
	if c.PayloadKey == "" {
		errs = append(errs, errors.New("verified_actions.payload_key: it is empty; name the metadata entry that holds the payload"))
	}
	if c.VersionKey != "" && c.VersionKey == c.PayloadKey {
		errs = append(errs, errors.New("verified_actions.payload_key: it is the same as version_key"))
	}
	return errs
}

const minTokenBytes = 16
