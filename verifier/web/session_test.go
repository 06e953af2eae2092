package web

import (
	"context"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

func TestNobodySeesAnythingWithoutASession(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.record(acme, refund("act_1", "order_1", start, "1"))
	b := f.browser()
	for _, path := range []string{
		"/", "/actions", actionOf("act_1"), actionOf("act_1") + "/documents/2", "/contracts", "/contracts/refund_workflow",
		"/sources", "/orphans", "/parked", "/actions?verdict=FAIL&agent_id=a%26b",
	} {
		got := b.get(path)
		if want := "/sign-in?next=" + url.QueryEscape(path); got.status != http.StatusSeeOther || got.header.Get("Location") != want {
			t.Errorf("%s: %d to %q, want %q", path, got.status, got.header.Get("Location"), want)
		}
		wantNotIn(t, path, got.body, "act_1", "order_1")
	}
	if got := b.get("/live"); got.status != http.StatusUnauthorized {
		t.Errorf("live: %d, want 401", got.status)
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	expired := start - 1
	for name, one := range map[string]struct {
		secret string
		status int
		says   string
	}{
		"Viewer":   {f.secrets[ledger.RoleViewer], http.StatusSeeOther, ""},
		"Analyst":  {f.secrets[ledger.RoleAnalyst], http.StatusSeeOther, ""},
		"Spaces":   {"  " + f.secrets[ledger.RoleViewer] + "\n", http.StatusSeeOther, ""},
		"Recorder": {f.secrets[ledger.RoleRecorder], http.StatusForbidden, "A recorder key cannot sign in here. Use a viewer key."},
		"Evidence": {f.secrets[ledger.RoleEvidence], http.StatusForbidden, "A evidence key cannot sign in here. Use a viewer key."},
		"Unknown":  {"cs_viewer_" + strings.Repeat("A", 43), http.StatusUnauthorized, "No such key. A viewer key begins with cs_viewer_."},
		"Empty":    {"", http.StatusUnauthorized, "No such key."},
		"Expired":  {f.key(keys.Request{Role: ledger.RoleViewer, Tenant: acme, ExpiresAt: &expired}), http.StatusUnauthorized, "This key is not good any more. Ask for a new one."},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.browser().signIn(one.secret, "/sources")
			if got.status != one.status {
				t.Fatalf("%d %s, want %d", got.status, got.body, one.status)
			}
			if one.status == http.StatusSeeOther && got.header.Get("Location") != "/sources" {
				t.Errorf("leads to %q", got.header.Get("Location"))
			}
			wantIn(t, "answer", got.body, one.says)
			if one.secret != "" {
				wantNotIn(t, "answer", got.body, one.secret)
			}
		})
	}
}

func TestCookieIsOutOfReachOfScriptsAndOtherSites(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, Config{Secure: true})
	b := f.browser()
	b.client.Jar = nil // the jar would not send a Secure cookie back over HTTP
	form := b.get("/sign-in")
	request, err := http.NewRequest(http.MethodPost, b.base+"/sign-in", strings.NewReader(url.Values{
		"token": {token(t, form.body)}, "key": {f.secrets[ledger.RoleViewer]}, "next": {"/"},
	}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	formCookie := (&http.Response{Header: form.header}).Cookies()[0]
	request.AddCookie(formCookie)
	got := b.send(request)
	cookies := (&http.Response{Header: got.header}).Cookies()
	if len(cookies) != 2 || cookies[1].MaxAge >= 0 {
		t.Fatalf("%d %s: cookies %v", got.status, got.body, cookies)
	}
	session := cookies[0]
	type shape struct {
		Name, Path, Domain string
		HTTPOnly, Secure   bool
		SameSite           http.SameSite
		MaxAge             int
	}
	want := shape{"__Host-countersign-session", "/", "", true, true, http.SameSiteLaxMode, 12 * 3600}
	if diff := cmp.Diff(want, shape{session.Name, session.Path, session.Domain, session.HttpOnly, session.Secure, session.SameSite, session.MaxAge}); diff != "" {
		t.Errorf("session cookie (-want +got):\n%s", diff)
	}
	want = shape{"__Host-countersign-form", "/", "", true, true, http.SameSiteStrictMode, 3600}
	if diff := cmp.Diff(want, shape{formCookie.Name, formCookie.Path, formCookie.Domain, formCookie.HttpOnly, formCookie.Secure, formCookie.SameSite, formCookie.MaxAge}); diff != "" {
		t.Errorf("form cookie (-want +got):\n%s", diff)
	}
	wantNotIn(t, "cookie", session.Value, f.secrets[ledger.RoleViewer], f.secrets[ledger.RoleViewer][10:])
}

func TestFormsNeedTheirToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := f.secrets[ledger.RoleViewer]

	b := f.browser()
	if got := b.do(http.MethodPost, "/sign-in", url.Values{"key": {secret}, "next": {"/"}}); got.status != http.StatusForbidden {
		t.Errorf("without a form: %d", got.status)
	}
	b.page("/sign-in")
	if got := b.do(http.MethodPost, "/sign-in", url.Values{"key": {secret}, "token": {"guessed"}}); got.status != http.StatusForbidden {
		t.Errorf("with another token: %d", got.status)
	}
	elsewhere, err := http.NewRequest(http.MethodPost, b.base+"/sign-in", strings.NewReader(url.Values{"key": {secret}, "token": {token(t, b.page("/sign-in"))}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	elsewhere.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := b.send(elsewhere); got.status != http.StatusForbidden {
		t.Errorf("from another site: %d", got.status)
	}
	if got := b.do(http.MethodPost, "/sign-in", url.Values{"key": {strings.Repeat("x", maxForm)}}); got.status != http.StatusBadRequest {
		t.Errorf("too large: %d", got.status)
	}

	b = f.reader()
	if got := b.do(http.MethodPost, "/sign-out", url.Values{"token": {"guessed"}}); got.status != http.StatusForbidden {
		t.Errorf("sign-out with another token: %d", got.status)
	}
	b.page("/sources")
	form := token(t, b.page("/"))
	if got := b.do(http.MethodPost, "/sign-out", url.Values{"token": {form}}); got.status != http.StatusSeeOther {
		t.Errorf("sign-out: %d %s", got.status, got.body)
	}
	if got := b.get("/"); got.status != http.StatusSeeOther {
		t.Errorf("after sign-out: %d", got.status)
	}
	if got := b.get("/sign-out"); got.status != http.StatusTeapot {
		t.Errorf("sign-out by a link: %d, want it to be nothing", got.status)
	}
}

func TestSessionEnds(t *testing.T) {
	t.Parallel()
	t.Run("AfterItsTime", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		b := f.reader()
		f.at(start + engine.Instant(SessionFor) - 1)
		b.page("/")
		f.at(start + engine.Instant(SessionFor))
		if got := b.get("/"); got.status != http.StatusSeeOther {
			t.Errorf("after twelve hours: %d", got.status)
		}
	})
	t.Run("WithItsKey", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		b := f.reader()
		b.page("/")
		f.update(func(tx ledger.Tx) error {
			return tx.RevokeKey(context.Background(), acme, f.keys[ledger.RoleViewer].ID, f.now())
		})
		if got := b.get("/"); got.status != http.StatusSeeOther {
			t.Errorf("after the key was revoked: %d", got.status)
		}
	})
}

func TestForgedSessions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	viewer, recorder := f.keys[ledger.RoleViewer], f.keys[ledger.RoleRecorder]
	foreign := f.key(keys.Request{Role: ledger.RoleViewer, Tenant: other})
	_ = foreign
	good, err := seal(ticket{acme, viewer.ID, start + 60}, viewer.Hash)
	if err != nil {
		t.Fatal(err)
	}
	payload, signature, _ := strings.Cut(good, ".")
	forged := func(t ticket, key [32]byte) string {
		text, _ := seal(t, key)
		return text
	}
	for name, value := range map[string]string{
		"Good":            good,
		"Empty":           "",
		"NoSignature":     payload,
		"EmptySignature":  payload + ".",
		"OtherSignature":  payload + "." + signature[:len(signature)-2] + "AA",
		"OtherPayload":    strings.Replace(forged(ticket{acme, viewer.ID, start + 600}, viewer.Hash), ".", ".x", 1),
		"LongerLife":      strings.Split(forged(ticket{acme, viewer.ID, start + 600}, [32]byte{}), ".")[0] + "." + signature,
		"ZeroKey":         forged(ticket{acme, viewer.ID, start + 60}, [32]byte{}),
		"OtherTenant":     strings.Split(forged(ticket{other, viewer.ID, start + 60}, viewer.Hash), ".")[0] + "." + signature,
		"SignedForOther":  forged(ticket{other, viewer.ID, start + 60}, viewer.Hash),
		"Recorder":        forged(ticket{acme, recorder.ID, start + 60}, recorder.Hash),
		"Over":            forged(ticket{acme, viewer.ID, start}, viewer.Hash),
		"NoTenant":        forged(ticket{"", viewer.ID, start + 60}, viewer.Hash),
		"ControlInKey":    forged(ticket{acme, "a\x00", start + 60}, viewer.Hash),
		"UnknownKey":      forged(ticket{acme, "key_0", start + 60}, viewer.Hash),
		"ControlInTenant": forged(ticket{"a\x00", viewer.ID, start + 60}, viewer.Hash),
		"Huge":            strings.Repeat("A", maxCookie+1),
		"NoJSON":          "AAAA." + signature,
	} {
		jar, _ := cookiejar.New(nil)
		b := f.browser()
		b.client.Jar = jar
		u, _ := url.Parse(b.base)
		jar.SetCookies(u, []*http.Cookie{{Name: "countersign-session", Value: value, Path: "/"}})
		want := http.StatusSeeOther
		if name == "Good" {
			want = http.StatusOK
		}
		if got := b.get("/sources"); got.status != want {
			t.Errorf("%s: %d, want %d", name, got.status, want)
		}
	}
}

func TestNextStaysOnThisSite(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/actions?verdict=FAIL": "/actions?verdict=FAIL", "/": "/", "": "/", "//evil.example": "/", "https://evil.example/": "/", "/\\evil.example": "/",
		"javascript:alert(1)": "/", "/\t/evil.example": "/", "/sign-out": "/", "/sign-in?next=/": "/", "actions": "/", "/a\r\nSet-Cookie: x": "/", "http:/evil": "/",
	} {
		if got := onSite(next); got != want {
			t.Errorf("onSite(%q) = %q, want %q", next, got, want)
		}
	}
	f := newFixture(t)
	if got := f.browser().signIn(f.secrets[ledger.RoleViewer], "//evil.example/x"); got.header.Get("Location") != "/" {
		t.Errorf("sign-in leads to %q", got.header.Get("Location"))
	}
	b := f.reader()
	if got := b.get("/sign-in?next=https://evil.example"); got.header.Get("Location") != "/" {
		t.Errorf("the form, signed in, leads to %q", got.header.Get("Location"))
	}
}

func TestTenantsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.showcase(20)
	secret := f.key(keys.Request{Role: ledger.RoleViewer, Tenant: other})
	b := f.browser()
	if got := b.signIn(secret, "/"); got.status != http.StatusSeeOther {
		t.Fatalf("sign-in: %d", got.status)
	}
	for _, path := range []string{"/", "/actions", "/sources", "/orphans", "/parked", "/contracts/refund_workflow", "/actions?q=order_10231", "/actions?q=act_demo_refund_001"} {
		got := b.get(path)
		_, search, _ := strings.Cut(path, "?q=") // what was looked for is repeated
		page := got.body
		if search != "" {
			page = strings.ReplaceAll(page, search, "")
		}
		wantNotIn(t, path, page, "act_demo_refund_00", "order_10232", "order_99001", "support-agent<", "night-shift")
		if got.status != http.StatusOK {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	if got := b.get(actionOf("act_demo_refund_001")); got.status != http.StatusNotFound {
		t.Errorf("the action of another tenant: %d", got.status)
	}
	if got := b.get(actionOf("act_demo_refund_001") + "/documents/2"); got.status != http.StatusNotFound {
		t.Errorf("a document of another tenant: %d", got.status)
	}
}

func TestNewInstallationSaysHowToBegin(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, Config{Store: "postgres://u@db/x y"})
	f.update(func(tx ledger.Tx) error {
		for _, role := range []string{ledger.RoleViewer, ledger.RoleAnalyst} {
			if err := tx.RevokeKey(context.Background(), acme, f.keys[role].ID, f.now()); err != nil {
				return err
			}
		}
		return nil
	})
	page := f.browser().page("/sign-in")
	wantIn(t, "sign-in", page, "No key yet", "countersign keys create --role viewer --store &#39;postgres://u@db/x y&#39;")
	secret := f.key(keys.Request{Role: ledger.RoleViewer, Tenant: acme})
	b := f.browser()
	wantNotIn(t, "sign-in with keys", b.page("/sign-in"), "No key yet")
	b.signIn(secret, "/")
	wantIn(t, "welcome", b.page("/"), "Nothing recorded yet", "countersign contracts publish contracts/refund_workflow.yaml --store",
		"--tenant acme", "curl -s -X POST "+f.server.URL+"/v1/facts")
	f.library()
	wantIn(t, "welcome with contracts", b.page("/"), "3 contracts are published")
	f.record(acme, refund("act_1", "order_1", start, "1"))
	wantIn(t, "overview", b.page("/"), "Verified completion", "UNVERIFIED")
}

// TestGuessingAtTheFormIsSlowed: and what the form says does not depend on the key.
func TestGuessingAtTheFormIsSlowed(t *testing.T) {
	t.Parallel()
	guard, err := keys.NewGuard(keys.Limits{FailedKeys: 2}, func() time.Time { return time.Unix(1_000, 0) })
	if err != nil {
		t.Fatal(err)
	}
	f := newFixtureWith(t, Config{Guard: guard})
	b := f.browser()
	try := func(secret string) answer {
		t.Helper()
		return b.do(http.MethodPost, "/sign-in", url.Values{"key": {secret}, "token": {token(t, b.page("/sign-in"))}})
	}
	for range 2 {
		if got := try("cs_viewer_" + strings.Repeat("A", 43)); got.status != http.StatusUnauthorized {
			t.Fatalf("%d", got.status)
		}
	}
	for _, secret := range []string{"cs_viewer_" + strings.Repeat("A", 43), "hunter2", f.secrets[ledger.RoleViewer]} {
		got := try(secret)
		if got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "30" {
			t.Errorf("%d, Retry-After %q", got.status, got.header.Get("Retry-After"))
		}
		wantIn(t, "page", got.body, "Too many requests came from you or from your network. Try again in 30 seconds.")
	}
}

// TestPagesAreLimited: by key once signed in, by address before.
func TestPagesAreLimited(t *testing.T) {
	t.Parallel()
	guard, err := keys.NewGuard(keys.Limits{KeyRate: 1, KeyBurst: 3, AddressRate: 1, AddressBurst: 4}, func() time.Time { return time.Unix(1_000, 0) })
	if err != nil {
		t.Fatal(err)
	}
	f := newFixtureWith(t, Config{Guard: guard})
	b := f.reader() // two requests without a session, one with the key
	for _, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if got := b.get("/sources"); got.status != want {
			t.Errorf("signed in: %d, want %d", got.status, want)
		}
	}
	stranger := f.browser()
	for _, want := range []int{http.StatusSeeOther, http.StatusSeeOther, http.StatusTooManyRequests} {
		if got := stranger.get("/sources"); got.status != want {
			t.Errorf("not signed in: %d, want %d", got.status, want)
		}
	}
}

// TestKeysOnThePageAreAudited: signing in, looking, and what was refused.
func TestKeysOnThePageAreAudited(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	f := newFixtureWith(t, Config{Note: func(use keys.Use) {
		mu.Lock()
		defer mu.Unlock()
		event := use.Event(start)
		got = append(got, strings.Join([]string{event.Kind, event.KeyID, event.Route, event.Status, event.Remote, event.Detail}, " "))
	}})
	viewer, recorder := f.keys[ledger.RoleViewer].ID, f.keys[ledger.RoleRecorder].ID
	if err := keys.Revoke(t.Context(), f.store, acme, f.keys[ledger.RoleEvidence].ID, f.now()); err != nil {
		t.Fatal(err)
	}
	b := f.browser()
	for _, secret := range []string{"hunter2", f.secrets[ledger.RoleRecorder], f.secrets[ledger.RoleEvidence], f.secrets[ledger.RoleViewer]} {
		b.signIn(secret, "/")
	}
	b.page("/sources")
	b.page("/")
	want := []string{
		"refused  /sign-in 4xx 127.0.0.1 ", "refused " + recorder + " /sign-in 4xx 127.0.0.1 ",
		"expired_use " + f.keys[ledger.RoleEvidence].ID + " /sign-in 4xx 127.0.0.1 revoked",
		"used " + viewer + " /sign-in 3xx 127.0.0.1 ", "used " + viewer + " /sources 2xx 127.0.0.1 ",
		"used " + viewer + " / 2xx 127.0.0.1 ",
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
