package keys

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/sqlite"
)

func store(t *testing.T) ledger.Ledger {
	t.Helper()
	s, err := sqlite.OpenMemory(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestKeyIsShownOnceAndHashedAtRest(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), store(t)
	key, secret, err := Create(ctx, s, Request{Role: ledger.RoleEvidence, Tenant: "acme", Sources: []string{"Stripe", "crm", "stripe"}}, 100)
	if err != nil {
		t.Fatal(err)
	}
	text := string(secret)
	if !regexp.MustCompile(`^cs_evidence_[A-Za-z0-9_-]{43}$`).MatchString(text) {
		t.Errorf("secret has the form %q", regexp.MustCompile(`[A-Za-z0-9]`).ReplaceAllString(text, "x"))
	}
	if !strings.HasPrefix(text, key.Prefix) || len(key.Prefix) != len("cs_evidence_")+8 {
		t.Errorf("prefix %q", key.Prefix)
	}
	if key.Hash != sha256.Sum256([]byte(text)) {
		t.Error("the hash is not the SHA-256 of the secret")
	}
	for _, printed := range []string{fmt.Sprint(secret), fmt.Sprintf("%v %+v %#v", key, key, key)} {
		if strings.Contains(printed, text[len(key.Prefix):]) {
			t.Errorf("the secret is printed: %s", printed)
		}
	}
	found, err := Find(ctx, s, secret, 100)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(key, found); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"crm", "stripe"}, found.Sources); diff != "" {
		t.Error(diff)
	}
}

func TestKeysDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 100 {
		key, secret, err := Make(Request{Role: ledger.RoleViewer}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if seen[string(secret)] || seen[key.ID] {
			t.Fatal("a key was made twice")
		}
		seen[string(secret)], seen[key.ID] = true, true
		if key.Tenant != engine.DefaultTenant {
			t.Errorf("tenant %q", key.Tenant)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), store(t)
	expires := engine.Instant(200)
	key, secret, err := Create(ctx, s, Request{Role: ledger.RoleViewer, ExpiresAt: &expires}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name   string
		secret configopaque.String
		now    engine.Instant
		want   error
	}{
		{"good", secret, 199, nil},
		{"the moment it expires", secret, 200, ErrExpired},
		{"empty", "", 100, ErrInvalid},
		{"a space behind", secret + " ", 100, ErrInvalid},
		{"one shorter", secret[:len(secret)-1], 100, ErrInvalid},
		{"unknown role", "cs_root_" + secret[len("cs_viewer_"):], 100, ErrInvalid},
		{"no letters of base64", "cs_viewer_" + configopaque.String(strings.Repeat("!", 43)), 100, ErrInvalid},
		{"well formed and unknown", "cs_viewer_" + configopaque.String(strings.Repeat("A", 43)), 100, ErrInvalid},
	} {
		if _, err := Find(ctx, s, row.secret, row.now); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
	}
	err = s.Update(ctx, func(tx ledger.Tx) error { return tx.RevokeKey(ctx, key.Tenant, key.ID, 150) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Find(ctx, s, secret, 150); !errors.Is(err, ErrRevoked) {
		t.Errorf("revoked: %v", err)
	}
}

func TestRequestsThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		request Request
		want    string
	}{
		{Request{Role: "root"}, `cannot make a key: unknown role "root"; write one of recorder, evidence, analyst, viewer`},
		{Request{Role: ledger.RoleEvidence}, "cannot make a key: an evidence key needs the sources that it pushes facts for; name each with --source"},
		{Request{Role: ledger.RoleRecorder, Sources: []string{"crm"}}, "cannot make a key: only an evidence key is bound to sources, not one with the role recorder"},
		{Request{Role: ledger.RoleEvidence, Sources: []string{"the crm"}}, `cannot make a key: source: invalid identifier "the crm": write a letter, then letters, digits or _ . : -, at most 64 in all`},
		{Request{Role: ledger.RoleViewer, Tenant: "a\nb"}, "cannot make a key: invalid id: tenant has the control character U+000A"},
	} {
		if _, _, err := Make(row.request, 1); err == nil || err.Error() != row.want {
			t.Errorf("got  %v\nwant %s", err, row.want)
		}
	}
}

// TestRotate: both secrets are good in the grace period, and may do the same.
func TestRotate(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), store(t)
	expires := engine.Instant(1000)
	old, oldSecret, err := Create(ctx, s, Request{Role: ledger.RoleEvidence, Tenant: "acme", Sources: []string{"stripe"}, ExpiresAt: &expires}, 100)
	if err != nil {
		t.Fatal(err)
	}
	key, secret, err := Rotate(ctx, s, "acme", old.ID, 50, 200)
	if err != nil {
		t.Fatal(err)
	}
	if secret == oldSecret || key.ID == old.ID || key.Role != old.Role || key.Tenant != "acme" || *key.ExpiresAt != 1100 {
		t.Errorf("made %+v of %+v", key, old)
	}
	if diff := cmp.Diff(old.Sources, key.Sources); diff != "" {
		t.Error(diff)
	}
	for _, row := range []struct {
		name   string
		secret configopaque.String
		now    engine.Instant
		want   error
	}{
		{"old, in the grace period", oldSecret, 249, nil}, {"new, at once", secret, 200, nil},
		{"old, after it", oldSecret, 250, ErrExpired}, {"new, after it", secret, 250, nil}, {"new, at its end", secret, 1100, ErrExpired},
	} {
		if _, err := Find(ctx, s, row.secret, row.now); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
	}
	for name, row := range map[string]struct {
		tenant, id string
		grace      engine.Duration
		want       error
	}{
		"expired": {"acme", old.ID, 50, ErrGone}, "another tenant's": {"globex", key.ID, 50, ledger.ErrNotFound},
		"unknown": {"acme", "key_none", 50, ledger.ErrNotFound}, "for ever": {"acme", key.ID, MostGrace + 1, ErrRequest},
	} {
		if _, _, err := Rotate(ctx, s, row.tenant, row.id, row.grace, 300); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", name, err, row.want)
		}
	}
}

// TestRotateAtOnce: without grace the old secret is worthless.
func TestRotateAtOnce(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), store(t)
	old, oldSecret, err := Create(ctx, s, Request{Role: ledger.RoleViewer}, 100)
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := Rotate(ctx, s, old.Tenant, old.ID, 0, 200)
	if err != nil || key.ExpiresAt != nil {
		t.Fatalf("%+v %v", key, err)
	}
	if _, err := Find(ctx, s, oldSecret, 200); !errors.Is(err, ErrExpired) {
		t.Error(err)
	}
}

// TestAuditLogOfWhatWasDone: in the transaction that did it, and never with the secret.
func TestAuditLogOfWhatWasDone(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), store(t)
	old, oldSecret, err := Create(ctx, s, Request{Role: ledger.RoleViewer, Tenant: "acme"}, 100)
	if err != nil {
		t.Fatal(err)
	}
	key, secret, err := Rotate(ctx, s, "acme", old.ID, engine.Day, 200)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Rotate(ctx, s, "acme", old.ID, engine.Day, 300) // in its grace period
	if want := "cannot rotate the key: it was rotated already, and is only good until its users have changed over to " + key.ID + "; rotate that one"; !errors.Is(err, ErrGone) || !errors.Is(err, ErrRotated) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for _, at := range []engine.Instant{400, 500} { // the second time does nothing
		if err := Revoke(ctx, s, "acme", key.ID, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := Revoke(ctx, s, "globex", key.ID, 600); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("another tenant's: %v", err)
	}
	var events []ledger.KeyEvent
	var known []ledger.Key
	if err := s.View(ctx, func(tx ledger.Tx) error {
		page, err := tx.KeyEvents(ctx, "acme", ledger.KeyEventFilter{})
		events = page.Events
		if err == nil {
			known, err = tx.ListKeys(ctx, "acme")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	event := func(kind string, key ledger.Key, detail string, at engine.Instant) ledger.KeyEvent {
		return ledger.KeyEvent{Tenant: "acme", Kind: kind, KeyID: key.ID, Prefix: key.Prefix, Detail: detail, FirstAt: at, LastAt: at, Times: 1}
	}
	want := []ledger.KeyEvent{
		event(ledger.KeyCreated, old, ledger.RoleViewer, 100), event(ledger.KeyCreated, key, ledger.RoleViewer, 200),
		event(ledger.KeyRotated, old, key.ID, 200), event(ledger.KeyRevoked, key, "", 400),
	}
	slices.SortFunc(events, func(a, b ledger.KeyEvent) int {
		if a.FirstAt != b.FirstAt {
			return int(a.FirstAt - b.FirstAt)
		}
		return strings.Compare(a.Kind, b.Kind)
	})
	if diff := cmp.Diff(want, events); diff != "" {
		t.Error(diff)
	}
	if len(known) != 2 || known[1].RevokedAt == nil || *known[1].RevokedAt != 400 {
		t.Errorf("keys: %+v", known)
	}
	for _, text := range []configopaque.String{secret, oldSecret} {
		if strings.Contains(fmt.Sprintf("%+v", events), string(text[len(text)-30:])) {
			t.Error("the log holds a secret")
		}
	}
}
