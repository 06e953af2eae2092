package aevs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const digest = "1c8a8238a35a79792a00e5f756813fdcc47274fabd86b942b38e9dfde1e26f60"

type object = map[string]any

var whole = object{
	"agent_id": "a", "session_id": "s", "reference_id": "r", "seq": 1, "prev_hash": digest,
	"tool_name": "t", "inputs": object{"x": 1}, "output": "o", "status": "success", "error": nil,
	"started_at": "2026-06-15T10:30:00+00:00", "ended_at": "2026-06-15T10:30:01+00:00", "duration_ms": 1000,
	"payload_hmac": digest,
}

// changed is a receipt with other fields; absent removes one.
func changed(t testing.TB, fields object) []byte {
	t.Helper()
	receipt := maps.Clone(whole)
	maps.Copy(receipt, fields)
	maps.DeleteFunc(receipt, func(_ string, value any) bool { return value == absent })
	text, err := json.Marshal(receipt)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var absent = &struct{ int }{}

func TestReceipt_Refused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		fields object
		want   string
	}{
		{"no reference id", object{"reference_id": absent}, "/reference_id is missing"},
		{"session as number", object{"session_id": 1}, "/session_id is no string"},
		{"number as tool", object{"tool_name": 3}, "/tool_name is no string"},
		{"empty id", object{"reference_id": ""}, "invalid id: /reference_id is empty; 1 to 512 bytes are needed"},
		{"seq 0", object{"seq": 0}, "/seq is no whole number from 1 up"},
		{"seq as text", object{"seq": "1"}, "/seq is no whole number from 1 up"},
		{"seq too large", object{"seq": json.Number("9223372036854775808")}, "/seq is no whole number from 1 up"},
		{"no seq", object{"seq": absent}, "/seq is missing"},
		{"short hash", object{"prev_hash": "abc"}, "/prev_hash is no SHA-256 in hexadecimal"},
		{"input hash", object{"input_hash": "x"}, "/input_hash is no SHA-256 in hexadecimal"},
		{"status", object{"status": "maybe"}, `/status is "maybe"; one of success, error was expected`},
		{"visibility", object{"receipt_visibility": "secret"}, `/receipt_visibility is "secret"; one of public, private, proof_only was expected`},
		{"signature", object{"payload_hmac": "00"}, "/payload_hmac has 2 characters; 64 or 128 hexadecimal digits were expected"},
		{"no offset", object{"started_at": "2026-06-15T10:30:00"}, `/started_at is "2026-06-15T10:30:00"; a time with an offset was expected, like 2026-06-15T10:30:00.25+00:00`},
		{"year", object{"ended_at": "2262-01-01T00:00:00Z"}, "/ended_at is outside the years 1970 to 2261"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := parseReceipt(changed(t, test.fields), false)
			if !errors.Is(err, ErrReceipt) || strings.TrimPrefix(err.Error(), "invalid receipt: ") != test.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestReceipt_AllErrorsAtOnce(t *testing.T) {
	t.Parallel()
	r, err := parseReceipt(changed(t, object{"seq": absent, "status": absent}), false)
	want := "invalid receipt: /seq is missing\ninvalid receipt: /status is missing"
	if err == nil || err.Error() != want || r.ReferenceID != "r" {
		t.Errorf("got %v of %q", err, r.ReferenceID)
	}
}

// TestD33_NotCaptured: what the SDK left out or cut is never read as parameters.
func TestD33_NotCaptured(t *testing.T) {
	t.Parallel()
	truncated := object{"_truncated": true, "_original_bytes": 2_000_000, "_preview": "{'x': "}
	for _, test := range []struct {
		name          string
		fields        object
		inputs, cut   string
		output        string
		wantTruncated bool
	}{
		{"captured", nil, `{"x":1}`, "", `"o"`, false},
		{"null", object{"inputs": nil, "output": nil}, "", "", "", false},
		{"proof only", object{"receipt_visibility": "proof_only", "input_hash": digest}, "", "", "", false},
		{"cut", object{"inputs": truncated}, "", "", `"o"`, true},
		{"not to be written", object{"output": object{"_truncated": true, "_reason": "serialization_error"}}, `{"x":1}`, "", "", true},
		{"a tool's own", object{"inputs": object{"_truncated": true, "_preview": "p", "x": 1}}, `{"_preview":"p","_truncated":true,"x":1}`, "", `"o"`, false},
		{"a tool's own alone", object{"inputs": object{"_truncated": true}}, `{"_truncated":true}`, "", `"o"`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r, err := parseReceipt(changed(t, test.fields), false)
			if err != nil {
				t.Fatal(err)
			}
			got := []any{string(r.Inputs), string(r.Output), r.Truncated}
			if diff := cmp.Diff([]any{test.inputs, test.output, test.wantTruncated}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReceipt_WithoutSession: SDKs of before there were sessions left some in their buffers.
func TestReceipt_WithoutSession(t *testing.T) {
	t.Parallel()
	for _, session := range []any{absent, nil} {
		if r, err := parseReceipt(changed(t, object{"session_id": session}), false); err != nil || r.SessionID != "" {
			t.Errorf("session %q, %v", r.SessionID, err)
		}
	}
}

func TestReceipt_Times(t *testing.T) {
	t.Parallel()
	r, err := parseReceipt(changed(t, object{"started_at": "2026-06-15T12:30:01.25+02:00", "ended_at": "2026-06-15T10:30:00Z"}), false)
	if err != nil {
		t.Fatal(err)
	}
	want := time.Date(2026, 6, 15, 10, 30, 1, 250_000_000, time.UTC)
	if !r.Started.Equal(want) || !r.Ended.Equal(want) {
		t.Errorf("from %s to %s", r.Started, r.Ended)
	}
}

// TestReceipt_OnlyItsOwnKeys: Go's decoder would take Seq for seq.
func TestReceipt_OnlyItsOwnKeys(t *testing.T) {
	t.Parallel()
	r, err := parseReceipt(changed(t, object{"Seq": 7, "TOOL_NAME": "other", "from_tomorrow": 1}), false)
	if err != nil || r.Seq != 1 || r.ToolName != "t" {
		t.Errorf("seq %d of %s, %v", r.Seq, r.ToolName, err)
	}
}

func TestOpen_EveryByteIsSigned(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	key := parseKey(t, v.Key.APIKey)
	wire := v.Chain[1].Wire
	opened := 0
	for i := range wire {
		changed := []byte(wire)
		changed[i] ^= 1
		if r, err := key.Open(changed); err == nil {
			opened++
			t.Errorf("byte %d was changed, and receipt %s opened", i, r.ReferenceID)
		}
	}
	if _, err := key.Open([]byte(wire)); err != nil || opened > 0 {
		t.Error(opened, err)
	}
}

// TestOpen_AnyWriting: what counts is the canonical form, which is read alone.
func TestOpen_AnyWriting(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	key := parseKey(t, v.Key.APIKey)
	var loose object
	if err := json.Unmarshal([]byte(v.Chain[1].Wire), &loose); err != nil {
		t.Fatal(err)
	}
	indented, err := json.MarshalIndent(loose, "", "  ") // with < and & escaped
	if err != nil {
		t.Fatal(err)
	}
	decomposed := strings.ReplaceAll(string(indented), "caf\u00e9", "cafe\u0301")
	if decomposed == string(indented) {
		t.Fatal("the vector has no é any more")
	}
	for _, wire := range []string{string(indented), decomposed} {
		r, err := key.Open([]byte(wire))
		if err != nil {
			t.Fatal(err)
		}
		if r.Hash != v.Chain[1].Hash || !strings.Contains(string(r.Inputs), "caf\u00e9") {
			t.Errorf("hash %s, inputs %s", r.Hash, r.Inputs)
		}
	}
}

func TestOpen_OtherKey(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	other := parseKey(t, "aevs_sk_other_ff0102030405060708090a0b0c0d0e0f")
	r, err := other.Open([]byte(v.Chain[0].Wire))
	want := "wrong signature: /payload_hmac does not match the receipt under key other"
	if !errors.Is(err, ErrSignature) || err.Error() != want || r.ReferenceID != "aaaaaaaa-0000-4000-8000-000000000001" {
		t.Errorf("got %v of %q", err, r.ReferenceID)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", `"a\nb"`: "a\nb", `{"a":1}`: `{"a":1}`, "3": "3"} {
		if got := Text([]byte(in)); got != want {
			t.Errorf("%s became %s", in, got)
		}
	}
}

func TestKey_Refused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{
		{"", "invalid AEVS key: write aevs_sk_<id>_<hex> or aevs_sk2_<id>_<hex>, as the SDK has it"},
		{"aevs_sk_id_nothex", "invalid AEVS key: write aevs_sk_<id>_<hex> or aevs_sk2_<id>_<hex>, as the SDK has it"},
		{"aevs_sk_id_abc", "invalid AEVS key: the secret has an odd number of hexadecimal digits"},
		{"aevs_sk_id_abcd", "invalid AEVS key: the secret has 2 bytes; at least 16 are needed"},
		{"aevs_sk2_id_" + strings.Repeat("00", 32), "invalid AEVS key: the secret is no private key of P-256"},
		{"aevs_sk2_id_01" + strings.Repeat("00", 32), "invalid AEVS key: the secret is no private key of P-256"},
	} {
		if _, err := ParseKey(test.in); !errors.Is(err, ErrKey) || err.Error() != test.want {
			t.Errorf("%s: %v", test.in, err)
		}
	}
	for _, test := range []struct{ id, pem, want string }{
		{"a-b", "", `invalid AEVS key: id "a-b": letters and digits were expected`},
		{"a", "nothing", "invalid AEVS key: one PEM block PUBLIC KEY was expected"},
		{"a", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
			"invalid AEVS key: the block PUBLIC KEY does not hold one"},
	} {
		if _, err := ParsePublicKey(test.id, test.pem); !errors.Is(err, ErrKey) || err.Error() != test.want {
			t.Errorf("%s: %v", test.id, err)
		}
	}
}

func TestKey_OtherCurve(t *testing.T) {
	t.Parallel()
	private, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	if _, err := ParsePublicKey("a", string(text)); err == nil || err.Error() != "invalid AEVS key: the public key is not on P-256" {
		t.Errorf("got %v", err)
	}
}

// TestKey_ShortSecretV2: the secret is a number, so it may have less than 32 bytes.
func TestKey_ShortSecretV2(t *testing.T) {
	t.Parallel()
	short := parseKey(t, "aevs_sk2_id_0102030405060708090a0b0c0d0e0f10")
	long := parseKey(t, "aevs_sk2_id_"+strings.Repeat("00", 16)+"0102030405060708090a0b0c0d0e0f10")
	if !short.public.Equal(long.public) {
		t.Error("two writings of one number give two keys")
	}
}
