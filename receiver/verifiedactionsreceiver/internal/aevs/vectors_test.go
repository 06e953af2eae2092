package aevs

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vectors were written by the SDK itself, release 0.2.2.
type vectors struct {
	Key struct {
		APIKey      string `json:"api_key"`
		KeyID       string `json:"key_id"`
		SessionID   string `json:"session_id"`
		RequestKey  string `json:"request_key_hex"`
		PayloadKey  string `json:"payload_key_hex"`
		ChainAnchor string `json:"chain_anchor"`
	} `json:"key"`
	Chain  []receiptVector `json:"chain_v1_private"`
	Resume struct {
		PrevHash string          `json:"prev_hash"`
		Receipts []receiptVector `json:"receipts"`
	} `json:"resume_after_crash"`
	Canonical []struct {
		Input string `json:"input_json_ascii"`
		Want  string `json:"canonical_hex"`
	} `json:"canonical_json"`
	Single  requestVector `json:"request_single"`
	Batch   requestVector `json:"request_batch"`
	Version struct {
		APIKey    string            `json:"api_key"`
		PublicKey string            `json:"public_key_spki_pem"`
		Anchor    string            `json:"chain_anchor"`
		Receipt   receiptVector     `json:"receipt"`
		Headers   map[string]string `json:"request_headers"`
	} `json:"v2_ecdsa"`
}

type receiptVector struct {
	Wire        string `json:"wire_bytes_utf8"`
	Signing     string `json:"signing_bytes_utf8"`
	PayloadHMAC string `json:"payload_hmac"`
	Hash        string `json:"receipt_hash"`
}

type requestVector struct {
	Body    string            `json:"body_utf8"`
	Headers map[string]string `json:"headers"`
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	text, err := os.ReadFile("../../testdata/aevs-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func parseKey(t testing.TB, text string) *Key {
	t.Helper()
	key, err := ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestVectors_DerivedKeys(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	key := parseKey(t, v.Key.APIKey)
	anchor, known := key.Anchor(v.Key.SessionID)
	got := []any{key.ID(), hex.EncodeToString(key.request), hex.EncodeToString(key.payload), anchor, known}
	want := []any{v.Key.KeyID, v.Key.RequestKey, v.Key.PayloadKey, v.Key.ChainAnchor, true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestVectors_Receipts(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	key := parseKey(t, v.Key.APIKey)
	prev := v.Key.ChainAnchor
	for _, want := range append(v.Chain, v.Resume.Receipts...) {
		r, err := key.Open([]byte(want.Wire))
		if err != nil {
			t.Fatal(err)
		}
		got := receiptVector{want.Wire, string(r.signed), r.Signature, r.Hash}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if r.PrevHash != prev {
			t.Errorf("receipt %d: prev_hash is %s, want %s", r.Seq, r.PrevHash, prev)
		}
		prev = r.Hash
	}
}

func TestVectors_Requests(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	key := parseKey(t, v.Key.APIKey)
	for _, request := range []requestVector{v.Single, v.Batch} {
		at, signature := request.Headers["X-AEVS-Timestamp"], request.Headers["X-AEVS-Signature"]
		if !key.VerifyRequest(at, []byte(request.Body), signature) {
			t.Errorf("the signature %s was refused", signature)
		}
		if key.VerifyRequest(at, []byte(request.Body+" "), signature) {
			t.Error("another body passed under the same signature")
		}
		if key.VerifyRequest("2026-06-15T10:30:06+00:00", []byte(request.Body), signature) {
			t.Error("another time passed under the same signature")
		}
	}
}

func TestVectors_Version2(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	whole := parseKey(t, v.Version.APIKey)
	public, err := ParsePublicKey("demo", v.Version.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if !whole.public.Equal(public.public) {
		t.Error("the secret gives another public key")
	}
	for _, key := range []*Key{whole, public} {
		r, err := key.Open([]byte(v.Version.Receipt.Wire))
		if err != nil {
			t.Fatal(err)
		}
		if r.Hash != v.Version.Receipt.Hash {
			t.Errorf("hash %s, want %s", r.Hash, v.Version.Receipt.Hash)
		}
		at, signature := v.Version.Headers["X-AEVS-Timestamp"], v.Version.Headers["X-AEVS-Signature"]
		if !key.VerifyRequest(at, []byte(v.Version.Receipt.Wire), signature) {
			t.Error("the request's signature was refused")
		}
	}
	if anchor, known := whole.Anchor(v.Key.SessionID); anchor != v.Version.Anchor || !known {
		t.Errorf("anchor %s, want %s", anchor, v.Version.Anchor)
	}
	if _, known := public.Anchor(v.Key.SessionID); known {
		t.Error("an anchor was made without the secret")
	}
}

func TestVectors_CanonicalJSON(t *testing.T) {
	t.Parallel()
	for _, test := range readVectors(t).Canonical {
		got, err := Canonical([]byte(test.Input))
		if err != nil {
			t.Fatal(err)
		}
		if hex.EncodeToString(got) != test.Want {
			t.Errorf("%s became %s", test.Input, got)
		}
	}
}
