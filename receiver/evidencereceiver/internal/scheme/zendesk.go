package scheme

import (
	"encoding/base64"
	"net/http"
	"time"

	"github.com/countersign-otel/countersign/engine"
)

var zendesk = Scheme{
	Name:     "zendesk",
	Sentence: "`X-Zendesk-Webhook-Signature`: HMAC-SHA256 in base64 over time and body",
	Trust:    engine.Independent,
	Timed:    true,
	New:      newZendesk,
}

type zendeskVerifier struct {
	signer    *signer
	tolerance time.Duration
}

func newZendesk(o Options) (Verifier, error) {
	s, err := sha256Signer(o.Secrets)
	if err != nil {
		return nil, err
	}
	return &zendeskVerifier{s, o.Tolerance}, nil
}

func (v *zendeskVerifier) Begin(header http.Header, now time.Time) (Check, error) {
	value, timestamp := header.Get("X-Zendesk-Webhook-Signature"), header.Get("X-Zendesk-Webhook-Signature-Timestamp")
	if value == "" || timestamp == "" {
		return nil, ErrUnsigned
	}
	signature, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return nil, ErrMalformed
	}
	at, ok := readTime(timestamp)
	if !ok {
		return nil, ErrMalformed
	}
	if err := within(at, now, v.tolerance); err != nil {
		return nil, err
	}
	return v.signer.one(signature, timestamp), nil
}

// Describe reads the event that every delivery of an event subscription is.
func (v *zendeskVerifier) Describe(_ http.Header, body []byte) Description { return describe(body) }
