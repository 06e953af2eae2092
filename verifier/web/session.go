package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

// SessionFor is how long somebody stays signed in.
const SessionFor = 12 * engine.Hour

// session is somebody who is signed in. The cookie names the key, never holds
// it, and is signed with the key's hash: a key that is revoked ends its
// sessions at once, on every replica, and nothing is kept for them.
type session struct {
	Tenant, KeyID, Role string
	Prefix              string
	// CSRF is the token of the session's forms.
	CSRF string
	// hash names the key to the guard.
	hash [32]byte
}

type ticket struct {
	Tenant  string         `json:"t"`
	KeyID   string         `json:"k"`
	Expires engine.Instant `json:"e"`
}

type contextKey int

const sessionContext contextKey = iota

func sessionOf(ctx context.Context) *session {
	s, _ := ctx.Value(sessionContext).(*session)
	return s
}

// cookieName binds the cookie to this host where HTTPS makes that possible.
func (p *Page) cookieName(name string) string {
	if p.Secure {
		return "__Host-countersign-" + name
	}
	return "countersign-" + name
}

func (p *Page) cookie(name, value string, sameSite http.SameSite, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: p.cookieName(name), Value: value, Path: "/", MaxAge: maxAge,
		HttpOnly: true, Secure: p.Secure, SameSite: sameSite,
	}
}

// mac signs a text for one purpose with a key's hash.
func mac(key [32]byte, purpose, text string) []byte {
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte("countersign page " + purpose + "\x00" + text))
	return h.Sum(nil)
}

func seal(t ticket, key [32]byte) (string, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	payload := base64.RawURLEncoding.EncodeToString(text)
	return payload + "." + base64.RawURLEncoding.EncodeToString(mac(key, "session", payload)), nil
}

var errNoSession = errors.New("not signed in")

// maxCookie bounds a session before anything in it is read.
const maxCookie = 2048

// find recognises the session of a request.
func (p *Page) find(r *http.Request) (*session, error) {
	cookie, err := r.Cookie(p.cookieName("session"))
	if err != nil || len(cookie.Value) > maxCookie {
		return nil, errNoSession
	}
	payload, signature, _ := strings.Cut(cookie.Value, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return nil, errNoSession
	}
	var t ticket
	if err := json.Unmarshal(text, &t); err != nil || t.Expires <= p.Now() || engine.CheckOpaque("tenant", t.Tenant) != nil || engine.CheckOpaque("key", t.KeyID) != nil {
		return nil, errNoSession
	}
	given, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		return nil, errNoSession
	}
	key, err := p.keyOf(r.Context(), t)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(given, mac(key.Hash, "session", payload)) || !p.good(key) {
		return nil, errNoSession
	}
	return &session{
		Tenant: key.Tenant, KeyID: key.ID, Role: key.Role, Prefix: key.Prefix, hash: key.Hash,
		CSRF: base64.RawURLEncoding.EncodeToString(mac(key.Hash, "csrf", payload)),
	}, nil
}

func (p *Page) keyOf(ctx context.Context, t ticket) (key ledger.Key, err error) {
	err = p.Ledger.View(ctx, func(tx ledger.Tx) error {
		key, err = tx.KeyByID(ctx, t.Tenant, t.KeyID)
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.Key{}, errNoSession
	}
	return key, err
}

// good says whether a key may see the page now.
func (p *Page) good(key ledger.Key) bool {
	return key.RevokedAt == nil && (key.ExpiresAt == nil || *key.ExpiresAt > p.Now()) && lets(key.Role)
}

// lets says whether a role may see the page.
func lets(role string) bool {
	return keys.May(role, keys.Read) && keys.May(role, keys.Inspect)
}

// signed serves a page to somebody who is signed in; others are asked to.
func (p *Page) signed(h handler) http.HandlerFunc {
	return p.open(func(w http.ResponseWriter, r *http.Request) error {
		s, err := p.find(r)
		if errors.Is(err, errNoSession) {
			if err := p.Guard.AdmitStranger(p.Guard.Address(r)); err != nil {
				return err
			}
			http.Redirect(w, r, "/sign-in?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.Guard.Admit(s.hash); err != nil {
			return err
		}
		p.note(r, keys.Use{Key: ledger.Key{Tenant: s.Tenant, ID: s.KeyID, Prefix: s.Prefix}, Status: http.StatusOK})
		r = r.WithContext(context.WithValue(r.Context(), sessionContext, s))
		if err := h(w, r); err != nil {
			p.fail(w, r, err) // with the session's navigation
		}
		return nil
	})
}

// onSite is where to go on: an address of this page, or the overview.
func onSite(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") || strings.HasPrefix(u.Path, "/sign-") {
		return "/"
	}
	return next
}

type signInView struct {
	frame
	Next, Token, Error string
	// Keyless: no key in the store lets anybody in.
	Keyless bool
}

// signInForm gives the form a token that its cookie repeats.
func (p *Page) signInForm(w http.ResponseWriter, r *http.Request) error {
	if s, err := p.find(r); err == nil && s != nil {
		http.Redirect(w, r, onSite(r.URL.Query().Get("next")), http.StatusSeeOther)
		return nil
	}
	return p.askForKey(w, r, http.StatusOK, r.URL.Query().Get("next"), "")
}

func (p *Page) askForKey(w http.ResponseWriter, r *http.Request, status int, next, problem string) error {
	keyless, err := p.keyless(r.Context())
	if err != nil {
		return err
	}
	token := rand.Text()
	http.SetCookie(w, p.cookie("form", token, http.SameSiteStrictMode, 3600))
	return p.write(w, status, "signin", signInView{
		frame: frame{Title: "Sign in", Flags: p.flags(engine.DefaultTenant)}, Next: onSite(next), Token: token, Error: problem, Keyless: keyless,
	})
}

// keyless says whether no key of any tenant lets anybody in.
func (p *Page) keyless(ctx context.Context) (bool, error) {
	roles := slices.DeleteFunc(keys.Roles(), func(role string) bool { return !lets(role) })
	found := false
	err := p.Ledger.View(ctx, func(tx ledger.Tx) (err error) {
		found, err = tx.AnyKey(ctx, roles, p.Now())
		return err
	})
	return !found, err
}

// maxForm bounds a form before it is read.
const maxForm = 8 << 10

var crossOrigin = http.NewCrossOriginProtection()

// signIn exchanges a key for a cookie.
func (p *Page) signIn(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return badRequest("The form cannot be read.")
	}
	next := onSite(r.PostForm.Get("next"))
	cookie, err := r.Cookie(p.cookieName("form"))
	if err != nil || crossOrigin.Check(r) != nil || !hmac.Equal([]byte(cookie.Value), []byte(r.PostForm.Get("token"))) {
		return p.askForKey(w, r, http.StatusForbidden, next, "This form was not given by this page, or it is old. Try again.")
	}
	secret := configopaque.String(strings.TrimSpace(r.PostForm.Get("key")))
	key, err := p.Guard.Find(r.Context(), p.Ledger, secret, p.Guard.Address(r), p.Now())
	switch {
	case errors.Is(err, keys.ErrInvalid):
		p.note(r, keys.Use{Status: http.StatusUnauthorized})
		return p.askForKey(w, r, http.StatusUnauthorized, next, "No such key. A viewer key begins with cs_viewer_.")
	case errors.Is(err, keys.ErrRevoked), errors.Is(err, keys.ErrExpired):
		p.note(r, keys.Use{Key: key, Status: http.StatusUnauthorized, Gone: err})
		return p.askForKey(w, r, http.StatusUnauthorized, next, "This key is not good any more. Ask for a new one.")
	case err != nil:
		return err
	case !p.good(key):
		p.note(r, keys.Use{Key: key, Status: http.StatusForbidden})
		return p.askForKey(w, r, http.StatusForbidden, next, "A "+key.Role+" key cannot sign in here. Use a viewer key.")
	}
	value, err := seal(ticket{key.Tenant, key.ID, p.Now().Add(SessionFor)}, key.Hash)
	if err != nil {
		return err
	}
	p.note(r, keys.Use{Key: key, Status: http.StatusSeeOther})
	seconds := int((time.Duration(SessionFor) * time.Second).Seconds())
	http.SetCookie(w, p.cookie("session", value, http.SameSiteLaxMode, seconds))
	http.SetCookie(w, p.cookie("form", "", http.SameSiteStrictMode, -1))
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// note completes a use of a key and passes it on.
func (p *Page) note(r *http.Request, use keys.Use) {
	if p.Note == nil {
		return
	}
	_, route, _ := strings.Cut(r.Pattern, " ")
	use.Route = strings.TrimSuffix(route, "{$}") // how the pattern of / ends
	use.From = p.Guard.Address(r)
	p.Note(use)
}

// signOut forgets the cookie.
func (p *Page) signOut(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return badRequest("The form cannot be read.")
	}
	s := sessionOf(r.Context())
	if crossOrigin.Check(r) != nil || !hmac.Equal([]byte(s.CSRF), []byte(r.PostForm.Get("token"))) {
		return &failure{http.StatusForbidden, "This form was not given by this page, or it is old. Go back and try again."}
	}
	http.SetCookie(w, p.cookie("session", "", http.SameSiteLaxMode, -1))
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
	return nil
}
