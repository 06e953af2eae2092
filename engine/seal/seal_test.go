package seal_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/engine/seal"
	"github.com/countersign-otel/countersign/internal/speccases"
)

// update rewrites the golden documents: COUNTERSIGN_UPDATE=1 go test ./engine/seal.
var update = os.Getenv("COUNTERSIGN_UPDATE") != ""

// TestD24_DocumentAndHash pins the bytes that are hashed. A change here breaks
// every hash that was ever published: it needs a new seal.Format.
func TestD24_DocumentAndHash(t *testing.T) {
	t.Parallel()
	for _, row := range speccases.Rows() {
		switch row.Name {
		case "AC_DiffersFromStateMinusParam", "AC_LimitExceeded", "D29_ClockSkew", "D17_TotalByAgent", "D33_NotCapturedIsMissing":
		default:
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			sealed := sealRow(t, row, engine.Policy)
			path := "testdata/" + row.Name + ".json"
			if update {
				if err := os.WriteFile(path, []byte(sealed.Document+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), sealed.Document+"\n"); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
			if sealed.Hash != sha256.Sum256([]byte(sealed.Document)) {
				t.Error("the hash is not the document's")
			}
			checkKinds(t, sealed.Document)
		})
	}
}

func sealRow(t *testing.T, row speccases.Row, lens engine.Lens) seal.Sealed {
	t.Helper()
	c := row.Contract(t, "under_test")
	s := row.Snapshot(t)
	return sealAction(t, c, s, s.Actions[0], lens)
}

func sealAction(t *testing.T, c *contract.Contract, s *engine.Snapshot, a engine.Action, lens engine.Lens) seal.Sealed {
	t.Helper()
	e := goeval.Evaluate(c, s)[0]
	outcome, policy := seal.Seal(seal.Subject{Tenant: s.Tenant, Contract: c, Action: a, Sources: s.Sources}, e.Outcome, e.Policy, e.Findings)
	if lens == engine.Policy {
		return policy
	}
	return outcome
}

// checkKinds demands strings, booleans, arrays, objects and small integers
// only, so that any RFC 8785 library makes the same bytes.
func checkKinds(t *testing.T, document string) {
	t.Helper()
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, member := range v {
				walk(member)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case float64:
			if v != float64(int32(v)) {
				t.Errorf("the document holds the number %v", v)
			}
		case nil:
			t.Error("the document holds null")
		}
	}
	var parsed any
	if err := json.Unmarshal([]byte(document), &parsed); err != nil {
		t.Fatal(err)
	}
	walk(parsed)
}

// TestD24_WhatChangesTheHash changes one thing at a time.
func TestD24_WhatChangesTheHash(t *testing.T) {
	t.Parallel()
	row := speccases.Rows()[0]
	c := row.Contract(t, "under_test")
	s := row.Snapshot(t)
	action := s.Actions[0]
	before := sealAction(t, c, s, action, engine.Policy).Hash
	changed := action
	changed.AgentID = "bot"
	if sealAction(t, c, s, changed, engine.Policy).Hash == before {
		t.Error("another agent has the same hash")
	}
	changed = action
	changed.Params = engine.EmptyObject()
	if sealAction(t, c, s, changed, engine.Policy).Hash == before {
		t.Error("empty params have the hash of params that were not captured")
	}
	if sealAction(t, c, s, action, engine.Outcome).Hash == before {
		t.Error("the other lens has the same hash")
	}
	other := *s
	other.Tenant = "other"
	if sealAction(t, c, &other, action, engine.Policy).Hash == before {
		t.Error("another tenant has the same hash")
	}
	changed = action
	changed.TraceID, changed.Channel, changed.ReportedOutcome = "0123", "web", "success"
	if sealAction(t, c, s, changed, engine.Policy).Hash != before {
		t.Error("what a verdict does not rest on changes its hash")
	}
}

// TestD25_Chain pins the first two links over known hashes.
func TestD25_Chain(t *testing.T) {
	t.Parallel()
	first := seal.Next([32]byte{}, sha256.Sum256([]byte("a")))
	second := seal.Next(first, sha256.Sum256([]byte("b")))
	var link []byte
	link = append(link, 0x01)
	link = append(link, first[:]...)
	sum := sha256.Sum256([]byte("b"))
	link = append(link, sum[:]...)
	want := sha256.Sum256(link)
	if second != want {
		t.Errorf("second link is %x, want %x", second, want)
	}
	// SHA-256(0x01 || 32 zero bytes || SHA-256("a")), worked out apart from this code.
	if got := hex.EncodeToString(first[:]); got != "27735e4f8ca6c7d20dc1d335dc8f88edecc37d51c922b1c4bbb9eee95ba268c4" {
		t.Errorf("first link is %s", got)
	}
}
