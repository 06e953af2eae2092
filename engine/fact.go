package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// ErrFact is wrapped by every error about a fact that cannot be taken.
var ErrFact = errors.New("invalid fact")

// Fact is one event observed in a system of record about a subject (AC "Vocabulary").
type Fact struct {
	// RawRef is the source system's own event id, or derived (decision D36). Unique within a tenant.
	RawRef      string
	Source      string
	Type        string
	SubjectID   string
	SubjectKind string
	OccurredAt  Instant
	Attributes  Object
}

// Normalize checks the fact, lowercases its identifiers (decision D6) and
// derives RawRef where none was sent (decision D36). Errors name the field.
func (f Fact) Normalize() (Fact, error) {
	var err error
	if f.Source, err = Identifier(f.Source); err != nil {
		return Fact{}, fmt.Errorf("%w: source: %w", ErrFact, err)
	}
	if f.Type, err = Identifier(f.Type); err != nil {
		return Fact{}, fmt.Errorf("%w: fact_type: %w", ErrFact, err)
	}
	if err := CheckOpaque("subject_id", f.SubjectID); err != nil {
		return Fact{}, fmt.Errorf("%w: %w", ErrFact, err)
	}
	if f.SubjectKind == "" {
		f.SubjectKind = "record"
	}
	if f.SubjectKind, err = Identifier(f.SubjectKind); err != nil {
		return Fact{}, fmt.Errorf("%w: subject_kind: %w", ErrFact, err)
	}
	if f.OccurredAt < 0 || f.OccurredAt > MaxInstant {
		return Fact{}, fmt.Errorf("%w: occurred_at: %w: outside the years 1970 to 9999", ErrFact, ErrInstant)
	}
	if !f.Attributes.Captured() {
		f.Attributes = EmptyObject()
	}
	if f.RawRef == "" {
		f.RawRef = f.deriveRawRef()
	}
	if err := f.checkReserved(); err != nil {
		return Fact{}, err
	}
	if err := CheckOpaque("raw_ref", f.RawRef); err != nil {
		return Fact{}, fmt.Errorf("%w: %w", ErrFact, err)
	}
	return f, nil
}

// Beginnings of references that others must not take: who had one first would
// keep the fact that it belongs to out of the store (decision D8).
const (
	// derivedPrefix starts every derived raw_ref (decision D36).
	derivedPrefix = "agent_api:fact:"
	// claimPrefix starts the reference of an action's own record, as evidence of limits.
	claimPrefix = "agent_api:action:"
	// SpanPrefix starts the reference of a fact that an agent's span tells.
	SpanPrefix = "otel:span:"
)

// checkReserved refuses a raw_ref that belongs to something else.
func (f Fact) checkReserved() error {
	reserved := ""
	switch {
	case strings.HasPrefix(f.RawRef, derivedPrefix) && f.RawRef != f.deriveRawRef():
		reserved = "is derived from other content"
	case strings.HasPrefix(f.RawRef, claimPrefix):
		reserved = "stands for an action"
	case strings.HasPrefix(f.RawRef, SpanPrefix) && f.Source != AgentSource:
		reserved = "stands for an agent's span"
	default:
		return nil
	}
	return fmt.Errorf("%w: raw_ref: %q %s; send the source system's own id, or leave raw_ref out", ErrFact, clip(f.RawRef), reserved)
}

// deriveRawRef is decision D36: the same fact over any path has the same reference.
func (f Fact) deriveRawRef() (ref string) {
	withBuffer(func(b []byte) []byte {
		b = f.content(b)
		sum := sha256.Sum256(b)
		ref = derivedPrefix + hex.EncodeToString(sum[:])
		return b
	})
	return ref
}

// ContentHash identifies what the fact says, for telling a duplicate from a
// conflict (decision D8).
func (f Fact) ContentHash() (hash [32]byte) {
	withBuffer(func(b []byte) []byte {
		b = AppendString(f.content(b), f.SubjectKind)
		hash = sha256.Sum256(b)
		return b
	})
	return hash
}

// content appends the canonical JSON of [source, subject_id, fact_type, occurred_at, attributes].
func (f Fact) content(b []byte) []byte {
	b = append(b, '[')
	for _, text := range [...]string{f.Source, f.SubjectID, f.Type} {
		b = append(AppendString(b, text), ',')
	}
	b = append(b, '"')
	b = f.OccurredAt.AppendText(b)
	b = append(b, '"', ',')
	b = f.Attributes.appendCanonical(b)
	return append(b, ']')
}

// CompareFacts orders facts by occurred_at, then raw_ref in byte order
// (decision D5). Earliest is the first in this order, latest the last.
func CompareFacts(a, b Fact) int {
	if a.OccurredAt != b.OccurredAt {
		if a.OccurredAt < b.OccurredAt {
			return -1
		}
		return 1
	}
	return strings.Compare(a.RawRef, b.RawRef)
}

// Link makes two subjects one case, in both directions, one hop (decision D7).
type Link struct {
	SubjectID       string `json:"subject_id"`
	LinkedSubjectID string `json:"linked_subject_id"`
}

// Check names what is wrong with a link.
func (l Link) Check() error {
	if err := CheckOpaque("subject_id", l.SubjectID); err != nil {
		return err
	}
	return CheckOpaque("linked_subject_id", l.LinkedSubjectID)
}
