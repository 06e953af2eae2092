package aevs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// Key checks what was signed with one AEVS key. It is safe for concurrent use.
type Key struct {
	id string
	// secret derives the anchors of chains; nil where only the public key is known.
	secret []byte
	// request and payload are the derived keys of authentication version 1.
	request, payload []byte
	// public is that of authentication version 2.
	public *ecdsa.PublicKey
}

// ErrKey is wrapped by every error about a key. None repeats any of the secret.
var ErrKey = errors.New("invalid AEVS key")

var (
	apiKey = regexp.MustCompile(`^aevs_sk(2?)_([a-zA-Z0-9]+)_([a-fA-F0-9]+)$`)
	keyID  = regexp.MustCompile(`^[a-zA-Z0-9]+$`)
)

// minSecretBytes is what the SDK demands.
const minSecretBytes = 16

// ParseKey reads an API key as the SDK takes it: aevs_sk_<id>_<hex> for
// authentication version 1, aevs_sk2_<id>_<hex> for version 2.
func ParseKey(text string) (*Key, error) {
	match := apiKey.FindStringSubmatch(strings.TrimSpace(text))
	if match == nil {
		return nil, fmt.Errorf("%w: write aevs_sk_<id>_<hex> or aevs_sk2_<id>_<hex>, as the SDK has it", ErrKey)
	}
	secret, err := hex.DecodeString(match[3])
	if err != nil {
		return nil, fmt.Errorf("%w: the secret has an odd number of hexadecimal digits", ErrKey)
	}
	if len(secret) < minSecretBytes {
		return nil, fmt.Errorf("%w: the secret has %d bytes; at least %d are needed", ErrKey, len(secret), minSecretBytes)
	}
	key := &Key{id: match[2], secret: secret}
	if match[1] == "" {
		return key, key.deriveV1()
	}
	return key, key.deriveV2()
}

func (k *Key) deriveV1() (err error) {
	if k.request, err = derive(k.secret, "aevs-request-v1"); err != nil {
		return err
	}
	k.payload, err = derive(k.secret, "aevs-payload-v1")
	return err
}

// deriveV2: the secret is the private scalar, as a number.
func (k *Key) deriveV2() error {
	const size = 32
	scalar := new(big.Int).SetBytes(k.secret)
	if scalar.BitLen() > 8*size {
		return fmt.Errorf("%w: the secret is no private key of P-256", ErrKey)
	}
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar.FillBytes(make([]byte, size)))
	if err != nil {
		return fmt.Errorf("%w: the secret is no private key of P-256", ErrKey)
	}
	k.public = &private.PublicKey
	return nil
}

// ParsePublicKey reads the public key of authentication version 2, PEM with a
// SubjectPublicKeyInfo. It checks signatures but not the anchors of chains,
// which need the secret.
func ParsePublicKey(id, text string) (*Key, error) {
	if !keyID.MatchString(id) {
		return nil, fmt.Errorf("%w: id %q: letters and digits were expected", ErrKey, clip(id))
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "PUBLIC KEY" || strings.TrimSpace(string(rest)) != "" {
		return nil, fmt.Errorf("%w: one PEM block PUBLIC KEY was expected", ErrKey)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: the block PUBLIC KEY does not hold one", ErrKey)
	}
	public, ok := parsed.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%w: the public key is not on P-256", ErrKey)
	}
	return &Key{id: id, public: public}, nil
}

// ID names the key in requests.
func (k *Key) ID() string { return k.id }

// VerifyRequest checks the signature of a request: that over the timestamp as
// it was sent and the hash of the body.
func (k *Key) VerifyRequest(timestamp string, body []byte, signature string) bool {
	sum := sha256.Sum256(body)
	return k.verify(k.request, []byte(timestamp+"\n"+hex.EncodeToString(sum[:])), signature)
}

// ErrSignature is returned for a receipt that this key did not sign.
var ErrSignature = errors.New("wrong signature")

// Open reads a receipt and checks its signature. With an error the receipt is
// none, but has the reference id where that reads.
func (k *Key) Open(wire []byte) (*Receipt, error) {
	r, err := parseReceipt(wire, false)
	if err != nil || k.signed(r) {
		return r, err
	}
	// The SDK sends normalised strings, so they are taken as they are first: two
	// versions of Unicode may disagree. Others may normalise only what they sign.
	if normal, err := parseReceipt(wire, true); err == nil && k.signed(normal) {
		return normal, nil
	}
	return &Receipt{ReferenceID: r.ReferenceID}, fmt.Errorf("%w: /%s does not match the receipt under key %s", ErrSignature, signatureKey, k.id)
}

func (k *Key) signed(r *Receipt) bool { return k.verify(k.payload, r.signed, r.Signature) }

func (k *Key) verify(secret, message []byte, signature string) bool {
	raw, err := hex.DecodeString(signature)
	if err != nil {
		return false
	}
	if k.public == nil {
		mac := hmac.New(sha256.New, secret)
		mac.Write(message)
		return hmac.Equal(mac.Sum(nil), raw)
	}
	const half = 32
	if len(raw) != 2*half {
		return false
	}
	sum := sha256.Sum256(message)
	return ecdsa.Verify(k.public, sum[:], new(big.Int).SetBytes(raw[:half]), new(big.Int).SetBytes(raw[half:]))
}

// Anchor is the prev_hash of a session's first receipt, in lower-case hex. It
// is false where the secret is not known.
func (k *Key) Anchor(sessionID string) (string, bool) {
	if k.secret == nil {
		return "", false
	}
	seed, err := derive(k.secret, "aevs-chain-v1|"+sessionID)
	if err != nil {
		return "", false
	}
	sum := sha256.Sum256(seed)
	return hex.EncodeToString(sum[:]), true
}

func derive(secret []byte, salt string) ([]byte, error) {
	const size = 32
	key, err := hkdf.Key(sha256.New, secret, []byte(salt), "", size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return key, nil
}
