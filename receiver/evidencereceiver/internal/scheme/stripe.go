package scheme

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-otel/countersign/engine"
)

var stripe = Scheme{
	Name:     "stripe",
	Sentence: "`Stripe-Signature`: HMAC-SHA256 in hex over time and body, several `v1` at once while a secret is rolled",
	Trust:    engine.Independent,
	Timed:    true,
	New:      newStripe,
}

type stripeVerifier struct {
	signer    *signer
	tolerance time.Duration
}

func newStripe(o Options) (Verifier, error) {
	s, err := sha256Signer(o.Secrets)
	if err != nil {
		return nil, err
	}
	return &stripeVerifier{s, o.Tolerance}, nil
}

// Begin reads "t=1790592120,v1=<hex>,v1=<hex>,v0=<hex>". Schemes other than v1 are passed over.
func (v *stripeVerifier) Begin(header http.Header, now time.Time) (Check, error) {
	value := header.Get("Stripe-Signature")
	if value == "" {
		return nil, ErrUnsigned
	}
	timestamp, signatures := readStripe(value)
	if timestamp == "" || len(signatures) == 0 {
		return nil, ErrMalformed
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return nil, ErrMalformed
	}
	if err := within(time.Unix(seconds, 0), now, v.tolerance); err != nil {
		return nil, err
	}
	return func(body []byte) (int, bool) { return v.signer.match(signatures, timestamp+".", body, "") }, nil
}

func readStripe(value string) (timestamp string, signatures [][]byte) {
	for item := range strings.SplitSeq(value, ",") {
		key, text, _ := strings.Cut(strings.TrimSpace(item), "=")
		switch key {
		case "t":
			if timestamp != "" {
				return "", nil
			}
			timestamp = text
		case "v1":
			signature, err := hex.DecodeString(text)
			if err == nil && len(signatures) < maxSignatures {
				signatures = append(signatures, signature)
			}
		}
	}
	return timestamp, signatures
}

// Describe reads the event object that every delivery is.
func (v *stripeVerifier) Describe(_ http.Header, body []byte) Description { return describe(body) }
