package aevs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-otel/countersign/engine"
)

// Limits of a receipt's texts, in bytes.
const (
	// MaxTextBytes bounds names and versions.
	MaxTextBytes = 512
	// MaxErrorBytes bounds the error of a call; longer ones are cut.
	MaxErrorBytes = 4 << 10
)

// ErrReceipt is wrapped by every error about a receipt that does not read.
var ErrReceipt = errors.New("invalid receipt")

// Receipt is what an agent's SDK says of one tool call. Empty texts were not
// sent.
type Receipt struct {
	ReferenceID string
	// SessionID is empty in receipts of SDKs that had no sessions yet.
	SessionID string
	AgentID   string
	// Seq counts the receipts of a session from 1.
	Seq uint64
	// PrevHash is the hash of the receipt before, or the session's anchor; lower-case hex.
	PrevHash string
	// Hash is the SHA-256 of the canonical receipt, lower-case hex.
	Hash     string
	ToolName string
	// Inputs and Output are canonical JSON, nil where they were not captured:
	// null, of a proof_only receipt, or cut by the SDK for their size.
	Inputs, Output []byte
	// InputHash and OutputHash stand in proof_only receipts.
	InputHash, OutputHash string
	// Truncated says that the SDK cut the inputs or the output.
	Truncated bool
	// Status is success or error.
	Status, Error string
	// Started and Ended are by the agent's clock; Ended is never before Started.
	Started, Ended time.Time
	DurationMS     int64
	RunID          string
	ParentRunID    string
	InvocationID   string
	SDKVersion     string
	Framework      string
	// FrameworkVersion is that of Framework.
	FrameworkVersion string
	// Visibility is public, private or proof_only.
	Visibility string
	// Signature is payload_hmac: hex of the HMAC, or of r and s.
	Signature string

	// signed are the canonical bytes without the signature.
	signed []byte
}

// What receipt_visibility may be.
const (
	Public    = "public"
	Private   = "private"
	ProofOnly = "proof_only"
)

// What status may be.
const (
	Success = "success"
	Failure = "error"
)

const signatureKey = "payload_hmac"

// parseReceipt reads a receipt. The error names every field that is wrong.
func parseReceipt(wire []byte, normalize bool) (*Receipt, error) {
	list, err := members(wire, normalize)
	if err != nil {
		return &Receipt{}, fmt.Errorf("%w: %w", ErrReceipt, err)
	}
	f := fields{list: list}
	r := f.receipt()
	if err := errors.Join(f.errs...); err != nil {
		return &Receipt{ReferenceID: r.ReferenceID}, err
	}
	whole := appendObject(make([]byte, 0, len(wire)), list, "")
	sum := sha256.Sum256(whole)
	r.Hash = hex.EncodeToString(sum[:])
	r.signed = appendObject(whole[:0], list, signatureKey)
	return r, nil
}

// fields reads the members of a receipt and keeps what is wrong.
type fields struct {
	list []member
	errs []error
}

func (f *fields) receipt() *Receipt {
	r := &Receipt{
		ReferenceID:      f.id("reference_id"),
		SessionID:        f.optionalID("session_id"),
		AgentID:          f.id("agent_id"),
		Seq:              f.seq(),
		PrevHash:         f.hash("prev_hash", true),
		ToolName:         f.id("tool_name"),
		InputHash:        f.hash("input_hash", false),
		OutputHash:       f.hash("output_hash", false),
		Status:           f.oneOf("status", "", Success, Failure),
		Error:            f.free("error", MaxErrorBytes),
		Started:          f.time("started_at"),
		Ended:            f.time("ended_at"),
		DurationMS:       f.duration(),
		RunID:            f.free("run_id", MaxTextBytes),
		ParentRunID:      f.free("parent_run_id", MaxTextBytes),
		InvocationID:     f.free("invocation_id", MaxTextBytes),
		SDKVersion:       f.free("sdk_version", MaxTextBytes),
		Framework:        f.free("framework", MaxTextBytes),
		FrameworkVersion: f.free("framework_version", MaxTextBytes),
		Visibility:       f.oneOf("receipt_visibility", Private, Public, Private, ProofOnly),
		Signature:        f.signature(),
	}
	if r.Ended.Before(r.Started) {
		r.Ended = r.Started
	}
	if r.Visibility != ProofOnly {
		r.Inputs = f.captured("inputs", &r.Truncated)
		r.Output = f.captured("output", &r.Truncated)
	}
	return r
}

func (f *fields) fail(name, format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf("%w: /%s %s", ErrReceipt, name, fmt.Sprintf(format, args...)))
}

// raw is the canonical value of a field; nil for null, and where it was not sent.
func (f *fields) raw(name string) []byte {
	for i := range f.list {
		if f.list[i].key == name && string(f.list[i].value) != "null" {
			return f.list[i].value
		}
	}
	return nil
}

func (f *fields) text(name string, required bool) (string, bool) {
	raw := f.raw(name)
	if raw == nil {
		if required {
			f.fail(name, "is missing")
		}
		return "", false
	}
	if raw[0] != '"' {
		f.fail(name, "is no string")
		return "", false
	}
	s := scanner{in: raw}
	text, err := s.quoted() // canonical: it reads
	if err != nil {
		f.fail(name, "does not read: %v", err)
		return "", false
	}
	return text, true
}

// id reads what identifies: 1 to 512 bytes without control characters (D6).
func (f *fields) id(name string) string {
	text, ok := f.text(name, true)
	if !ok {
		return ""
	}
	if err := engine.CheckOpaque("/"+name, text); err != nil {
		f.errs = append(f.errs, fmt.Errorf("%w: %w", ErrReceipt, err))
		return ""
	}
	return text
}

// optionalID reads what identifies where it was sent.
func (f *fields) optionalID(name string) string {
	if f.raw(name) == nil {
		return ""
	}
	return f.id(name)
}

// free reads a text that nothing depends on; what is too long of it is cut.
func (f *fields) free(name string, most int) string {
	text, _ := f.text(name, false)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

func (f *fields) oneOf(name, otherwise string, allowed ...string) string {
	text, ok := f.text(name, otherwise == "")
	if !ok {
		return otherwise
	}
	for _, a := range allowed {
		if a == text {
			return text
		}
	}
	f.fail(name, "is %q; one of %s was expected", clip(text), strings.Join(allowed, ", "))
	return ""
}

func (f *fields) hash(name string, required bool) string {
	text, ok := f.text(name, required)
	if !ok {
		return ""
	}
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != sha256.Size {
		f.fail(name, "is no SHA-256 in hexadecimal")
		return ""
	}
	return strings.ToLower(text)
}

func (f *fields) signature() string {
	text, ok := f.text(signatureKey, true)
	const hmacDigits, ecdsaDigits = 64, 128
	if ok && len(text) != hmacDigits && len(text) != ecdsaDigits {
		f.fail(signatureKey, "has %d characters; %d or %d hexadecimal digits were expected", len(text), hmacDigits, ecdsaDigits)
		return ""
	}
	return text
}

func (f *fields) seq() uint64 {
	raw := f.raw("seq")
	if raw == nil {
		f.fail("seq", "is missing")
		return 0
	}
	const bits = 63 // what every store of numbers takes
	seq, err := strconv.ParseUint(string(raw), 10, bits)
	if err != nil || seq == 0 {
		f.fail("seq", "is no whole number from 1 up")
		return 0
	}
	return seq
}

// duration is not judged: the times are there as well.
func (f *fields) duration() int64 {
	duration, _ := strconv.ParseInt(string(f.raw("duration_ms")), 10, 64) // without one: 0
	return duration
}

// time reads RFC 3339 with any offset and up to nanoseconds, from 1970 on.
func (f *fields) time(name string) time.Time {
	text, ok := f.text(name, true)
	if !ok {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		f.fail(name, "is %q; a time with an offset was expected, like 2026-06-15T10:30:00.25+00:00", clip(text))
		return time.Time{}
	}
	const lastYear = 2261 // of 64-bit nanoseconds
	if at.Unix() < 0 || at.UTC().Year() > lastYear {
		f.fail(name, "is outside the years 1970 to %d", lastYear)
		return time.Time{}
	}
	return at.UTC()
}

// captured reads inputs or output, which may be any value.
func (f *fields) captured(name string, truncated *bool) []byte {
	raw := f.raw(name)
	if isTruncated(raw) {
		*truncated = true
		return nil
	}
	return raw
}

// isTruncated recognises what the SDK puts in the place of too large values.
func isTruncated(raw []byte) bool {
	if !bytes.HasPrefix(raw, []byte("{\"_")) {
		return false
	}
	list, err := members(raw, false)
	if err != nil {
		return false
	}
	marked := false
	for i := range list {
		switch list[i].key {
		case "_truncated":
			marked = string(list[i].value) == "true"
		case "_original_bytes", "_preview", "_reason":
		default:
			return false
		}
	}
	return marked && len(list) > 1
}

// Text is a canonical value: a string without its quotes, anything else as JSON.
func Text(canonical []byte) string {
	if len(canonical) == 0 || canonical[0] != '"' {
		return string(canonical)
	}
	s := scanner{in: canonical}
	text, err := s.quoted()
	if err != nil {
		return string(canonical)
	}
	return text
}
