package scheme

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"io"
	"strings"

	"go.opentelemetry.io/collector/config/configopaque"
)

// signer makes and compares HMACs under several secrets.
type signer struct {
	keys      [][]byte
	algorithm func() hash.Hash
}

// newSigner takes secrets as they are written. The error names the secret by
// its place and never repeats it.
func newSigner(secrets []configopaque.String, algorithm func() hash.Hash) (*signer, error) {
	if len(secrets) == 0 {
		return nil, errNoSecret
	}
	s := &signer{algorithm: algorithm}
	for i, secret := range secrets {
		if err := checkSecret(i, string(secret)); err != nil {
			return nil, err
		}
		s.keys = append(s.keys, []byte(secret))
	}
	return s, nil
}

func sha256Signer(secrets []configopaque.String) (*signer, error) {
	return newSigner(secrets, sha256.New)
}

// match says which secret made one of the signatures of what stands before
// and after the body. Every secret is tried on every signature, so that time
// says nothing.
func (s *signer) match(signatures [][]byte, before string, body []byte, after string) (secret int, ok bool) {
	secret = -1
	for i, key := range s.keys {
		mac := hmac.New(s.algorithm, key)
		_, _ = io.WriteString(mac, before)
		_, _ = mac.Write(body)
		_, _ = io.WriteString(mac, after)
		want := mac.Sum(nil)
		for _, signature := range signatures {
			if hmac.Equal(want, signature) && secret < 0 {
				secret = i
			}
		}
	}
	return secret, secret >= 0
}

// one is match for a single signature.
func (s *signer) one(signature []byte, before string) Check {
	return func(body []byte) (int, bool) { return s.match([][]byte{signature}, before, body, "") }
}

// maxSignatures bounds how many signatures of one delivery are compared.
const maxSignatures = 16

// decoders by the names of the option encoding.
var decoders = map[string]func(string) ([]byte, error){
	"hex":    hex.DecodeString,
	"base64": base64.StdEncoding.DecodeString,
	"base64url": func(text string) ([]byte, error) {
		return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	},
}
