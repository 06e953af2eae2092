package webhook

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/verifier/view"
)

// Config says who is told of events, and how hard it is tried.
type Config struct {
	Endpoints []Endpoint `mapstructure:"endpoints"`
	// Timeout bounds one attempt.
	Timeout time.Duration `mapstructure:"timeout"`
	// MaxAttempts is how often an event is tried before it becomes a dead letter.
	MaxAttempts int `mapstructure:"max_attempts"`
	// FirstBackOff is the pause after the first failure; it doubles up to
	// MaxBackOff. Of each pause, up to a half is left to chance.
	FirstBackOff time.Duration `mapstructure:"first_back_off"`
	MaxBackOff   time.Duration `mapstructure:"max_back_off"`
	// Concurrency is how many attempts at one endpoint are under way at once.
	Concurrency int `mapstructure:"concurrency"`
	// KeepDelivered and KeepDead are how long deliveries can be replayed.
	KeepDelivered time.Duration `mapstructure:"keep_delivered"`
	KeepDead      time.Duration `mapstructure:"keep_dead"`
}

// Endpoint is one address that is told of a tenant's events.
type Endpoint struct {
	// Name keeps the endpoint's place in the events; under a new name it begins anew, now.
	Name string `mapstructure:"name"`
	// Tenant empty means engine.DefaultTenant.
	Tenant string `mapstructure:"tenant"`
	// URL is https, or http to this machine.
	URL string `mapstructure:"url"`
	// Secret signs: whsec_ and base64 of 24 to 64 bytes (Standard Webhooks).
	// PreviousSecret signs too, while receivers change to the new one; may be empty.
	Secret         configopaque.String `mapstructure:"secret"`
	PreviousSecret configopaque.String `mapstructure:"previous_secret"`
	// Events and Contracts select; empty selects all.
	Events    []string `mapstructure:"events"`
	Contracts []string `mapstructure:"contracts"`
	// AllowHTTP lets events travel in the clear to other machines.
	AllowHTTP bool `mapstructure:"allow_http"`
}

// DefaultConfig tells nobody. Its attempts go on for about a day.
func DefaultConfig() Config {
	return Config{
		Timeout: 10 * time.Second, MaxAttempts: 18, FirstBackOff: 5 * time.Second, MaxBackOff: 6 * time.Hour,
		Concurrency: 8, KeepDelivered: 7 * 24 * time.Hour, KeepDead: 30 * 24 * time.Hour,
	}
}

// ErrConfig is wrapped by errors about settings.
var ErrConfig = errors.New("invalid webhook settings")

// Validate names every setting that is wrong and what is allowed. It never repeats a secret.
func (c Config) Validate() error {
	var all []error
	fail := func(format string, args ...any) {
		all = append(all, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	for _, length := range []struct {
		key   string
		value time.Duration
	}{
		{"first_back_off", c.FirstBackOff}, {"max_back_off", c.MaxBackOff}, {"keep_delivered", c.KeepDelivered}, {"keep_dead", c.KeepDead},
	} {
		if length.value < time.Second || length.value%time.Second != 0 {
			fail("webhooks.%s is %s; write whole seconds, at least 1s", length.key, length.value)
		}
	}
	if c.Timeout <= 0 || c.Timeout > time.Minute {
		fail("webhooks.timeout is %s; write a length above 0, up to 1m", c.Timeout)
	}
	if c.MaxAttempts < 1 || c.MaxAttempts > 100 {
		fail("webhooks.max_attempts is %d; write 1 to 100", c.MaxAttempts)
	}
	if c.Concurrency < 1 || c.Concurrency > 100 {
		fail("webhooks.concurrency is %d; write 1 to 100", c.Concurrency)
	}
	names := map[[2]string]bool{}
	for i, e := range c.Endpoints {
		e = e.filled()
		for _, err := range e.check() {
			fail("webhooks.endpoints[%d]: %w", i, err)
		}
		if names[[2]string{e.Tenant, e.Name}] {
			fail("webhooks.endpoints[%d]: the name %q stands twice; each endpoint of a tenant needs one of its own", i, e.Name)
		}
		names[[2]string{e.Tenant, e.Name}] = true
	}
	return errors.Join(all...)
}

// filled has the tenant, and contracts as they are stored.
func (e Endpoint) filled() Endpoint {
	if e.Tenant == "" {
		e.Tenant = engine.DefaultTenant
	}
	e.Contracts = slices.Clone(e.Contracts)
	for i := range e.Contracts {
		e.Contracts[i] = engine.Fold(e.Contracts[i])
	}
	return e
}

func (e Endpoint) check() (all []error) {
	fail := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if name, err := engine.Identifier(e.Name); err != nil || name != e.Name {
		fail("name is %q; write a lowercase name like crm", e.Name)
	}
	for _, kind := range e.Events {
		if !slices.Contains(view.EventKinds(), kind) {
			fail("events: %q is none of %s", kind, strings.Join(view.EventKinds(), ", "))
		}
	}
	key, err := secretOf(e.Secret)
	if err != nil {
		fail("secret %w", err)
	}
	if e.PreviousSecret != "" {
		previous, err := secretOf(e.PreviousSecret)
		if err != nil {
			fail("previous_secret %w", err)
		} else if bytes.Equal(previous, key) {
			fail("previous_secret is the secret itself; write the new one as secret and the one before it as previous_secret, or leave it out")
		}
	}
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		fail("url is no address like https://hooks.example/countersign") // it may hold a secret
	case u.User != nil:
		fail("url has a user name or password; the signature tells the receiver who sends")
	case u.Scheme == "http" && !e.AllowHTTP && !loopback(u.Hostname()):
		fail("url is http to %s, where others could read it; use https, or set allow_http: true", u.Host)
	}
	return all
}

// secretOf is the key of a secret; it is never part of an error.
func secretOf(secret configopaque.String) ([]byte, error) {
	text, ok := strings.CutPrefix(string(secret), "whsec_")
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		return nil, errors.New(`is not "whsec_" and the base64 of 24 to 64 random bytes; one is made by: echo "whsec_$(openssl rand -base64 32)"`)
	}
	return key, nil
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
