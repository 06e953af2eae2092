package delivery

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Sealer seals deliveries and tells its own from others. It is safe for concurrent use.
type Sealer struct{ key []byte }

// domain keeps this use of a key apart from any other.
const domain = "countersign delivery 1"

// MinKey is the shortest key that can be given, in bytes.
const MinKey = 32

// ErrKey is the error about a key that could be guessed.
var ErrKey = errors.New("it has less than 32 characters, so that it could be guessed; write something like what `openssl rand -hex 32` prints")

// processKey is made once and known to this process alone.
var processKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails: it ends the program instead
	return key
})

// NewSealer uses the key that several collectors were given, or, where it is
// empty, one that this process alone knows. It fails with ErrKey.
func NewSealer(key string) (*Sealer, error) {
	if key == "" {
		return &Sealer{key: processKey()}, nil
	}
	if len(key) < MinKey {
		return nil, ErrKey
	}
	return &Sealer{key: []byte(key)}, nil
}

// seal is over every field with its length, so that no two records have the same bytes.
func (s *Sealer) seal(entry plog.LogRecord, d *Delivery) [sha256.Size]byte {
	mac := hmac.New(sha256.New, s.key)
	var scratch [8]byte
	write(mac, &scratch, domain)
	for _, f := range d.fields() {
		write(mac, &scratch, f.text)
	}
	write(mac, &scratch, entry.EventName())
	writeBody(mac, &scratch, entry.Body())
	var sum [sha256.Size]byte
	mac.Sum(sum[:0])
	return sum
}

func (s *Sealer) fits(entry plog.LogRecord, d *Delivery, seal pcommon.ByteSlice) bool {
	want := s.seal(entry, d)
	return hmac.Equal(want[:], seal.AsRaw())
}

func write(mac hash.Hash, scratch *[8]byte, text string) {
	binary.BigEndian.PutUint64(scratch[:], uint64(len(text)))
	_, _ = mac.Write(scratch[:])
	_, _ = io.WriteString(mac, text)
}

// writeBody: a receiver writes text, or bytes where what came is no text. Any
// other body was made on the way, and is sealed as what it prints.
func writeBody(mac hash.Hash, scratch *[8]byte, body pcommon.Value) {
	write(mac, scratch, body.Type().String())
	switch body.Type() {
	case pcommon.ValueTypeStr:
		write(mac, scratch, body.Str())
	case pcommon.ValueTypeBytes:
		write(mac, scratch, string(body.Bytes().AsRaw()))
	default:
		write(mac, scratch, body.AsString())
	}
}
