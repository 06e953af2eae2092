package ledger

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/golang-lru/v2"

	"github.com/countersign-otel/countersign/engine/contract"
)

// parsed remembers published documents. Parsing depends on nothing but the
// document, and a document on nothing but this key (decision D21).
var parsed = newLRU[parsedKey](512)

type parsedKey struct {
	id      string
	version int
	hash    string
}

func newLRU[K comparable](size int) *lru.Cache[K, *contract.Contract] {
	cache, err := lru.New[K, *contract.Contract](size)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return cache
}

// ParseDocument parses a published version.
func ParseDocument(d ContractDocument) (*contract.Contract, error) {
	key := parsedKey{d.ID, d.Version, d.Hash}
	if c, ok := parsed.Get(key); ok {
		return c, nil
	}
	c, diagnostics := contract.Parse(fmt.Sprintf("%s@%d", d.ID, d.Version), d.Document)
	if c == nil {
		lines := make([]string, len(diagnostics))
		for i := range diagnostics {
			lines[i] = diagnostics[i].Error()
		}
		return nil, fmt.Errorf("the published contract %s version %d cannot be read by this program: %s", d.ID, d.Version, strings.Join(lines, "; "))
	}
	parsed.Add(key, c)
	return c, nil
}

// ContractCache holds the parsed contracts of one store. A version never
// changes once it is published (decision D21), so nothing in it goes stale. It
// is safe for concurrent use.
type ContractCache struct {
	versions *lru.Cache[ContractRef, *contract.Contract]
}

// NewContractCache keeps up to size versions; a size below 1 means 256.
func NewContractCache(size int) *ContractCache {
	if size < 1 {
		size = 256
	}
	return &ContractCache{newLRU[ContractRef](size)}
}

// Get returns a version; version 0 is the latest, which is looked up every
// time. It fails with ErrUnknownContract for what was not published.
func (c *ContractCache) Get(ctx context.Context, tx Contracts, ref ContractRef) (*contract.Contract, error) {
	if known, ok := c.versions.Get(ref); ok {
		return known, nil
	}
	found, err := resolve(ctx, tx, []ContractRef{ref})
	if err != nil {
		return nil, err
	}
	known, err := found[ref].contract, found[ref].err
	if err != nil {
		return nil, err
	}
	c.versions.Add(ContractRef{known.ID, known.Version}, known)
	return known, nil
}

// resolved is what a reference led to: a contract or an error.
type resolved struct {
	contract *contract.Contract
	err      error
}

// resolve looks references up with one statement. The result has every reference.
func resolve(ctx context.Context, tx Contracts, refs []ContractRef) (map[ContractRef]resolved, error) {
	documents, err := tx.ContractVersions(ctx, refs)
	if err != nil {
		return nil, err
	}
	exact := make(map[ContractRef]ContractDocument, len(documents))
	for _, d := range documents {
		exact[ContractRef{d.ID, d.Version}] = d
		// What was asked for as the latest came back under its number; other
		// versions of the same id came back only because they were asked for.
		if latest, ok := exact[ContractRef{ID: d.ID}]; !ok || latest.Version < d.Version {
			exact[ContractRef{ID: d.ID}] = d
		}
	}
	found := make(map[ContractRef]resolved, len(refs))
	for _, ref := range refs {
		d, ok := exact[ref]
		if !ok {
			found[ref] = resolved{err: unknownContract(ref)}
			continue
		}
		c, err := ParseDocument(d)
		found[ref] = resolved{c, err}
	}
	return found, nil
}

func unknownContract(ref ContractRef) error {
	what := fmt.Sprintf("%q", ref.ID)
	if ref.Version != 0 {
		what = fmt.Sprintf("%q version %d", ref.ID, ref.Version)
	}
	return fmt.Errorf("%w %s: it was not published to this store; run countersign contracts publish with its file", ErrUnknownContract, what)
}
