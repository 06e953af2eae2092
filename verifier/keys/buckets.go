package keys

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// mostBuckets bounds the memory of buckets: about 100 bytes each. Who is
// forgotten begins with a full bucket.
const mostBuckets = 1 << 14

// buckets are token buckets by name, kept as in the generic cell rate algorithm:
// all that is remembered of one is when it will be full again. They are safe
// for concurrent use. A nil pointer never refuses.
type buckets[K comparable] struct {
	// every is the time in which one token comes back, depth that of all of them.
	every, depth time.Duration

	mu   sync.Mutex
	full *simplelru.LRU[K, time.Time]
}

// newBuckets of burst tokens, of which rate come back within per. It is nil, without a bound, for a rate of 0.
func newBuckets[K comparable](rate, burst int, per time.Duration) *buckets[K] {
	if rate < 1 {
		return nil
	}
	every := max(per/time.Duration(rate), 1)
	full, err := simplelru.NewLRU[K, time.Time](mostBuckets, nil)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &buckets[K]{every: every, depth: time.Duration(max(burst, 1)) * every, full: full}
}

// take takes a token, or says how long it takes until there is one.
func (b *buckets[K]) take(name K, now time.Time) (wait time.Duration) {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.next(name, now)
	if wait := next.Sub(now) - b.depth; wait > 0 {
		return wait
	}
	b.full.Add(name, next)
	return 0
}

// wait says how long it takes until there is a token, and takes none.
func (b *buckets[K]) wait(name K, now time.Time) time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, b.next(name, now).Sub(now)-b.depth)
}

// longestDebt bounds how long a bucket stays empty, whatever was charged.
const longestDebt = 15 * time.Minute

// charge takes a token that may not be there: then the bucket is in debt.
func (b *buckets[K]) charge(name K, now time.Time) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	next, most := b.next(name, now), now.Add(b.depth+longestDebt)
	if next.After(most) {
		next = most
	}
	b.full.Add(name, next)
}

// next is when a bucket will be full again once one more token was taken.
func (b *buckets[K]) next(name K, now time.Time) time.Time {
	full, ok := b.full.Get(name)
	if !ok || full.Before(now) {
		full = now
	}
	return full.Add(b.every)
}
