package scheme

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-otel/countersign/engine"
)

var slack = Scheme{
	Name:     "slack",
	Sentence: "`X-Slack-Signature`: `v0=` and HMAC-SHA256 in hex over time and body; answers Slack's challenge",
	Trust:    engine.Independent,
	Timed:    true,
	New:      newSlack,
}

type slackVerifier struct {
	signer    *signer
	tolerance time.Duration
}

func newSlack(o Options) (Verifier, error) {
	s, err := sha256Signer(o.Secrets)
	if err != nil {
		return nil, err
	}
	return &slackVerifier{s, o.Tolerance}, nil
}

func (v *slackVerifier) Begin(header http.Header, now time.Time) (Check, error) {
	value, timestamp := header.Get("X-Slack-Signature"), header.Get("X-Slack-Request-Timestamp")
	if value == "" || timestamp == "" {
		return nil, ErrUnsigned
	}
	text, ok := strings.CutPrefix(value, "v0=")
	if !ok {
		return nil, ErrMalformed
	}
	signature, err := hex.DecodeString(text)
	if err != nil {
		return nil, ErrMalformed
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return nil, ErrMalformed
	}
	if err := within(time.Unix(seconds, 0), now, v.tolerance); err != nil {
		return nil, err
	}
	return v.signer.one(signature, "v0:"+timestamp+":"), nil
}

// Describe names the inner event, like reaction_added, where there is one.
func (v *slackVerifier) Describe(_ http.Header, body []byte) Description {
	e := open(body)
	d := Description{Event: name(string(e.Type)), ID: string(e.EventID)}
	if inner := open(e.Event); inner.Type != "" {
		d.Event = name(string(inner.Type))
	}
	return d
}

// Challenge answers the request by which Slack asks whether the endpoint is there.
func (v *slackVerifier) Challenge(body []byte) (answer string, ok bool) {
	e := open(body)
	return string(e.Challenge), e.Type == "url_verification"
}
