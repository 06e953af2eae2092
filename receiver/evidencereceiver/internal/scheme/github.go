package scheme

import (
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/countersign-otel/countersign/engine"
)

var github = Scheme{
	Name:     "github",
	Sentence: "`X-Hub-Signature-256`: `sha256=` and HMAC-SHA256 in hex over the body; the event's name is not signed",
	Trust:    engine.Independent,
	New:      newGitHub,
}

type githubVerifier struct{ signer *signer }

func newGitHub(o Options) (Verifier, error) {
	s, err := sha256Signer(o.Secrets)
	if err != nil {
		return nil, err
	}
	return &githubVerifier{s}, nil
}

func (v *githubVerifier) Begin(header http.Header, _ time.Time) (Check, error) {
	value := header.Get("X-Hub-Signature-256")
	if value == "" {
		return nil, ErrUnsigned
	}
	text, ok := strings.CutPrefix(value, "sha256=")
	if !ok {
		return nil, ErrMalformed
	}
	signature, err := hex.DecodeString(text)
	if err != nil {
		return nil, ErrMalformed
	}
	return v.signer.one(signature, ""), nil
}

func (v *githubVerifier) Describe(header http.Header, _ []byte) Description {
	return Description{Event: name(header.Get("X-Github-Event")), ID: header.Get("X-Github-Delivery")}
}
