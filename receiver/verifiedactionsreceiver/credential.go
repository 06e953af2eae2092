package verifiedactionsreceiver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/client"

	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/aevs"
)

// credential is an AEVS key and what it is good for.
type credential struct {
	key    *aevs.Key
	tenant string
	// agents are the names of those that may use the key; empty lets all.
	agents map[string]string
}

// agent is what an agent is called; false where it may not use the key.
func (c *credential) agent(id string) (name string, ok bool) {
	if len(c.agents) == 0 {
		return id, true
	}
	name, ok = c.agents[id]
	if name == "" {
		name = id
	}
	return name, ok
}

// The headers of an AEVS request.
const (
	keyIDHeader     = "X-AEVS-Key-Id"
	timestampHeader = "X-AEVS-Timestamp"
	signatureHeader = "X-AEVS-Signature"
)

var (
	errUnknownKey = errors.New("unknown key, or wrong signature: check api_key in the SDK and aevs.keys in the collector")
	errTimestamp  = errors.New(timestampHeader + " is no time with an offset")
	errToken      = errors.New("unknown token: send Authorization: Bearer with one of verified_actions.tokens")
)

// authenticate checks a whole request. It does not say whether the key or the
// signature was wrong.
func (c *credential) authenticate(header http.Header, body []byte, now time.Time, limits *AEVSConfig) error {
	stamp := header.Get(timestampHeader)
	if !c.key.VerifyRequest(stamp, body, header.Get(signatureHeader)) {
		return errUnknownKey
	}
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return errTimestamp
	}
	switch age := now.Sub(at); {
	case age > limits.ReplayWindow:
		return fmt.Errorf("%s is %s old by the collector's clock; aevs.replay_window is %s", timestampHeader, age.Truncate(time.Millisecond), limits.ReplayWindow)
	case -age > limits.ClockSkew:
		return fmt.Errorf("%s is %s ahead of the collector's clock; aevs.clock_skew is %s", timestampHeader, (-age).Truncate(time.Millisecond), limits.ClockSkew)
	}
	return nil
}

// token is a bearer token by its hash, so that comparing takes the same time
// whatever its length.
type token struct {
	sum    [sha256.Size]byte
	tenant string
}

func newTokens(configs []TokenConfig) []token {
	tokens := make([]token, 0, len(configs))
	for i := range configs {
		tokens = append(tokens, token{sha256.Sum256([]byte(configs[i].Token)), configs[i].Tenant})
	}
	return tokens
}

// findToken compares with every token.
func findToken(tokens []token, header http.Header) (*token, bool) {
	scheme, sent, _ := strings.Cut(header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(sent)))
	var found *token
	for i := range tokens {
		if subtle.ConstantTimeCompare(sum[:], tokens[i].sum[:]) == 1 {
			found = &tokens[i]
		}
	}
	return found, found != nil && strings.EqualFold(scheme, "Bearer")
}

// principal is what processors see of the authenticated sender (decision D37).
type principal struct{ keyID, tenant string }

var _ client.AuthData = principal{}

// The attributes of an authenticated sender.
const (
	tenantAttribute = "tenant"
	keyIDAttribute  = "key_id"
)

// GetAttribute knows tenant and key_id; empty ones are not there.
func (p principal) GetAttribute(name string) any {
	switch {
	case name == tenantAttribute && p.tenant != "":
		return p.tenant
	case name == keyIDAttribute && p.keyID != "":
		return p.keyID
	}
	return nil
}

// GetAttributeNames lists what GetAttribute knows.
func (principal) GetAttributeNames() []string { return []string{keyIDAttribute, tenantAttribute} }

func (p principal) in(ctx context.Context) context.Context {
	info := client.FromContext(ctx)
	info.Auth = p
	return client.NewContext(ctx, info)
}
