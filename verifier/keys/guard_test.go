package keys

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/countersign-otel/countersign/ledger"
)

// guarded is a guard with a clock that stands still until it is moved.
type guarded struct {
	*Guard
	t     *testing.T
	store ledger.Ledger
	clock time.Time
}

func newGuarded(t *testing.T, l Limits) *guarded {
	t.Helper()
	g := &guarded{t: t, store: store(t), clock: time.Unix(1_000, 0)}
	guard, err := NewGuard(l, func() time.Time { return g.clock })
	if err != nil {
		t.Fatal(err)
	}
	g.Guard = guard
	return g
}

func (g *guarded) key(request Request) configopaque.String {
	g.t.Helper()
	_, secret, err := Create(context.Background(), g.store, request, 1)
	if err != nil {
		g.t.Fatal(err)
	}
	return secret
}

// find tries a key from an address; limited says how long until the next try is let in.
func (g *guarded) find(secret configopaque.String, from string) (limited int, err error) {
	_, err = g.Find(context.Background(), g.store, secret, netip.MustParseAddr(from), 1)
	var limit *LimitError
	if errors.As(err, &limit) {
		return limit.Seconds(), nil
	}
	return 0, err
}

// guess is a well-formed key that nobody has.
func guess(letter string) configopaque.String {
	return configopaque.String("cs_viewer_" + strings.Repeat(letter, 42) + "A")
}

func TestGuessingIsSlowed(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, Limits{FailedKeys: 3})
	known, fresh := g.key(Request{Role: ledger.RoleViewer}), g.key(Request{Role: ledger.RoleViewer})
	const here, elsewhere = "192.0.2.1", "192.0.2.2"
	if limited, err := g.find(known, here); limited != 0 || err != nil {
		t.Fatalf("%d %v", limited, err)
	}
	for range 3 {
		if limited, err := g.find(guess("A"), here); limited != 0 || !errors.Is(err, ErrInvalid) {
			t.Fatalf("%d %v", limited, err)
		}
	}
	// What is refused does not depend on what the key is: nothing is learned.
	for name, secret := range map[string]configopaque.String{
		"unknown": guess("B"), "no key by its form": "hunter2", "good, and new here": fresh, "start of a good one": known[:20],
	} {
		if limited, err := g.find(secret, here); limited != 20 || err != nil {
			t.Errorf("%s: %d %v", name, limited, err)
		}
	}
	if limited, err := g.find(known, here); limited != 0 || err != nil {
		t.Errorf("the key that was used here before is held up: %d %v", limited, err)
	}
	if limited, err := g.find(fresh, elsewhere); limited != 0 || err != nil {
		t.Errorf("another address is held up: %d %v", limited, err)
	}
	g.clock = g.clock.Add(20 * time.Second)
	if limited, err := g.find(guess("C"), here); limited != 0 || !errors.Is(err, ErrInvalid) {
		t.Errorf("after the wait: %d %v", limited, err)
	}
	if limited, _ := g.find(guess("C"), here); limited != 20 {
		t.Errorf("and once more: %d", limited)
	}
	g.clock = g.clock.Add(time.Minute)
	if limited, err := g.find(fresh, here); limited != 0 || err != nil {
		t.Errorf("a good key after the wait: %d %v", limited, err)
	}
}

// TestGuessesAtOnceAreADebt: who sends many before the first is refused waits longer, and not for ever.
func TestGuessesAtOnceAreADebt(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, Limits{FailedKeys: 6})
	address := netip.MustParseAddr("192.0.2.1")
	for range 12 {
		g.failures.charge(address, g.clock)
	}
	if limited, _ := g.find(guess("A"), "192.0.2.1"); limited != 70 {
		t.Errorf("limited for %d seconds", limited)
	}
	for range 100_000 {
		g.failures.charge(address, g.clock)
	}
	if limited, _ := g.find(guess("A"), "192.0.2.1"); limited != int(longestDebt.Seconds())+10 {
		t.Errorf("limited for %d seconds", limited)
	}
}

// TestKeyThatEndedIsAGuess: a revoked key neither passes as known nor costs nothing.
func TestKeyThatEndedIsAGuess(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, Limits{FailedKeys: 1})
	secret := g.key(Request{Role: ledger.RoleViewer})
	if _, err := g.find(secret, "192.0.2.1"); err != nil {
		t.Fatal(err)
	}
	err := g.store.Update(context.Background(), func(tx ledger.Tx) error {
		key, err := tx.KeyByHash(context.Background(), sha256.Sum256([]byte(secret)))
		return errors.Join(err, tx.RevokeKey(context.Background(), key.Tenant, key.ID, 1))
	})
	if err != nil {
		t.Fatal(err)
	}
	if limited, err := g.find(secret, "192.0.2.1"); limited != 0 || !errors.Is(err, ErrRevoked) {
		t.Errorf("%d %v", limited, err)
	}
	if limited, err := g.find(secret, "192.0.2.1"); limited != 60 || err != nil {
		t.Errorf("%d %v", limited, err)
	}
}

func TestKeyRate(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, Limits{KeyRate: 2, KeyBurst: 3})
	one, two := g.key(Request{Role: ledger.RoleViewer}), g.key(Request{Role: ledger.RoleViewer})
	for range 3 {
		if limited, err := g.find(one, "192.0.2.1"); limited != 0 || err != nil {
			t.Fatalf("%d %v", limited, err)
		}
	}
	for _, address := range []string{"192.0.2.1", "192.0.2.2"} {
		if limited, err := g.find(one, address); limited != 1 || err != nil {
			t.Errorf("%s: %d %v", address, limited, err)
		}
	}
	if limited, err := g.find(two, "192.0.2.1"); limited != 0 || err != nil {
		t.Errorf("the other key: %d %v", limited, err)
	}
	g.clock = g.clock.Add(500 * time.Millisecond)
	if limited, err := g.find(one, "192.0.2.1"); limited != 0 || err != nil {
		t.Errorf("one came back: %d %v", limited, err)
	}
	if limited, _ := g.find(one, "192.0.2.1"); limited != 1 {
		t.Error("more than one came back")
	}
}

// TestFloodOfNamesIsForgotten: the memory of a guard is bounded, whoever sends what.
func TestFloodOfNamesIsForgotten(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, Limits{KeyRate: 1, AddressRate: 1, FailedKeys: 1})
	for i := range 4 * mostBuckets {
		address := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		if err := g.AdmitStranger(address); err != nil {
			t.Fatal(err)
		}
		g.failures.charge(address, g.clock)
		if err := g.Admit(sha256.Sum256([]byte{byte(i >> 16), byte(i >> 8), byte(i)})); err != nil {
			t.Fatal(err)
		}
	}
	for name, length := range map[string]int{"keys": g.keys.full.Len(), "addresses": g.addresses.full.Len(), "failures": g.failures.full.Len()} {
		if length != mostBuckets {
			t.Errorf("%d buckets of %s", length, name)
		}
	}
}

func TestOneClientIsAnIPv6Network(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, Limits{AddressRate: 1})
	for _, row := range []struct {
		address string
		limited bool
	}{
		{"2001:db8::1", false}, {"2001:db8::2", true}, {"2001:db8:0:1::1", false}, {"192.0.2.1", false}, {"192.0.2.2", false},
	} {
		if err := g.AdmitStranger(netip.MustParseAddr(row.address)); (err != nil) != row.limited {
			t.Errorf("%s: %v", row.address, err)
		}
	}
}

func TestAddressBehindProxies(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, Limits{TrustedProxies: []string{"10.0.0.0/8", "fd00::/8"}})
	for _, row := range []struct{ peer, forwarded, want string }{
		{"192.0.2.1:5", "", "192.0.2.1"},
		{"192.0.2.1:5", "198.51.100.7", "192.0.2.1"}, // nobody trusts this peer
		{"10.0.0.1:5", "198.51.100.7", "198.51.100.7"},
		{"10.0.0.1:5", "203.0.113.9, 198.51.100.7", "198.51.100.7"}, // what the client claimed is not believed
		{"10.0.0.1:5", "198.51.100.7, 10.2.3.4", "198.51.100.7"},
		{"[fd00::1]:5", "2001:db8::1", "2001:db8::1"},
		{"[::ffff:10.0.0.1]:5", "198.51.100.7", "198.51.100.7"},
		{"10.0.0.1:5", "", "10.0.0.1"},
		{"10.0.0.1:5", "not an address", "10.0.0.1"},
		{"10.0.0.1:5", "10.0.0.2", "10.0.0.2"},
		{"@", "198.51.100.7", "invalid IP"},
	} {
		r := &http.Request{RemoteAddr: row.peer, Header: http.Header{}}
		if row.forwarded != "" {
			r.Header.Set("X-Forwarded-For", row.forwarded)
		}
		if got := g.Address(r).String(); got != row.want {
			t.Errorf("%+v: %s", row, got)
		}
	}
}

func TestLimitsThatAreWrong(t *testing.T) {
	t.Parallel()
	err := Limits{KeyRate: -1, FailedKeys: 2_000_000, TrustedProxies: []string{"10.0.0.1"}}.Validate()
	want := `key_rate is -1; write 0 to 1000000, 0 for no limit
failed_keys is 2000000; write 0 to 1000000, 0 for no limit
trusted_proxies: "10.0.0.1" is no network; write one like 10.0.0.0/8, or 192.0.2.7/32 for one address`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
