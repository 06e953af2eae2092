package scheme

import (
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-otel/countersign/engine"
)

var hmacScheme = Scheme{
	Name:     "hmac",
	Sentence: "any HMAC in a header; `header`, `prefix`, `encoding`, `algorithm`, `signed` and `timestamp_header` say how",
	Trust:    engine.Independent,
	Timed:    true,
	Takes: []string{
		OptionHeader, OptionPrefix, OptionEncoding, OptionAlgorithm, OptionSigned,
		OptionTimestampHeader, OptionDeliveryHeader, OptionEventHeader,
	},
	New: newHMAC,
}

type hmacVerifier struct {
	options Options
	signer  *signer
	decode  func(string) ([]byte, error)
	// before and after stand around the body in what is signed.
	before, after string
	// needsID: the delivery's id is signed.
	needsID bool
}

var algorithms = map[string]func() hash.Hash{"sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}

// Parts of what is signed.
const (
	bodyPart      = "{body}"
	timestampPart = "{timestamp}"
	idPart        = "{id}"
)

func newHMAC(o Options) (Verifier, error) {
	if o.Encoding == "" {
		o.Encoding = "hex"
	}
	if o.Algorithm == "" {
		o.Algorithm = "sha256"
	}
	if o.Signed == "" {
		o.Signed = bodyPart
	}
	v := &hmacVerifier{options: o, decode: decoders[o.Encoding]}
	algorithm := algorithms[o.Algorithm]
	switch {
	case o.Header == "":
		return nil, errors.New("header: it is empty; name the one that carries the signature")
	case v.decode == nil:
		return nil, fmt.Errorf("encoding: %.40q: write hex, base64 or base64url", o.Encoding)
	case algorithm == nil:
		return nil, fmt.Errorf("algorithm: %.40q: write sha256, sha384 or sha512", o.Algorithm)
	}
	if err := v.readSigned(); err != nil {
		return nil, err
	}
	var err error
	v.signer, err = newSigner(o.Secrets, algorithm)
	return v, err
}

// readSigned cuts the template at the body. A time or an id that is named must
// be signed: else whoever recorded a delivery could give it another one.
func (v *hmacVerifier) readSigned() error {
	o := &v.options
	var found bool
	v.before, v.after, found = strings.Cut(o.Signed, bodyPart)
	timed := strings.Contains(o.Signed, timestampPart)
	v.needsID = strings.Contains(o.Signed, idPart)
	switch {
	case !found || strings.Contains(v.after, bodyPart):
		return errors.New("signed: it has to hold {body} once, like {timestamp}.{body}")
	case timed && o.TimestampHeader == "":
		return errors.New("timestamp_header: it is empty, but signed holds {timestamp}; name the header that carries it")
	case !timed && o.TimestampHeader != "":
		return errors.New("timestamp_header: a time that is not signed proves nothing; put {timestamp} into signed, or remove it")
	case v.needsID && o.DeliveryHeader == "":
		return errors.New("delivery_header: it is empty, but signed holds {id}; name the header that carries it")
	}
	return nil
}

func (v *hmacVerifier) Begin(header http.Header, now time.Time) (Check, error) {
	o := &v.options
	value := header.Get(o.Header)
	if value == "" {
		return nil, ErrUnsigned
	}
	text, ok := strings.CutPrefix(value, o.Prefix)
	if !ok {
		return nil, ErrMalformed
	}
	signature, err := v.decode(text)
	if err != nil {
		return nil, ErrMalformed
	}
	timestamp, id, err := v.claims(header, now)
	if err != nil {
		return nil, err
	}
	fill := strings.NewReplacer(timestampPart, timestamp, idPart, id)
	before, after := fill.Replace(v.before), fill.Replace(v.after)
	return func(body []byte) (int, bool) { return v.signer.match([][]byte{signature}, before, body, after) }, nil
}

// claims are the time and the id that are signed with the body.
func (v *hmacVerifier) claims(header http.Header, now time.Time) (timestamp, id string, err error) {
	o := &v.options
	if v.needsID {
		if id = header.Get(o.DeliveryHeader); id == "" {
			return "", "", ErrUnsigned
		}
	}
	if o.TimestampHeader == "" {
		return "", id, nil
	}
	if timestamp = header.Get(o.TimestampHeader); timestamp == "" {
		return "", "", ErrUnsigned
	}
	at, ok := readTime(timestamp)
	if !ok {
		return "", "", ErrMalformed
	}
	return timestamp, id, within(at, now, o.Tolerance)
}

// readTime reads Unix seconds, Unix milliseconds or RFC 3339. Numbers from
// 10^11 on, which as seconds are beyond the year 5000, are milliseconds.
func readTime(text string) (time.Time, bool) {
	const firstMillis = 100_000_000_000
	if number, err := strconv.ParseInt(text, 10, 64); err == nil {
		if number >= firstMillis {
			return time.UnixMilli(number), true
		}
		return time.Unix(number, 0), true
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return at, err == nil
}

func (v *hmacVerifier) Describe(header http.Header, body []byte) Description {
	return describeBy(header, body, &v.options)
}

// describeBy prefers the headers that the configuration names.
func describeBy(header http.Header, body []byte, o *Options) Description {
	d := describe(body)
	if o.EventHeader != "" {
		d.Event = name(header.Get(o.EventHeader))
	}
	if o.DeliveryHeader != "" {
		d.ID = header.Get(o.DeliveryHeader)
	}
	return d
}
