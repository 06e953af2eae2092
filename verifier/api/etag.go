package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// conditional answers with an ETag what changes seldom and is asked for often:
// contracts, definitions, verdicts and one action. Who sends it as If-None-Match
// and would be told the same gets 304 and no body (RFC 9110, 13.1.2).
func (h *handler) conditional(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !hasTag(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		held := &heldAnswer{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(held, r)
		held.finish(r.Header.Values("If-None-Match"))
	})
}

// hasTag says so by path; what streams or waits is not among them.
func hasTag(path string) bool {
	if rest, ok := strings.CutPrefix(path, "/v1/actions/"); ok {
		return rest != "" && rest != "summary" && !strings.Contains(rest, "/")
	}
	return path == "/v1/contracts" || strings.HasPrefix(path, "/v1/contracts/") || strings.HasPrefix(path, "/v1/public/")
}

// heldAnswer keeps the body until it is known whether it is needed.
type heldAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (a *heldAnswer) WriteHeader(status int) { a.status = status }

func (a *heldAnswer) Write(text []byte) (int, error) { return a.body.Write(text) }

// Unwrap lets http.ResponseController reach the deadlines.
func (a *heldAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *heldAnswer) finish(known []string) {
	if a.status == http.StatusOK {
		sum := sha256.Sum256(a.body.Bytes())
		tag := `"` + hex.EncodeToString(sum[:16]) + `"`
		a.Header().Set("ETag", tag)
		a.Header().Set("Cache-Control", "private, no-cache") // keep it, and ask each time
		if matches(known, tag) {
			a.Header().Del("Content-Type")
			a.ResponseWriter.WriteHeader(http.StatusNotModified)
			return
		}
	}
	a.ResponseWriter.WriteHeader(a.status)
	_, _ = a.ResponseWriter.Write(a.body.Bytes()) // the client may be gone
}

func matches(known []string, tag string) bool {
	for _, line := range known {
		for _, one := range strings.Split(line, ",") {
			if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
				return true
			}
		}
	}
	return false
}
