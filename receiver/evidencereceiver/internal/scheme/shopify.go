package scheme

import (
	"encoding/base64"
	"net/http"
	"time"

	"github.com/countersign-otel/countersign/engine"
)

var shopify = Scheme{
	Name:     "shopify",
	Sentence: "`X-Shopify-Hmac-Sha256`: HMAC-SHA256 in base64 over the body; the topic is not signed",
	Trust:    engine.Independent,
	New:      newShopify,
}

type shopifyVerifier struct{ signer *signer }

func newShopify(o Options) (Verifier, error) {
	s, err := sha256Signer(o.Secrets)
	if err != nil {
		return nil, err
	}
	return &shopifyVerifier{s}, nil
}

func (v *shopifyVerifier) Begin(header http.Header, _ time.Time) (Check, error) {
	value := header.Get("X-Shopify-Hmac-Sha256")
	if value == "" {
		return nil, ErrUnsigned
	}
	signature, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return nil, ErrMalformed
	}
	return v.signer.one(signature, ""), nil
}

// Describe: the webhook id stays the same when a delivery is repeated.
func (v *shopifyVerifier) Describe(header http.Header, _ []byte) Description {
	return Description{Event: name(header.Get("X-Shopify-Topic")), ID: header.Get("X-Shopify-Webhook-Id")}
}
