package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

// keyEvents are those of the audit log that a query selects.
func (f *fixture) keyEvents(t *testing.T, query string) []KeyEvent {
	t.Helper()
	f.uses.flush(t.Context())
	var list KeyEventList
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/keys/audit"+query, "").decode(t, &list)
	return list.Events
}

// TestAuditLogOfKeyUse: who used which key from where and how often, and what was refused.
func TestAuditLogOfKeyUse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	start := engine.Instant(f.clock.Load())
	expired := f.key(t, keys.Request{Role: ledger.RoleRecorder, Tenant: tenantA, ExpiresAt: later(f, 1)})
	expiredKey := f.lastKey
	revoked := f.key(t, keys.Request{Role: ledger.RoleRecorder, Tenant: tenantA})
	revokedKey := f.lastKey
	if err := keys.Revoke(t.Context(), f.store, tenantA, revokedKey.ID, start); err != nil {
		t.Fatal(err)
	}
	secret := f.key(t, keys.Request{Role: ledger.RoleRecorder, Tenant: tenantA})
	key := f.lastKey
	f.clock.Add(5)
	for range 3 {
		f.as(t, secret, "GET", "/v1/actions/nope", "")
	}
	f.as(t, secret, "GET", "/v1/sources", "")
	f.as(t, secret, "POST", "/v1/actions/verify", `{"action_id": "act_1", "facts": [`+refunded+`]}`) // let in, and refused inside
	f.as(t, expired, "GET", "/v1/actions", "")
	f.as(t, revoked, "GET", "/v1/actions", "")
	f.as(t, strings.Repeat("k", 50), "GET", "/v1/actions", "")

	at := start + 5
	event := func(key ledger.Key, kind, route, status, detail string, times int) KeyEvent {
		return KeyEvent{kind, key.ID, key.Prefix, route, status, "127.0.0.1", detail, at, at, times}
	}
	for _, row := range []struct {
		name, query string
		want        []KeyEvent
	}{
		{"used", "?kind=used&key=" + key.ID, []KeyEvent{event(key, ledger.KeyUsed, "/v1/actions/{ref}", "4xx", "", 3)}},
		{"refused", "?kind=refused&key=" + key.Prefix, []KeyEvent{
			event(key, ledger.KeyRefused, "/v1/actions/verify", "4xx", "", 1), event(key, ledger.KeyRefused, "/v1/sources", "4xx", "", 1),
		}},
		{"expired", "?kind=expired_use&key=" + expiredKey.ID, []KeyEvent{event(expiredKey, ledger.KeyExpiredUse, "/v1/actions", "4xx", "expired", 1)}},
		{"revoked", "?kind=expired_use&key=" + revokedKey.ID, []KeyEvent{event(revokedKey, ledger.KeyExpiredUse, "/v1/actions", "4xx", "revoked", 1)}},
		{"what was done", "?key=" + revokedKey.ID + "&until=" + at.String(), []KeyEvent{
			{ledger.KeyCreated, revokedKey.ID, revokedKey.Prefix, "", "", "", ledger.RoleRecorder, start, start, 1},
			{ledger.KeyRevoked, revokedKey.ID, revokedKey.Prefix, "", "", "", "", start, start, 1},
		}},
		{"later", "?key=" + key.ID + "&since=" + (at + 1).String(), []KeyEvent{}},
	} {
		byText := cmp.Transformer("set", func(events []KeyEvent) map[KeyEvent]bool {
			set := map[KeyEvent]bool{}
			for _, e := range events {
				set[e] = true
			}
			return set
		})
		if diff := cmp.Diff(row.want, f.keyEvents(t, row.query), byText); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
	f.must(t, http.StatusUnprocessableEntity, ledger.RoleViewer, "GET", "/v1/keys/audit?cursor=x", "")
	f.must(t, http.StatusUnprocessableEntity, ledger.RoleViewer, "GET", "/v1/keys/audit?kind=x", "")
	f.must(t, http.StatusUnprocessableEntity, ledger.RoleViewer, "GET", "/v1/keys/audit?since=yesterday", "")
	var page KeyEventList
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/keys/audit?limit=1", "").decode(t, &page)
	if len(page.Events) != 1 || page.Next == nil {
		t.Fatalf("%+v", page)
	}
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/keys/audit?limit=1&cursor="+*page.Next, "")
}

// TestUsesAreBounded: a key that is used from everywhere is one event more, and takes no other tenant's place.
func TestUsesAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	use := func(tenant string, i int) {
		from := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		f.uses.Note(keys.Use{Key: ledger.Key{Tenant: tenant, ID: "key_1"}, Route: "/v1/actions", Status: 200, From: from})
	}
	for i := range 3 * mostUses {
		use(tenantA, i)
	}
	use(tenantB, 1)
	_, events := f.uses.take()
	counted := map[string]int{}
	for _, e := range events {
		if e.Remote == "" {
			counted["many"] += e.Times
			continue
		}
		counted[e.Tenant]++
	}
	if diff := cmp.Diff(map[string]int{tenantA: mostUses, tenantB: 1, "many": 2 * mostUses}, counted); diff != "" {
		t.Error(diff)
	}
}

// TestUsesOutliveTheStoresTrouble: and are stored once.
func TestUsesOutliveTheStoresTrouble(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	key := ledger.Key{Tenant: tenantA, ID: "key_1", Prefix: "cs_viewer_x"}
	use := func() { f.uses.Note(keys.Use{Key: key, Route: "/v1/actions", Status: 200}) }
	use()
	f.uses.store = &failing{f.store, errors.New("away")}
	f.uses.flush(t.Context())
	use()
	f.uses.flush(t.Context())
	f.uses.store = f.store
	if got := f.keyEvents(t, "?key=key_1"); len(got) != 1 || got[0].Times != 2 {
		t.Errorf("%+v", got)
	}
	if got := f.keyEvents(t, "?key=key_1"); len(got) != 1 || got[0].Times != 2 {
		t.Errorf("again: %+v", got)
	}
}

// TestRefusalsAreLogged: without secrets, and no more a second than a log can bear.
func TestRefusalsAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	at := engine.Instant(1000)
	uses := NewUses(nil, func() engine.Instant { return at }, slog.New(slog.NewTextHandler(&log, nil)))
	key := ledger.Key{Tenant: tenantA, ID: "key_1", Prefix: "cs_viewer_x"}
	uses.Note(keys.Use{Key: key, Route: "/v1/sources", Status: http.StatusForbidden, From: netip.MustParseAddr("2001:db8::7")})
	for _, want := range []string{
		`msg="a key was refused"`, "route=/v1/sources", "status=403", "remote=2001:db8::", "kind=refused", "tenant=acme", "key_id=key_1", "prefix=cs_viewer_x",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log.String())
		}
	}
	for range 100 {
		uses.Note(keys.Use{Route: "/v1/sources", Status: http.StatusUnauthorized})
		uses.Note(keys.Use{Key: key, Route: "/v1/sources", Status: http.StatusOK})
	}
	at++
	uses.Note(keys.Use{Route: "/v1/sources", Status: http.StatusUnauthorized})
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != mostRefusals+1 || !strings.HasSuffix(lines[mostRefusals], fmt.Sprintf("suppressed_before=%d", 101-mostRefusals)) {
		t.Errorf("%d lines:\n%s", len(lines), log.String())
	}
	if _, events := uses.take(); len(events) != 2 {
		t.Errorf("an unknown key is in somebody's log: %+v", events)
	}
}

// probed counts checks of the schema.
type probed struct {
	ledger.Ledger
	checks atomic.Int64
}

func (c *probed) CheckSchema(ctx context.Context) error {
	c.checks.Add(1)
	return c.Ledger.CheckSchema(ctx)
}

// TestProbesDoNotMakeTheStoreWork: one question a second, whoever asks.
func TestProbesDoNotMakeTheStoreWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	store := &probed{Ledger: f.store}
	f.service.Ledger = store
	for second := range 2 {
		for range 20 {
			f.must(t, http.StatusOK, "", "GET", "/readyz", "")
		}
		if got := store.checks.Load(); got != int64(second+1) {
			t.Errorf("second %d: the store was asked %d times", second, got)
		}
		f.clock.Add(1)
	}
}
