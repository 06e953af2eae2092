package keys

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.opentelemetry.io/collector/config/configopaque"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// Limits bound what one key and one remote address may ask for. A rate of 0 bounds nothing.
type Limits struct {
	// KeyRate is how many requests a second one key may send for long, KeyBurst how many at once.
	KeyRate  int `mapstructure:"key_rate"`
	KeyBurst int `mapstructure:"key_burst"`
	// AddressRate and AddressBurst bound requests without a key, by remote address.
	AddressRate  int `mapstructure:"address_rate"`
	AddressBurst int `mapstructure:"address_burst"`
	// FailedKeys is how many keys that are not good one remote address may try
	// at once, and then each minute.
	FailedKeys int `mapstructure:"failed_keys"`
	// TrustedProxies are networks, like 10.0.0.0/8, whose X-Forwarded-For is believed.
	TrustedProxies []string `mapstructure:"trusted_proxies"`
}

// DefaultLimits suit a sidecar that many agents share.
func DefaultLimits() Limits {
	return Limits{KeyRate: 1000, KeyBurst: 5000, AddressRate: 50, AddressBurst: 500, FailedKeys: 10}
}

// mostRate keeps the time of one token well above a clock's resolution.
const mostRate = 1_000_000

// Validate names every limit that is wrong.
func (l Limits) Validate() error {
	var all []error
	for _, number := range []struct {
		key   string
		value int
	}{
		{"key_rate", l.KeyRate}, {"key_burst", l.KeyBurst}, {"address_rate", l.AddressRate},
		{"address_burst", l.AddressBurst}, {"failed_keys", l.FailedKeys},
	} {
		if number.value < 0 || number.value > mostRate {
			all = append(all, fmt.Errorf("%s is %d; write 0 to %d, 0 for no limit", number.key, number.value, mostRate))
		}
	}
	_, err := l.proxies()
	return errors.Join(append(all, err)...)
}

func (l Limits) proxies() ([]netip.Prefix, error) {
	networks := make([]netip.Prefix, len(l.TrustedProxies))
	for i, text := range l.TrustedProxies {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("trusted_proxies: %q is no network; write one like 10.0.0.0/8, or 192.0.2.7/32 for one address", text)
		}
		networks[i] = network
	}
	return networks, nil
}

// LimitError is that somebody asks too much. It does not depend on whether a
// key exists or is good.
type LimitError struct {
	// Wait is how long it takes until the next request may be let in.
	Wait time.Duration
	text string
}

func (e *LimitError) Error() string { return e.text }

// Seconds is Wait in whole seconds, at least 1, for a Retry-After header.
func (e *LimitError) Seconds() int { return max(1, int((e.Wait+time.Second-1)/time.Second)) }

// Guard recognises keys, and slows those who guess or flood. Its memory is
// bounded. It holds nobody up: who asks too much is refused at once. It is safe
// for concurrent use.
type Guard struct {
	now       func() time.Time
	proxies   []netip.Prefix
	keys      *buckets[[sha256.Size]byte]
	addresses *buckets[netip.Addr]
	failures  *buckets[netip.Addr]
	// known are good keys by the address that used them: they are let in while
	// somebody else guesses from behind the same address.
	known *lru.Cache[acquaintance, struct{}]
}

type acquaintance struct {
	address netip.Addr
	hash    [sha256.Size]byte
}

// NewGuard makes a guard; now is nil for the machine's clock. It fails on what Limits.Validate finds.
func NewGuard(l Limits, now func() time.Time) (*Guard, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	proxies, err := l.proxies()
	if err != nil {
		return nil, err
	}
	known, err := lru.New[acquaintance, struct{}](mostBuckets)
	if err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	return &Guard{
		now: now, proxies: proxies, known: known,
		keys:      newBuckets[[sha256.Size]byte](l.KeyRate, l.KeyBurst, time.Second),
		addresses: newBuckets[netip.Addr](l.AddressRate, l.AddressBurst, time.Second),
		failures:  newBuckets[netip.Addr](l.FailedKeys, l.FailedKeys, time.Minute),
	}, nil
}

// Unlimited is a guard that slows nobody.
func Unlimited() *Guard {
	g, err := NewGuard(Limits{}, nil)
	if err != nil {
		panic(err) // no limits are always valid
	}
	return g
}

// Find recognises a secret that came from an address. It fails as the function
// Find does, and with a *LimitError before the store is asked.
func (g *Guard) Find(ctx context.Context, store ledger.Ledger, secret configopaque.String, from netip.Addr, at engine.Instant) (ledger.Key, error) {
	now, address, hash := g.now(), network(from), sha256.Sum256([]byte(secret))
	if wait := g.failures.wait(address, now); wait > 0 && !g.known.Contains(acquaintance{address, hash}) {
		return ledger.Key{}, &LimitError{wait, "too many keys that are not good came from this address; wait before you try again"}
	}
	if err := g.admit(hash, now); err != nil {
		return ledger.Key{}, err
	}
	key, err := Find(ctx, store, secret, at)
	switch {
	case err == nil:
		g.known.Add(acquaintance{address, hash}, struct{}{})
	case errors.Is(err, ErrInvalid), errors.Is(err, ErrRevoked), errors.Is(err, ErrExpired):
		g.known.Remove(acquaintance{address, hash})
		g.failures.charge(address, now)
	}
	return key, err
}

// Admit counts a request of a key that was recognised in another way than by
// its secret; hash is that of the secret.
func (g *Guard) Admit(hash [sha256.Size]byte) error { return g.admit(hash, g.now()) }

func (g *Guard) admit(hash [sha256.Size]byte, now time.Time) error {
	if wait := g.keys.take(hash, now); wait > 0 {
		return &LimitError{wait, "this key sends too many requests; wait before you try again"}
	}
	return nil
}

// AdmitStranger counts a request without a key.
func (g *Guard) AdmitStranger(from netip.Addr) error {
	if wait := g.addresses.take(network(from), g.now()); wait > 0 {
		return &LimitError{wait, "this address sends too many requests without a key; wait before you try again"}
	}
	return nil
}

// network is what one client has: an IPv4 address, or the /64 of an IPv6 address.
func network(address netip.Addr) netip.Addr {
	if !address.Is6() {
		return address
	}
	prefix, err := address.WithZone("").Prefix(64)
	if err != nil { // 64 bits are always there
		return address
	}
	return prefix.Addr()
}

// Address is who sends a request: the other end of the connection, or the last
// address in X-Forwarded-For that is no trusted proxy, when a trusted one sends it.
func (g *Guard) Address(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // no network connection: all of these share one bucket
	}
	address := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !g.trusted(address) {
			return address
		}
		before, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			return address
		}
		address = before.Unmap()
	}
	return address
}

func (g *Guard) trusted(address netip.Addr) bool {
	return slices.ContainsFunc(g.proxies, func(network netip.Prefix) bool { return network.Contains(address.WithZone("")) })
}
