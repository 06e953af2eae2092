package seal_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/seal"
)

func sealedRun() seal.Run {
	next := int64(1790592900)
	return seal.Run{
		ComputedAt: 1790592130, Events: []string{"action.pending"}, Evidence: []string{"aa"}, Headline: "PENDING — \"a\" < b", NextCheckAt: &next,
		PreviousSeq: 2, Report: "bb", Status: "pending", TriggeredBy: "action",
	}
}

// TestNextRun pins the bytes that are hashed: a change breaks every head of runs that was noted.
func TestNextRun(t *testing.T) {
	t.Parallel()
	first := seal.NextRun([32]byte{}, sha256.Sum256([]byte("chain")), sealedRun())
	const document = `{"changed":false,"computed_at":1790592130,"events":["action.pending"],"evidence":["aa"],"headline":"PENDING — \"a\" < b",` +
		`"next_check_at":1790592900,"previous_seq":2,"report":"bb","status":"pending","triggered_by":"action"}`
	chain, content := sha256.Sum256([]byte("chain")), sha256.Sum256([]byte(document))
	want := sha256.Sum256(slices.Concat([]byte{0x02}, make([]byte, 32), chain[:], content[:]))
	if first != want {
		t.Errorf("got %x, want %x", first, want)
	}
	// Worked out apart from this code.
	if got := hex.EncodeToString(first[:]); got != "4bf9c563382b68f8d6cbf0a3abed20405895b5404b8d153a3dc521afcdad29d7" {
		t.Errorf("got %s", got)
	}
}

// TestNextRunCoversEveryMember: each member of a run, the chain and the run before change the hash.
func TestNextRunCoversEveryMember(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*seal.Run){
		"changed": func(r *seal.Run) { r.Changed = true }, "compensates": func(r *seal.Run) { r.Compensates = "act_1" }, "computed_at": func(r *seal.Run) { r.ComputedAt++ },
		"events": func(r *seal.Run) { r.Events = nil }, "evidence": func(r *seal.Run) { r.Evidence = []string{"ab"} },
		"headline": func(r *seal.Run) { r.Headline += "." }, "next_check_at": func(r *seal.Run) { r.NextCheckAt = nil },
		"previous_seq": func(r *seal.Run) { r.PreviousSeq = 0 }, "report": func(r *seal.Run) { r.Report = "bc" },
		"status": func(r *seal.Run) { r.Status = "settled" }, "triggered_by": func(r *seal.Run) { r.TriggeredBy = "fact" },
	}
	one, two := sha256.Sum256([]byte("one")), sha256.Sum256([]byte("two"))
	seen := map[[32]byte]string{}
	add := func(name string, previous, chain [32]byte, run seal.Run) {
		hash := seal.NextRun(previous, chain, run)
		if other, known := seen[hash]; known {
			t.Errorf("%s makes the same hash as %s", name, other)
		}
		seen[hash] = name
	}
	add("the run", one, two, sealedRun())
	add("another run before", two, two, sealedRun())
	add("another chain", one, one, sealedRun())
	for name, change := range changes {
		run := sealedRun()
		change(&run)
		add(name, one, two, run)
	}
}

func TestEvidenceAndContents(t *testing.T) {
	t.Parallel()
	findings := []engine.Finding{{Evidence: "re_1"}, {}, {Evidence: engine.ClaimRawRef("act_1")}, {Evidence: "note_1"}, {Evidence: "re_1"}}
	refs := seal.Evidence("act_1", findings)
	if !slices.Equal(refs, []string{"re_1", "note_1"}) {
		t.Fatalf("evidence is %q", refs)
	}
	refund := engine.Fact{Source: "stripe", Type: "refund_created", RawRef: "re_1", SubjectID: "order_1", SubjectKind: "order"}
	peer := engine.Fact{Source: "stripe", Type: "refund_created", RawRef: "re_9", SubjectID: "order_9"}
	note := engine.Fact{Source: "crm", Type: "note_added", RawRef: "note_1", SubjectID: "ticket_1", SubjectKind: "ticket"}
	snapshot := &engine.Snapshot{
		Links: map[string][]string{"order_1": {"ticket_1"}},
		Facts: map[string][]engine.Fact{"order_1": {refund}, "ticket_1": {note}, "order_9": {peer}},
	}
	hashes, err := seal.Contents(refs, snapshot, "order_1")
	if err != nil || !slices.Equal(hashes, [][32]byte{refund.ContentHash(), note.ContentHash()}) {
		t.Errorf("contents are %x, %v", hashes, err)
	}
	hashes, err = seal.Contents([]string{"re_9", "re_1"}, snapshot, "order_1")
	if err != nil || !slices.Equal(hashes, [][32]byte{peer.ContentHash(), refund.ContentHash()}) {
		t.Errorf("contents with a fact of another action's subject are %x, %v", hashes, err)
	}
	if _, err := seal.Contents([]string{"re_1", "re_2"}, snapshot, "order_1"); err == nil || !strings.Contains(err.Error(), `["re_2"]`) {
		t.Errorf("a reference that no fact has: %v", err)
	}
}
