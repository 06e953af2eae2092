package scheme

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/config/configopaque"
)

const (
	refundBody = `{"id":"evt_1","type":"refund.created"}`
	// signedAt is 2026-09-28T10:42:00Z.
	signedAt = 1790592120
)

// vector is a signature that another implementation made: for github, slack
// and standard_webhooks the one that the sender publishes, else OpenSSL.
type vector struct {
	scheme string
	// secrets: the last one made the signature.
	secrets []configopaque.String
	options Options
	header  map[string]string
	body    string
	at      int64
	want    Description
}

var vectors = map[string]vector{
	"stripe": {
		scheme: "stripe", secrets: []configopaque.String{"whsec_0123456789abcdef"}, at: signedAt,
		header: map[string]string{"Stripe-Signature": "t=1790592120,v1=d1afcb5ed6b838156fc4b7ebb8ff5e4460ef43a2ab5f83d35de3fabaebe1ddae,v0=00"},
		body:   refundBody, want: Description{Event: "refund.created", ID: "evt_1"},
	},
	"stripe while a secret is rolled": {
		scheme: "stripe", secrets: []configopaque.String{"whsec_not_made_by_this", "whsec_fedcba9876543210"}, at: signedAt,
		header: map[string]string{"Stripe-Signature": "t=1790592120, v1=d1afcb5ed6b838156fc4b7ebb8ff5e4460ef43a2ab5f83d35de3fabaebe1ddae, v1=1db922e1e3b66ca13b8cf5cad98012d6a6503a5d42653d6fb1fc162b968c4a63"},
		body:   refundBody, want: Description{Event: "refund.created", ID: "evt_1"},
	},
	"shopify": {
		scheme: "shopify", secrets: []configopaque.String{"shpss_0123456789abcdef"},
		header: map[string]string{
			"X-Shopify-Hmac-Sha256": "9YEtm2/2Y2nzXqXeOjyMErGwKEAZrAyO09aPEnGbA78=",
			"X-Shopify-Topic":       "refunds/create", "X-Shopify-Webhook-Id": "b54557e4",
		},
		body: refundBody, want: Description{Event: "refunds/create", ID: "b54557e4"},
	},
	"github": {
		scheme: "github", secrets: []configopaque.String{"It's a Secret to Everybody"},
		header: map[string]string{
			"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
			"X-GitHub-Event":      "issues", "X-GitHub-Delivery": "72d3162e",
		},
		body: "Hello, World!", want: Description{Event: "issues", ID: "72d3162e"},
	},
	"slack": {
		scheme: "slack", secrets: []configopaque.String{"8f742231b10e8888abcd99yyyzzz85a5"}, at: 1531420618,
		header: map[string]string{
			"X-Slack-Signature":         "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
			"X-Slack-Request-Timestamp": "1531420618",
		},
		body: "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
	},
	"zendesk": {
		scheme: "zendesk", secrets: []configopaque.String{"dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ=="}, at: signedAt,
		header: map[string]string{
			"X-Zendesk-Webhook-Signature":           "QyhGLOi9lPSx77az2vHk+4texnlg9zeopIzzaT3Qyrc=",
			"X-Zendesk-Webhook-Signature-Timestamp": "2026-09-28T10:42:00Z",
		},
		body: refundBody, want: Description{Event: "refund.created", ID: "evt_1"},
	},
	"standard_webhooks": {
		scheme: "standard_webhooks", secrets: []configopaque.String{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, at: 1614265330,
		header: map[string]string{
			"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
			"webhook-signature": "v1a,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		},
		body: `{"test": 2432232314}`, want: Description{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek"},
	},
	"standard_webhooks by Svix": {
		scheme: "standard_webhooks", secrets: []configopaque.String{"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, at: 1614265330,
		header: map[string]string{
			"svix-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "svix-timestamp": "1614265330",
			"svix-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		},
		body: `{"test": 2432232314}`, want: Description{ID: "msg_p5jXN8AQM9LWM0D4loKWxJek"},
	},
	"hmac": {
		scheme: "hmac", secrets: []configopaque.String{"0123456789abcdef"}, at: signedAt,
		options: Options{
			Header: "X-Signature", Prefix: "sha512=", Encoding: "base64", Algorithm: "sha512",
			Signed: "{id}.{timestamp}.{body}!", TimestampHeader: "X-Time", DeliveryHeader: "X-Delivery", EventHeader: "X-Event",
		},
		header: map[string]string{
			"X-Signature": "sha512=XIYUEOJKao+cSfhSxwblVxEPGVx09Z6sEnSUcgiHwx38aNRlUVDsX4qsDLRlYERttSz+jAQlR3aHYwUH7nei8w==",
			"X-Time":      "1790592120", "X-Delivery": "dlv_7", "X-Event": "refund",
		},
		body: refundBody, want: Description{Event: "refund", ID: "dlv_7"},
	},
	"hmac as plain as can be": {
		scheme: "hmac", secrets: []configopaque.String{"It's a Secret to Everybody"},
		options: Options{Header: "X-Signature"},
		header:  map[string]string{"X-Signature": "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
		body:    "Hello, World!",
	},
	"api_key": {
		scheme: "api_key", secrets: []configopaque.String{"evidence_key_of_the_crm"},
		header: map[string]string{"X-API-Key": "evidence_key_of_the_crm"},
		body:   refundBody, want: Description{Event: "refund.created", ID: "evt_1"},
	},
	"api_key as bearer": {
		scheme: "api_key", secrets: []configopaque.String{"an_older_evidence_key", "evidence_key_of_the_crm"},
		header: map[string]string{"Authorization": "bearer evidence_key_of_the_crm"},
		body:   refundBody, want: Description{Event: "refund.created", ID: "evt_1"},
	},
	"api_key in a header of its own": {
		scheme: "api_key", secrets: []configopaque.String{"evidence_key_of_the_crm"},
		options: Options{Header: "X-Token", Prefix: "Token "},
		header:  map[string]string{"X-Token": "Token evidence_key_of_the_crm"},
		body:    refundBody, want: Description{Event: "refund.created", ID: "evt_1"},
	},
}

func (v *vector) verifier(t testing.TB) Verifier {
	t.Helper()
	found, ok := Find(v.scheme)
	if !ok {
		t.Fatalf("there is no scheme %s", v.scheme)
	}
	o := v.options
	o.Secrets, o.Tolerance = v.secrets, 5*time.Minute
	made, err := found.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (v *vector) headers() http.Header {
	h := http.Header{}
	for name, value := range v.header {
		h.Set(name, value)
	}
	return h
}

func (v *vector) now() time.Time { return time.Unix(v.at, 0) }

func TestSignaturesOfOthersVerify(t *testing.T) {
	t.Parallel()
	for name, v := range vectors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verifier := v.verifier(t)
			check, err := verifier.Begin(v.headers(), v.now())
			if err != nil {
				t.Fatal(err)
			}
			secret, ok := check([]byte(v.body))
			if want := len(v.secrets) - 1; !ok || secret != want {
				t.Errorf("secret %d, %t; want %d", secret, ok, want)
			}
			if diff := cmp.Diff(v.want, verifier.Describe(v.headers(), []byte(v.body))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEverySchemeHasVectors: a scheme whose signatures nobody else made proves nothing.
func TestEverySchemeHasVectors(t *testing.T) {
	t.Parallel()
	for _, s := range All() {
		found := false
		for _, v := range vectors {
			found = found || v.scheme == s.Name
		}
		if !found || s.Sentence == "" || s.New == nil || s.Trust == 0 {
			t.Errorf("%s: vector %t, sentence %q", s.Name, found, s.Sentence)
		}
	}
}

func TestChangedBodyIsRefused(t *testing.T) {
	t.Parallel()
	for name, v := range vectors {
		if v.scheme == "api_key" {
			continue // proves the sender, not the body
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check, err := v.verifier(t).Begin(v.headers(), v.now())
			if err != nil {
				t.Fatal(err)
			}
			for i := range len(v.body) {
				changed := []byte(v.body)
				changed[i] ^= 1
				if _, ok := check(changed); ok {
					t.Fatalf("byte %d changed, and it verifies", i)
				}
			}
			for _, other := range []string{"", v.body + "\n", v.body[1:]} {
				if _, ok := check([]byte(other)); ok {
					t.Errorf("%q verifies", other)
				}
			}
		})
	}
}

// TestTimeBoundsReplay: two-sided, inclusive, and only where a time is signed.
func TestTimeBoundsReplay(t *testing.T) {
	t.Parallel()
	for name, v := range vectors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for after, inside := range map[time.Duration]bool{
				0: true, 5 * time.Minute: true, 5*time.Minute + time.Nanosecond: false, time.Hour: false,
				-5 * time.Minute: true, -5*time.Minute - time.Nanosecond: false, -time.Hour: false,
			} {
				_, err := v.verifier(t).Begin(v.headers(), v.now().Add(after))
				switch {
				case (inside || v.at == 0) && err != nil:
					t.Errorf("%v after: %v", after, err)
				case !inside && v.at != 0 && !errors.Is(err, ErrExpired):
					t.Errorf("%v after: %v, want %v", after, err, ErrExpired)
				}
			}
		})
	}
}

// TestEverySignedHeaderCounts: what the signature covers cannot be exchanged.
func TestEverySignedHeaderCounts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ vector, header, value string }{
		"stripe time":        {"stripe", "Stripe-Signature", "t=1790592121,v1=d1afcb5ed6b838156fc4b7ebb8ff5e4460ef43a2ab5f83d35de3fabaebe1ddae"},
		"slack time":         {"slack", "X-Slack-Request-Timestamp", "1531420619"},
		"zendesk time":       {"zendesk", "X-Zendesk-Webhook-Signature-Timestamp", "2026-09-28T10:42:01Z"},
		"zendesk same time":  {"zendesk", "X-Zendesk-Webhook-Signature-Timestamp", "2026-09-28T10:42:00+00:00"},
		"standard id":        {"standard_webhooks", "webhook-id", "msg_other"},
		"standard time":      {"standard_webhooks", "webhook-timestamp", "1614265331"},
		"hmac time":          {"hmac", "X-Time", "1790592121"},
		"hmac id":            {"hmac", "X-Delivery", "dlv_8"},
		"hmac, other secret": {"hmac", "X-Signature", "sha512=AAAA"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := vectors[tc.vector]
			h := v.headers()
			h.Set(tc.header, tc.value)
			check, err := v.verifier(t).Begin(h, v.now())
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := check([]byte(v.body)); ok {
				t.Error("it verifies")
			}
		})
	}
}

func TestHeadersThatProveNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		vector, header, value string
		want                  error
	}{
		"stripe, none":               {"stripe", "Stripe-Signature", "", ErrUnsigned},
		"stripe, no time":            {"stripe", "Stripe-Signature", "v1=00", ErrMalformed},
		"stripe, two times":          {"stripe", "Stripe-Signature", "t=1790592120,t=1790592120,v1=00", ErrMalformed},
		"stripe, no signature":       {"stripe", "Stripe-Signature", "t=1790592120", ErrMalformed},
		"stripe, only v0":            {"stripe", "Stripe-Signature", "t=1790592120,v0=00", ErrMalformed},
		"stripe, time of words":      {"stripe", "Stripe-Signature", "t=now,v1=00", ErrMalformed},
		"stripe, signature of words": {"stripe", "Stripe-Signature", "t=1790592120,v1=yes", ErrMalformed},
		"shopify, none":              {"shopify", "X-Shopify-Hmac-Sha256", "", ErrUnsigned},
		"shopify, hex":               {"shopify", "X-Shopify-Hmac-Sha256", "zz$", ErrMalformed},
		"github, none":               {"github", "X-Hub-Signature-256", "", ErrUnsigned},
		"github, sha1":               {"github", "X-Hub-Signature-256", "sha1=00", ErrMalformed},
		"github, no hex":             {"github", "X-Hub-Signature-256", "sha256=0", ErrMalformed},
		"slack, none":                {"slack", "X-Slack-Signature", "", ErrUnsigned},
		"slack, no time":             {"slack", "X-Slack-Request-Timestamp", "", ErrUnsigned},
		"slack, other version":       {"slack", "X-Slack-Signature", "v1=00", ErrMalformed},
		"slack, no hex":              {"slack", "X-Slack-Signature", "v0=0", ErrMalformed},
		"slack, time of words":       {"slack", "X-Slack-Request-Timestamp", "now", ErrMalformed},
		"zendesk, none":              {"zendesk", "X-Zendesk-Webhook-Signature", "", ErrUnsigned},
		"zendesk, no base64":         {"zendesk", "X-Zendesk-Webhook-Signature", "$", ErrMalformed},
		"zendesk, time of words":     {"zendesk", "X-Zendesk-Webhook-Signature-Timestamp", "now", ErrMalformed},
		"standard, none":             {"standard_webhooks", "webhook-signature", "", ErrUnsigned},
		"standard, no id":            {"standard_webhooks", "webhook-id", "", ErrUnsigned},
		"standard, other version":    {"standard_webhooks", "webhook-signature", "v2,AAAA", ErrMalformed},
		"standard, time of words":    {"standard_webhooks", "webhook-timestamp", "now", ErrMalformed},
		"standard, dot in the id":    {"standard_webhooks", "webhook-id", "msg.1", ErrMalformed},
		"hmac, none":                 {"hmac", "X-Signature", "", ErrUnsigned},
		"hmac, other prefix":         {"hmac", "X-Signature", "sha256=AAAA", ErrMalformed},
		"hmac, no base64":            {"hmac", "X-Signature", "sha512=$", ErrMalformed},
		"hmac, no id":                {"hmac", "X-Delivery", "", ErrUnsigned},
		"hmac, no time":              {"hmac", "X-Time", "", ErrUnsigned},
		"hmac, time of words":        {"hmac", "X-Time", "now", ErrMalformed},
		"api_key, none":              {"api_key", "X-API-Key", "", ErrUnsigned},
		"api_key, another":           {"api_key", "X-API-Key", "evidence_key_of_the_crN", ErrSignature},
		"api_key, part of it":        {"api_key", "X-API-Key", "evidence_key_of_the_cr", ErrSignature},
		"api_key, basic":             {"api_key as bearer", "Authorization", "Basic evidence_key_of_the_crm", ErrUnsigned},
		"api_key, other prefix":      {"api_key in a header of its own", "X-Token", "evidence_key_of_the_crm", ErrUnsigned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := vectors[tc.vector]
			h := v.headers()
			h.Set(tc.header, tc.value)
			if _, err := v.verifier(t).Begin(h, v.now()); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	t.Parallel()
	good := []configopaque.String{"0123456789abcdef"}
	const short = "secrets[0]: it has less than 16 characters, so that it could be guessed"
	const unset = "secrets[0]: it is empty; set the environment variable that it is taken from, or write it"
	const none = "secrets: there is none, so that nobody could send anything; add the one that the sender signs with"
	for name, tc := range map[string]struct {
		scheme  string
		options Options
		want    string
	}{
		"no header":    {"hmac", Options{Secrets: good}, "header: it is empty; name the one that carries the signature"},
		"encoding":     {"hmac", Options{Secrets: good, Header: "X", Encoding: "base32"}, `encoding: "base32": write hex, base64 or base64url`},
		"algorithm":    {"hmac", Options{Secrets: good, Header: "X", Algorithm: "md5"}, `algorithm: "md5": write sha256, sha384 or sha512`},
		"no body":      {"hmac", Options{Secrets: good, Header: "X", Signed: "{id}"}, "signed: it has to hold {body} once, like {timestamp}.{body}"},
		"two bodies":   {"hmac", Options{Secrets: good, Header: "X", Signed: "{body}{body}"}, "signed: it has to hold {body} once, like {timestamp}.{body}"},
		"no time":      {"hmac", Options{Secrets: good, Header: "X", Signed: "{timestamp}{body}"}, "timestamp_header: it is empty, but signed holds {timestamp}; name the header that carries it"},
		"unsigned":     {"hmac", Options{Secrets: good, Header: "X", TimestampHeader: "X-Time"}, "timestamp_header: a time that is not signed proves nothing; put {timestamp} into signed, or remove it"},
		"no id":        {"hmac", Options{Secrets: good, Header: "X", Signed: "{id}{body}"}, "delivery_header: it is empty, but signed holds {id}; name the header that carries it"},
		"hmac secret":  {"hmac", Options{Secrets: []configopaque.String{"0123456789abcde"}, Header: "X"}, short},
		"unset hmac":   {"hmac", Options{Secrets: []configopaque.String{""}, Header: "X"}, unset},
		"unset key":    {"api_key", Options{Secrets: []configopaque.String{""}}, unset},
		"no base64":    {"standard_webhooks", Options{Secrets: []configopaque.String{"whsec_$"}}, "secrets[0]: it is no base64; write it as the sender shows it, like whsec_ and base64"},
		"short base64": {"standard_webhooks", Options{Secrets: []configopaque.String{"whsec_AAAA"}}, short},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := Find(tc.scheme)
			if _, err := s.New(tc.options); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	for _, s := range All() {
		if _, err := s.New(Options{Header: "X"}); err == nil || err.Error() != none {
			t.Errorf("%s without a secret: %v", s.Name, err)
		}
		if s.Name == "standard_webhooks" {
			continue
		}
		if _, err := s.New(Options{Header: "X", Secrets: []configopaque.String{"short"}}); err == nil || err.Error() != short {
			t.Errorf("%s with a short secret: %v", s.Name, err)
		}
	}
}

func TestSlackIsDescribed(t *testing.T) {
	t.Parallel()
	v := vectors["slack"]
	for body, want := range map[string]Description{
		`{"type":"event_callback","event_id":"Ev08","event":{"type":"message","id":"x"}}`: {Event: "message", ID: "Ev08"},
		`{"type":"app_rate_limited","event_id":7}`:                                        {Event: "app_rate_limited"},
		`payload=%7B%7D`: {},
		`{"type":"` + strings.Repeat("x", 257) + `"}`: {},
		`{"type":"two\nlines"}`:                       {},
	} {
		if diff := cmp.Diff(want, v.verifier(t).Describe(nil, []byte(body))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

func TestSlackAsksFirst(t *testing.T) {
	t.Parallel()
	v := vectors["slack"]
	asker, ok := v.verifier(t).(Challenger)
	if !ok {
		t.Fatal("slack has no challenge")
	}
	if got, asked := asker.Challenge([]byte(`{"type":"url_verification","challenge":"3eZbrw1a"}`)); got != "3eZbrw1a" || !asked {
		t.Errorf("got %q, %t", got, asked)
	}
	if got, asked := asker.Challenge([]byte(`{"type":"event_callback","challenge":"3eZbrw1a"}`)); asked {
		t.Errorf("an event is answered %q", got)
	}
}

func TestTimesOfSenders(t *testing.T) {
	t.Parallel()
	want := time.Unix(signedAt, 0)
	for _, text := range []string{"1790592120", "1790592120000", "2026-09-28T10:42:00Z", "2026-09-28T12:42:00.000+02:00"} {
		if got, ok := readTime(text); !ok || !got.Equal(want) {
			t.Errorf("%s: %v, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "soon", "1790592120.5", "2026-09-28"} {
		if got, ok := readTime(text); ok {
			t.Errorf("%q reads as %v", text, got)
		}
	}
}

// TestManySignaturesCostLittle: what a header claims bounds no work of ours.
func TestManySignaturesCostLittle(t *testing.T) {
	t.Parallel()
	_, signatures := readStripe("t=1," + strings.Repeat("v1=00,", 10_000))
	if len(signatures) != maxSignatures {
		t.Errorf("%d signatures are compared", len(signatures))
	}
	if signatures = readStandard(strings.Repeat("v1,AAAA ", 10_000)); len(signatures) != maxSignatures {
		t.Errorf("%d signatures are compared", len(signatures))
	}
}
