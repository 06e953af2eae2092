package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"pgregory.net/rapid"
)

// link is a receipt of a session s whose hash is h<seq>.
func link(session string, seq int) Entry {
	e := Entry{
		KeyID: "k", SessionID: session, ReferenceID: fmt.Sprintf("%s-%d", session, seq),
		Seq: uint64(seq), Hash: fmt.Sprintf("h%d", seq), PrevHash: fmt.Sprintf("h%d", seq-1),
	}
	if seq == 1 {
		e.PrevHash, e.Anchor = "anchor", "anchor"
	}
	return e
}

// astray names another predecessor than it has.
func astray(e Entry) Entry { e.PrevHash = "elsewhere"; return e }

func add(t testing.TB, h *History, entries ...Entry) []string {
	t.Helper()
	var got []string
	standings, err := h.Preview(context.Background(), entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range standings {
		got = append(got, map[Kind]string{Fresh: "", Duplicate: "again ", Conflict: "conflict"}[s.Kind]+string(s.Status))
	}
	if err := h.Commit(context.Background(), entries); err != nil {
		t.Fatal(err)
	}
	return got
}

// now lists how receipts stand by what is known since.
func now(t testing.TB, h *History, session string, numbers ...int) []string {
	t.Helper()
	var got []string
	for _, seq := range numbers {
		e, ok, err := h.Lookup(context.Background(), "k", fmt.Sprintf("%s-%d", session, seq))
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			e.Status = "forgotten"
		}
		got = append(got, string(e.Status))
	}
	return got
}

func TestChain_Status(t *testing.T) {
	t.Parallel()
	noAnchor := link("s", 1)
	noAnchor.Anchor = ""
	fork := link("s", 2)
	fork.ReferenceID = "another"
	changed := link("s", 2)
	changed.Hash = "another"
	tests := []struct {
		name       string
		persistent bool
		entries    []Entry
		came       []string // when they came
		since      []string // afterwards, in the order of their numbers
	}{
		{"in order", false, []Entry{link("s", 1), link("s", 2), link("s", 3)},
			[]string{"anchor", "linked", "linked"}, []string{"anchor", "linked", "linked"}},
		{"out of order", true, []Entry{link("s", 3), link("s", 1), link("s", 2)},
			[]string{"gap", "anchor", "linked"}, []string{"anchor", "linked", "linked"}},
		{"out of order, nothing known of before", false, []Entry{link("s", 3), link("s", 1), link("s", 2)},
			[]string{"unverified", "anchor", "linked"}, []string{"anchor", "linked", "linked"}},
		{"backwards", true, []Entry{link("s", 3), link("s", 2), link("s", 1)},
			[]string{"gap", "gap", "anchor"}, []string{"anchor", "linked", "linked"}},
		{"one never comes", false, []Entry{link("s", 1), link("s", 3), link("s", 4)},
			[]string{"anchor", "gap", "linked"}, []string{"anchor", "forgotten", "gap", "linked"}},
		{"wrong anchor", false, []Entry{astray(link("s", 1)), link("s", 2)},
			[]string{"mismatch", "broken"}, []string{"mismatch", "broken"}},
		{"anchor not known", false, []Entry{noAnchor, link("s", 2)},
			[]string{"unverified", "linked"}, []string{"unverified", "linked"}},
		{"wrong link", false, []Entry{link("s", 1), astray(link("s", 2)), link("s", 3), link("s", 4)},
			[]string{"anchor", "mismatch", "broken", "broken"}, []string{"anchor", "mismatch", "broken", "broken"}},
		{"wrong link found out late", true, []Entry{link("s", 1), astray(link("s", 3)), link("s", 4), link("s", 5), link("s", 2)},
			[]string{"anchor", "gap", "linked", "linked", "linked"}, []string{"anchor", "linked", "mismatch", "broken", "broken"}},
		{"two with one number", false, []Entry{link("s", 1), link("s", 2), fork, link("s", 3)},
			[]string{"anchor", "linked", "mismatch", "linked"}, []string{"anchor", "linked", "linked"}},
		{"without a session", true, []Entry{link("", 1), astray(link("", 2))},
			[]string{"unverified", "unverified"}, nil},
		{"the same again", false, []Entry{link("s", 1), link("s", 1)},
			[]string{"anchor", "again anchor"}, []string{"anchor"}},
		{"another under the same id", false, []Entry{link("s", 1), link("s", 2), changed},
			[]string{"anchor", "linked", "conflict"}, []string{"anchor", "linked"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			numbers := make([]int, len(test.since))
			for i := range numbers {
				numbers[i] = i + 1
			}
			all := New(NewMemory(), 100, test.persistent)
			if diff := cmp.Diff(test.came, add(t, all, test.entries...)); diff != "" {
				t.Error("in one batch:", diff)
			}
			one := New(NewMemory(), 100, test.persistent)
			var came []string
			for _, e := range test.entries {
				came = append(came, add(t, one, e)...)
			}
			if diff := cmp.Diff(test.came, came); diff != "" {
				t.Error("one by one:", diff)
			}
			for _, h := range []*History{all, one} {
				if diff := cmp.Diff(test.since, now(t, h, "s", numbers...)); diff != "" {
					t.Error("afterwards:", diff)
				}
			}
		})
	}
}

// TestChain_OrderDoesNotMatter: whatever the order and the batches, and wherever
// the collector is restarted, the chain ends up as it does in order.
func TestChain_OrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "receipts")
		wrong := rapid.IntRange(0, n).Draw(t, "wrong link")
		entries, numbers := make([]Entry, n), make([]int, n)
		for i := range entries {
			entries[i], numbers[i] = link("s", i+1), i+1
			if i+1 == wrong {
				entries[i] = astray(entries[i])
			}
		}
		want := New(NewMemory(), 100, true)
		commit(t, want, entries)
		client := NewMemory()
		h := New(client, 100, true)
		rest := rapid.Permutation(entries).Draw(t, "order")
		for len(rest) > 0 {
			size := rapid.IntRange(1, len(rest)).Draw(t, "batch")
			commit(t, h, rest[:size])
			rest = rest[size:]
			if rapid.Bool().Draw(t, "restart") {
				h = New(client, 100, true)
			}
		}
		for _, seq := range numbers {
			a, _, _ := want.Lookup(context.Background(), "k", "s-"+strconv.Itoa(seq))
			b, _, _ := h.Lookup(context.Background(), "k", "s-"+strconv.Itoa(seq))
			if a.Status != b.Status {
				t.Fatalf("receipt %d is %s in order, and %s so", seq, a.Status, b.Status)
			}
		}
	})
}

func commit(t *rapid.T, h *History, entries []Entry) {
	if err := h.Commit(context.Background(), entries); err != nil {
		t.Fatal(err)
	}
}

// TestHistory_Bounded: everything that is kept goes with the receipts it was kept for.
func TestHistory_Bounded(t *testing.T) {
	t.Parallel()
	client := NewMemory()
	h := New(client, 10, true)
	for session := range 50 {
		name := strconv.Itoa(session)
		add(t, h, link(name, 1), link(name, 2), link(name, 3))
	}
	if diff := cmp.Diff([]string{"anchor", "linked", "linked"}, now(t, h, "49", 1, 2, 3)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"forgotten", "forgotten", "linked"}, now(t, h, "46", 1, 2, 3)); diff != "" {
		t.Error(diff)
	}
	// 10 receipts with link and place, 4 sessions, the ends.
	if got := len(client.(*memory).values); got != 10*3+4+1 {
		t.Errorf("%d values are kept", got)
	}
}

// TestHistory_ForgottenIsNoGap: what was forgotten may have come.
func TestHistory_ForgottenIsNoGap(t *testing.T) {
	t.Parallel()
	h := New(NewMemory(), 3, true)
	add(t, h, link("s", 1), link("s", 2), link("s", 3), link("s", 5)) // 1 is forgotten
	if diff := cmp.Diff([]string{"gap"}, now(t, h, "s", 5)); diff != "" {
		t.Error(diff)
	}
	add(t, h, link("s", 6), link("s", 7)) // 2 and 3 are
	if diff := cmp.Diff([]string{"unverified"}, add(t, h, link("s", 4))); diff != "" {
		t.Error(diff)
	}
	add(t, h, link("x", 1), link("x", 2), link("x", 3)) // all of s is
	if diff := cmp.Diff([]string{"unverified"}, add(t, h, link("s", 9))); diff != "" {
		t.Error(diff)
	}
}

func TestHistory_KeysApart(t *testing.T) {
	t.Parallel()
	h := New(NewMemory(), 10, true)
	mine, theirs := link("s", 1), link("s", 1)
	theirs.KeyID, theirs.Hash = "other", "other"
	if diff := cmp.Diff([]string{"anchor", "anchor"}, add(t, h, mine, theirs)); diff != "" {
		t.Error("one key's receipts hold up another's:", diff)
	}
}

// TestHistory_DamagedKnowsLess: and goes on.
func TestHistory_DamagedKnowsLess(t *testing.T) {
	t.Parallel()
	client := NewMemory()
	h := New(client, 10, true)
	add(t, h, link("s", 1), link("s", 2))
	for key := range client.(*memory).values {
		if err := client.Set(context.Background(), key, []byte("{")); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"gap", "linked"}, add(t, h, link("s", 3), link("s", 4))); diff != "" {
		t.Error(diff)
	}
}

// failing is a storage without room.
type failing struct{ storage.Client }

func (f failing) Batch(ctx context.Context, operations ...*storage.Operation) error {
	for _, op := range operations {
		if op.Type == storage.Set {
			return storage.ErrStorageFull
		}
	}
	return f.Client.Batch(ctx, operations...)
}

// gone is a storage that is closed.
type gone struct{ storage.Client }

var errGone = errors.New("database not open")

func (gone) Batch(context.Context, ...*storage.Operation) error { return errGone }

func TestHistory_StorageGone(t *testing.T) {
	t.Parallel()
	h := New(gone{NewMemory()}, 10, true)
	if _, err := h.Preview(context.Background(), []Entry{link("s", 1)}); !errors.Is(err, errGone) {
		t.Errorf("got %v", err)
	}
	if _, _, err := h.Lookup(context.Background(), "k", "s-1"); !errors.Is(err, errGone) {
		t.Errorf("got %v", err)
	}
}

func TestHistory_StorageFails(t *testing.T) {
	t.Parallel()
	h := New(failing{NewMemory()}, 10, true)
	err := h.Commit(context.Background(), []Entry{link("s", 1)})
	if err == nil || err.Error() != "remembered receipts: "+storage.ErrStorageFull.Error() {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"forgotten"}, now(t, h, "s", 1)); diff != "" {
		t.Error(diff)
	}
}

func TestHistory_LongChainPassesOnWithinItsBound(t *testing.T) {
	t.Parallel()
	const n = MaxBroken + 100
	h := New(NewMemory(), n+10, true)
	late := make([]Entry, 0, n)
	for seq := 3; seq < n; seq++ {
		late = append(late, link("s", seq))
	}
	late[0] = astray(late[0])
	add(t, h, late...)
	add(t, h, link("s", 2)) // now 3 is a mismatch, and those behind it are broken
	got := now(t, h, "s", 3, 4, MaxBroken+1, n-1)
	if diff := cmp.Diff([]string{"mismatch", "broken", "broken", "linked"}, got); diff != "" {
		t.Error(diff)
	}
	if !slices.Contains(now(t, h, "s", MaxBroken+3), "linked") {
		t.Error("the bound is another than documented")
	}
}
