package history

import "time"

// Status is how a receipt stands in the chain of its session.
type Status string

// The statuses, in the protocol's words.
const (
	// Anchor is a session's first receipt, on the session's own anchor.
	Anchor Status = "anchor"
	// Linked names the hash of the receipt before it.
	Linked Status = "linked"
	// Mismatch names another hash than that of the receipt before it, or of the
	// anchor, or another receipt has its number already.
	Mismatch Status = "mismatch"
	// Gap is one whose predecessor has not come.
	Gap Status = "gap"
	// Broken is linked, but to a chain that has a mismatch before.
	Broken Status = "broken"
	// Unverified could not be checked: the secret that the anchor is made from,
	// or the predecessor, is not known to this collector.
	Unverified Status = "unverified"
)

// open statuses may change when the predecessor comes.
func (s Status) open() bool { return s == Gap || s == Unverified }

func (s Status) wrong() bool { return s == Mismatch || s == Broken }

// Entry is what is remembered of a receipt; never inputs or output.
type Entry struct {
	KeyID       string `json:"key_id"`
	ReferenceID string `json:"reference_id"`
	SessionID   string `json:"session_id"`
	AgentID     string `json:"agent_id"`
	ToolName    string `json:"tool_name"`
	Outcome     string `json:"status"`
	Visibility  string `json:"receipt_visibility"`
	Seq         uint64 `json:"seq"`
	Hash        string `json:"receipt_hash"`
	PrevHash    string `json:"prev_hash"`
	// Anchor is what PrevHash has to be for Seq 1; empty where it is not known.
	// It is derived from a secret, and not kept.
	Anchor     string    `json:"-"`
	StartedAt  time.Time `json:"started_at"`
	EndedAt    time.Time `json:"ended_at"`
	DurationMS int64     `json:"duration_ms"`
	ReceivedAt time.Time `json:"received_at"`
	// Status is set by History.
	Status Status `json:"chain_status"`
}

// Standing is what History makes of a receipt that comes in.
type Standing struct {
	Kind Kind
	// Status is that of the remembered receipt for a duplicate, and empty for a conflict.
	Status Status
}

// Kind tells a new receipt from one that came already.
type Kind uint8

// The kinds.
const (
	Fresh Kind = iota
	// Duplicate has the reference id and the hash of one that came.
	Duplicate
	// Conflict has the reference id of one that came, and another hash.
	Conflict
)
