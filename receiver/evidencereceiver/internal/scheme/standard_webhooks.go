package scheme

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/countersign-otel/countersign/engine"
)

var standardWebhooks = Scheme{
	Name:     "standard_webhooks",
	Sentence: "`webhook-signature` (or Svix' `svix-signature`): `v1,` and HMAC-SHA256 in base64 over id, time and body",
	Trust:    engine.Independent,
	Timed:    true,
	New:      newStandardWebhooks,
}

type standardVerifier struct {
	signer    *signer
	tolerance time.Duration
}

var errStandardSecret = errors.New("it is no base64; write it as the sender shows it, like whsec_ and base64")

// newStandardWebhooks: a secret is base64 behind whsec_.
func newStandardWebhooks(o Options) (Verifier, error) {
	decoded := make([]configopaque.String, len(o.Secrets))
	for i, secret := range o.Secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(secret), "whsec_"))
		if err != nil {
			return nil, fmt.Errorf("secrets[%d]: %w", i, errStandardSecret)
		}
		decoded[i] = configopaque.String(key)
	}
	s, err := sha256Signer(decoded)
	if err != nil {
		return nil, err
	}
	return &standardVerifier{s, o.Tolerance}, nil
}

func (v *standardVerifier) Begin(header http.Header, now time.Time) (Check, error) {
	id, timestamp, value := standardHeader(header, "id"), standardHeader(header, "timestamp"), standardHeader(header, "signature")
	if id == "" || timestamp == "" || value == "" {
		return nil, ErrUnsigned
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return nil, ErrMalformed
	}
	signatures := readStandard(value)
	// A dot in the id would move the border between id and time.
	if len(signatures) == 0 || strings.Contains(id, ".") {
		return nil, ErrMalformed
	}
	if err := within(time.Unix(seconds, 0), now, v.tolerance); err != nil {
		return nil, err
	}
	before := id + "." + timestamp + "."
	return func(body []byte) (int, bool) { return v.signer.match(signatures, before, body, "") }, nil
}

func standardHeader(header http.Header, name string) string {
	if value := header.Get("Webhook-" + name); value != "" {
		return value
	}
	return header.Get("Svix-" + name)
}

// readStandard reads "v1,<base64> v1,<base64>". Other versions are passed over.
func readStandard(value string) (signatures [][]byte) {
	for item := range strings.SplitSeq(value, " ") {
		text, ok := strings.CutPrefix(item, "v1,")
		if !ok || len(signatures) == maxSignatures {
			continue
		}
		if signature, err := base64.StdEncoding.DecodeString(text); err == nil {
			signatures = append(signatures, signature)
		}
	}
	return signatures
}

// Describe: the id is signed, and stays the same when a delivery is repeated.
func (v *standardVerifier) Describe(header http.Header, body []byte) Description {
	return Description{Event: describe(body).Event, ID: standardHeader(header, "id")}
}
