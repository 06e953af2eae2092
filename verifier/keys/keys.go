// Package keys makes and recognises API keys. A key is shown once; the store
// holds its SHA-256 and its visible start.
package keys

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// Errors about keys. They never repeat the secret.
var (
	// ErrInvalid: no such key, or no key at all by its form.
	ErrInvalid = errors.New("unknown key")
	// ErrRevoked and ErrExpired: the key was good once.
	ErrRevoked = errors.New("the key was revoked")
	ErrExpired = errors.New("the key has expired")
	// ErrRequest is wrapped by errors about a key that cannot be made.
	ErrRequest = errors.New("cannot make a key")
)

const (
	scheme      = "cs"
	secretBytes = 32
	secretText  = 43 // of 32 bytes in base64url without padding
	visibleText = 8
)

// Roles lists the roles of keys.
func Roles() []string {
	return []string{ledger.RoleRecorder, ledger.RoleEvidence, ledger.RoleAnalyst, ledger.RoleViewer}
}

// Request says what key to make.
type Request struct {
	// Role is one of Roles; Tenant empty means engine.DefaultTenant.
	Role, Tenant string
	// Sources bind an evidence key: it pushes facts of these sources and no others.
	Sources []string
	// ExpiresAt is nil for a key that does not expire.
	ExpiresAt *engine.Instant
}

// Create makes a key, stores its hash, notes it in the audit log and returns
// the secret, which is not kept anywhere.
func Create(ctx context.Context, store ledger.Ledger, request Request, now engine.Instant) (ledger.Key, configopaque.String, error) {
	key, secret, err := Make(request, now)
	if err != nil {
		return ledger.Key{}, "", err
	}
	err = store.Update(ctx, func(tx ledger.Tx) error {
		if err := tx.CreateKey(ctx, key); err != nil {
			return err
		}
		return tx.NoteKeyEvents(ctx, []ledger.KeyEvent{about(key, ledger.KeyCreated, key.Role, now)})
	})
	if err != nil {
		return ledger.Key{}, "", err
	}
	return key, secret, nil
}

// Make makes a key without storing it.
func Make(request Request, now engine.Instant) (ledger.Key, configopaque.String, error) {
	sources, err := checkRequest(request)
	if err != nil {
		return ledger.Key{}, "", err
	}
	// rand.Read of crypto/rand never fails; it ends the program if the system has no randomness.
	random := make([]byte, secretBytes+8)
	_, _ = rand.Read(random)
	text := base64.RawURLEncoding.EncodeToString(random[:secretBytes])
	start := scheme + "_" + request.Role + "_"
	key := ledger.Key{
		Tenant:    request.Tenant,
		ID:        "key_" + hex.EncodeToString(random[secretBytes:]),
		Role:      request.Role,
		Prefix:    start + text[:visibleText],
		Hash:      sha256.Sum256([]byte(start + text)),
		Sources:   sources,
		CreatedAt: now,
		ExpiresAt: request.ExpiresAt,
	}
	if key.Tenant == "" {
		key.Tenant = engine.DefaultTenant
	}
	return key, configopaque.String(start + text), nil
}

// Errors of Rotate.
var (
	// ErrGone: a key that is revoked, has expired or was rotated before cannot be rotated; it is wrapped with the reason.
	ErrGone = errors.New("cannot rotate the key")
	// ErrRotated is the reason for a key that was rotated before.
	ErrRotated = errors.New("it was rotated already")
)

// MostGrace bounds how long two secrets of one key may be good.
const MostGrace = 90 * engine.Day

// Rotate makes a key that may do what an old one may, and lets the old one
// expire after a grace period, in which both are good: so its users can change
// over one by one. The new one lives as long as the old one was made for. It
// fails with ledger.ErrNotFound for an unknown id, and with ErrGone.
func Rotate(ctx context.Context, store ledger.Ledger, tenant, id string, grace engine.Duration, now engine.Instant) (ledger.Key, configopaque.String, error) {
	if grace < 0 || grace > MostGrace {
		return ledger.Key{}, "", fmt.Errorf("%w: the old one may stay good for 0 to 90 days", ErrRequest)
	}
	var key ledger.Key
	var secret configopaque.String
	err := store.Update(ctx, func(tx ledger.Tx) error {
		old, err := byID(ctx, tx, tenant, id)
		switch {
		case err != nil:
			return err
		case old.RevokedAt != nil:
			return fmt.Errorf("%w: %w", ErrGone, ErrRevoked)
		case old.ExpiresAt != nil && *old.ExpiresAt <= now:
			return fmt.Errorf("%w: %w", ErrGone, ErrExpired)
		}
		// This first: who rotates the same key at the same time waits here, and then sees the successor.
		if err := tx.ExpireKey(ctx, tenant, id, now.Add(grace)); err != nil {
			return err
		}
		successor, err := successorOf(ctx, tx, tenant, id)
		switch {
		case err != nil:
			return err
		case successor != "":
			return fmt.Errorf("%w: %w, and is only good until its users have changed over to %s; rotate that one", ErrGone, ErrRotated, successor)
		}
		request := Request{Role: old.Role, Tenant: tenant, Sources: old.Sources}
		if old.ExpiresAt != nil {
			end := now.Add(engine.Duration(*old.ExpiresAt - old.CreatedAt))
			request.ExpiresAt = &end
		}
		if key, secret, err = Make(request, now); err != nil {
			return err
		}
		if err := tx.CreateKey(ctx, key); err != nil {
			return err
		}
		return tx.NoteKeyEvents(ctx, []ledger.KeyEvent{
			about(old, ledger.KeyRotated, key.ID, now), about(key, ledger.KeyCreated, key.Role, now),
		})
	})
	if err != nil {
		return ledger.Key{}, "", err
	}
	return key, secret, nil
}

// byID names the key that is not there.
func byID(ctx context.Context, tx ledger.Tx, tenant, id string) (ledger.Key, error) {
	key, err := tx.KeyByID(ctx, tenant, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return key, fmt.Errorf("%w: no key %q", ledger.ErrNotFound, id)
	}
	return key, err
}

func checkRequest(r Request) ([]string, error) {
	if !slices.Contains(Roles(), r.Role) {
		return nil, fmt.Errorf("%w: unknown role %q; write one of %s", ErrRequest, r.Role, strings.Join(Roles(), ", "))
	}
	if r.Tenant != "" {
		if err := engine.CheckOpaque("tenant", r.Tenant); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRequest, err)
		}
	}
	if r.Role == ledger.RoleEvidence && len(r.Sources) == 0 {
		return nil, fmt.Errorf("%w: an evidence key needs the sources that it pushes facts for; name each with --source", ErrRequest)
	}
	if r.Role != ledger.RoleEvidence && len(r.Sources) > 0 {
		return nil, fmt.Errorf("%w: only an evidence key is bound to sources, not one with the role %s", ErrRequest, r.Role)
	}
	sources := make([]string, 0, len(r.Sources))
	for _, text := range r.Sources {
		source, err := engine.Identifier(text)
		if err != nil {
			return nil, fmt.Errorf("%w: source: %w", ErrRequest, err)
		}
		sources = append(sources, source)
	}
	slices.Sort(sources)
	return slices.Compact(sources), nil
}

// Find recognises a secret. It fails with ErrInvalid, or as the store fails, or
// with ErrRevoked or ErrExpired: then it returns the key all the same, for the audit log.
func Find(ctx context.Context, store ledger.Ledger, secret configopaque.String, now engine.Instant) (ledger.Key, error) {
	if !wellFormed(string(secret)) {
		return ledger.Key{}, ErrInvalid
	}
	hash := sha256.Sum256([]byte(secret))
	var key ledger.Key
	err := store.View(ctx, func(tx ledger.Tx) (err error) {
		key, err = tx.KeyByHash(ctx, hash)
		return err
	})
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return ledger.Key{}, ErrInvalid
	case err != nil:
		return ledger.Key{}, err
	case subtle.ConstantTimeCompare(key.Hash[:], hash[:]) != 1:
		return ledger.Key{}, ErrInvalid
	case key.RevokedAt != nil:
		return key, ErrRevoked
	case key.ExpiresAt != nil && *key.ExpiresAt <= now:
		return key, ErrExpired
	}
	return key, nil
}

// wellFormed says whether a text can be a key at all, before the store is asked.
func wellFormed(secret string) bool {
	rest, ok := strings.CutPrefix(secret, scheme+"_")
	if !ok {
		return false
	}
	role, text, ok := strings.Cut(rest, "_")
	if !ok || len(text) != secretText || !slices.Contains(Roles(), role) {
		return false
	}
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(decoded) == secretBytes
}
