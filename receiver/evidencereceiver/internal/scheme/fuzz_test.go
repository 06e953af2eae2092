package scheme

import (
	"net/http"
	"testing"
	"time"
)

// FuzzHeaders: whatever the headers say, nothing panics, and no body verifies
// that the secret's owner did not sign.
func FuzzHeaders(f *testing.F) {
	var all []Verifier
	for _, s := range All() {
		for _, v := range vectors {
			if v.scheme == s.Name {
				all = append(all, v.verifier(f))
				break
			}
		}
	}
	for _, v := range vectors {
		h := v.headers()
		f.Add(h.Get("Stripe-Signature")+h.Get("X-Signature")+h.Get("X-Slack-Signature")+h.Get("Webhook-Signature"), "1790592120", "id_1", []byte(v.body))
	}
	f.Add("t=,v1=", "", "", []byte(nil))
	f.Add("sha256=00", "-9223372036854775808", "a.b", []byte(`{"type":{},"id":[]}`))
	f.Add("v1,AAAA v1,====", "99999999999999", "\x00", []byte("{"))
	f.Fuzz(func(t *testing.T, signature, timestamp, id string, body []byte) {
		h := http.Header{}
		for _, name := range []string{
			"Stripe-Signature", "X-Shopify-Hmac-Sha256", "X-Hub-Signature-256", "X-Slack-Signature", "X-Signature",
			"X-Zendesk-Webhook-Signature", "Webhook-Signature", "X-Api-Key",
		} {
			h[name] = []string{signature}
		}
		for _, name := range []string{
			"X-Slack-Request-Timestamp", "X-Zendesk-Webhook-Signature-Timestamp", "Webhook-Timestamp", "X-Time",
		} {
			h[name] = []string{timestamp}
		}
		for _, name := range []string{"Webhook-Id", "X-Delivery", "X-Shopify-Webhook-Id", "X-Github-Delivery"} {
			h[name] = []string{id}
		}
		original := false
		for _, v := range vectors {
			original = original || string(body) == v.body || signature == v.header["X-API-Key"]
		}
		for _, v := range all {
			check, err := v.Begin(h, time.Unix(signedAt, 0))
			v.Describe(h, body)
			if err != nil {
				continue
			}
			if _, ok := check(body); ok && !original {
				t.Errorf("%T: %q verifies under %q", v, body, signature)
			}
		}
	})
}
