package client

import (
	"context"
	"time"
)

// Fact is what a system of record says happened (AC "Facts").
type Fact struct {
	// Source, Type and SubjectKind are identifiers: letters, digits and _ . : - after a letter, at most
	// 64 characters, case ignored.
	Source    string `json:"source"`
	SubjectID string `json:"subject_id"`
	// SubjectKind defaults to "record".
	SubjectKind string `json:"subject_kind,omitempty"`
	Type        string `json:"fact_type"`
	// OccurredAt is when it happened, not when it was read; a fraction of a second is cut off.
	OccurredAt time.Time `json:"occurred_at"`
	// Attributes are anything that encoding/json writes as an object, bounded as Action.Params are.
	Attributes any `json:"attributes,omitempty"`
	// RawRef is the source's own event id; without one, the content is its identity (decision D36).
	RawRef string `json:"raw_ref,omitempty"`
}

// Link says that two subjects are one case, in both directions.
type Link struct {
	SubjectID       string `json:"subject_id"`
	LinkedSubjectID string `json:"linked_subject_id"`
}

// Batch is facts, links and watermarks that belong together: at most 10,000 facts and as many links.
type Batch struct {
	Facts []Fact `json:"facts,omitempty"`
	Links []Link `json:"links,omitempty"`
	// Watermarks say, by source, that everything up to then has been sent
	// (decision D12). They only move forward, so send one after its facts.
	Watermarks map[string]time.Time `json:"watermarks,omitempty"`
}

// Pushed says what became of a batch.
type Pushed struct {
	Ingested int `json:"ingested"`
	// Duplicates were known with the same content.
	Duplicates int `json:"duplicates"`
	// Conflicting were known under the same RawRef with other content; the first stands.
	Conflicting int `json:"conflicting"`
	// Rejected were not taken. The rest was.
	Rejected []Rejected `json:"rejected"`
}

// Rejected is one item of a batch that was not taken.
type Rejected struct {
	// Index is the position in Facts; nil for a link or a watermark, which Pointer names.
	Index   *int   `json:"index"`
	Pointer string `json:"pointer"`
	Error   string `json:"error"`
}

// Push sends facts. A bad one does not sink the others: look at
// Pushed.Rejected. Pushing a batch again changes nothing.
func (c *Client) Push(ctx context.Context, batch Batch) (Pushed, error) {
	var pushed Pushed
	err := c.post(ctx, "/v1/facts", batch, &pushed)
	return pushed, err
}
