package scheme

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/countersign-otel/countersign/engine"
)

var apiKey = Scheme{
	Name:     "api_key",
	Sentence: "an evidence key of your own pipeline, in `X-API-Key` or as `Authorization: Bearer`; proves the sender, not the body",
	Trust:    engine.Shared,
	Takes:    []string{OptionHeader, OptionPrefix, OptionDeliveryHeader, OptionEventHeader},
	New:      newAPIKey,
}

type apiKeyVerifier struct {
	options Options
	hashes  [][sha256.Size]byte
}

func newAPIKey(o Options) (Verifier, error) {
	if len(o.Secrets) == 0 {
		return nil, errNoSecret
	}
	v := &apiKeyVerifier{options: o}
	for i, secret := range o.Secrets {
		if err := checkSecret(i, string(secret)); err != nil {
			return nil, err
		}
		v.hashes = append(v.hashes, sha256.Sum256([]byte(secret)))
	}
	return v, nil
}

// Begin decides by the headers alone. Hashes are compared, so that the time
// says nothing of the length either.
func (v *apiKeyVerifier) Begin(header http.Header, _ time.Time) (Check, error) {
	key := v.key(header)
	if key == "" {
		return nil, ErrUnsigned
	}
	given, secret := sha256.Sum256([]byte(key)), -1
	for i := range v.hashes {
		if subtle.ConstantTimeCompare(given[:], v.hashes[i][:]) == 1 && secret < 0 {
			secret = i
		}
	}
	if secret < 0 {
		return nil, ErrSignature
	}
	return func([]byte) (int, bool) { return secret, true }, nil
}

func (v *apiKeyVerifier) key(header http.Header) string {
	if v.options.Header != "" {
		key, ok := strings.CutPrefix(header.Get(v.options.Header), v.options.Prefix)
		if !ok {
			return ""
		}
		return key
	}
	if key := header.Get("X-Api-Key"); key != "" {
		return key
	}
	scheme, key, _ := strings.Cut(header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return key
}

func (v *apiKeyVerifier) Describe(header http.Header, body []byte) Description {
	return describeBy(header, body, &v.options)
}
