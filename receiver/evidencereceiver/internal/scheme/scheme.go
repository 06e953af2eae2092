package scheme

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/countersign-otel/countersign/engine"
)

// Scheme is one way to show who sent a delivery.
type Scheme struct {
	Name string
	// Sentence says in one line how it works.
	Sentence string
	// Trust is what a verified delivery earns (decision D10).
	Trust engine.Trust
	// Timed schemes sign a time, and refuse what is older or newer than the tolerance.
	Timed bool
	// Takes are the names of the options that the scheme reads beside secrets and tolerance.
	Takes []string
	// New makes a verifier. Its errors start with the name of the option.
	New func(Options) (Verifier, error)
}

// Options are what a configuration says. Those that Scheme.Takes does not name are empty.
type Options struct {
	Secrets []configopaque.String
	// Tolerance bounds the age of a signature, and how far it may lie in the future.
	Tolerance time.Duration
	// Header carries the signature or the key, behind Prefix.
	Header, Prefix string
	// Encoding is hex, base64 or base64url; Algorithm sha256, sha384 or sha512.
	Encoding, Algorithm string
	// Signed is what is signed, with {body}, {timestamp} and {id}.
	Signed string
	// TimestampHeader, DeliveryHeader and EventHeader name headers.
	TimestampHeader, DeliveryHeader, EventHeader string
}

// Names of the options.
const (
	OptionHeader          = "header"
	OptionPrefix          = "prefix"
	OptionEncoding        = "encoding"
	OptionAlgorithm       = "algorithm"
	OptionSigned          = "signed"
	OptionTimestampHeader = "timestamp_header"
	OptionDeliveryHeader  = "delivery_header"
	OptionEventHeader     = "event_header"
)

// Verifier checks deliveries. It is safe for concurrent use.
type Verifier interface {
	// Begin reads what the headers claim. It fails with one of the errors below
	// where no body can be right, so that none has to be read.
	Begin(header http.Header, now time.Time) (Check, error)
	// Describe says what a verified delivery is. What cannot be said is empty.
	Describe(header http.Header, body []byte) Description
}

// Check says which secret signed these bytes, by its place in the
// configuration; ok is false for none.
type Check func(body []byte) (secret int, ok bool)

// Description is what a sender calls a delivery. Neither is trusted to be
// unique, nor, where the scheme does not sign it, to be true.
type Description struct {
	// Event is the kind of event, ID the delivery's or event's own id.
	Event, ID string
}

// Challenger is a Verifier whose sender asks for an answer before it sends anything.
type Challenger interface {
	// Challenge is what a verified body asks to be answered; ok is false for an event.
	Challenge(body []byte) (answer string, ok bool)
}

// Why a delivery is refused. A sender is not told.
var (
	ErrUnsigned  = errors.New("there is no signature")
	ErrMalformed = errors.New("the signature does not read")
	ErrSignature = errors.New("no secret made the signature")
	ErrExpired   = errors.New("the signature's time is outside the tolerance")
)

// MinSecret is the shortest secret or key, in bytes.
const MinSecret = 16

var errNoSecret = errors.New("secrets: there is none, so that nobody could send anything; add the one that the sender signs with")

var (
	errShortSecret = errors.New("it has less than 16 characters, so that it could be guessed")
	// An unset variable is the usual reason.
	errEmptySecret = errors.New("it is empty; set the environment variable that it is taken from, or write it")
)

// checkSecret says what is wrong with a secret or key, by its place.
func checkSecret(i int, secret string) error {
	switch {
	case secret == "":
		return fmt.Errorf("secrets[%d]: %w", i, errEmptySecret)
	case len(secret) < MinSecret:
		return fmt.Errorf("secrets[%d]: %w", i, errShortSecret)
	}
	return nil
}

// within: a signature is as wrong too early as it is too late.
func within(at, now time.Time, tolerance time.Duration) error {
	if age := now.Sub(at); age > tolerance || age < -tolerance {
		return ErrExpired
	}
	return nil
}
