package ledger

import (
	"encoding/json"

	"github.com/countersign-otel/countersign/engine"
)

// NewAction is an action to record, resolved against its contract.
type NewAction struct {
	Action engine.Action
	// StartedNanos is the start of the action's span in OTLP nanoseconds, for
	// finding its agent (decision D31); 0 when unknown.
	StartedNanos int64
	// Verify queues the first verification with the record (decision D15).
	Verify bool
	// Untimed: Action.RequestedAt is the time of recording, because none was sent.
	Untimed bool
}

// Recorded says what became of one action.
type Recorded struct {
	ClaimID string
	// Action is the action as it stands in the store now.
	Action engine.Action
	// Created is false for an action that was known.
	Created bool
	// Changed is true for a new action and for an update that changed something.
	Changed bool
	// Conflicting names the fields in which an update differed from a settled
	// action whose contract says updates: until_settled. They stand as they
	// were; nil for none.
	Conflicting []string
}

// TraceContext is an agent-like span: who acted in which interval of a trace (decision D31).
type TraceContext struct {
	// TraceID and SpanID are lowercase hex.
	TraceID, SpanID      string
	StartNanos, EndNanos int64
	Agent, Session       string
}

// FactBatch is what one connection delivers at once. Facts are normalized.
type FactBatch struct {
	Facts []engine.Fact
	Links []engine.Link
	// Watermarks by source: everything up to then has been sent (decision D12).
	Watermarks map[string]engine.Instant
	// Connection is engine.FactsAPI for pushed facts.
	Connection string
	// Trust is given to connections that this batch creates; facts of
	// engine.AgentSource are self-reported whatever it says (decision D10).
	Trust engine.Trust
}

// Ingested counts what became of a batch (decision D8).
type Ingested struct {
	Ingested, Duplicates, Conflicting int
	// ConflictingRefs names the raw_refs that stood with other content, at most 100.
	ConflictingRefs []string
	// Woken is the number of actions made due.
	Woken int
}

// ConnectionSetting changes one connection; nil fields stay as they are.
type ConnectionSetting struct {
	Source, Name string
	Health       *engine.Health
	Trust        *engine.Trust
	Override     *engine.Trust
	ClockSkew    *engine.Duration
	// Watermark only moves forward; an older one is ignored (decision D12).
	Watermark *engine.Instant
}

// ContractRef names a version; Version 0 is the latest.
type ContractRef struct {
	ID      string
	Version int
}

// ContractDocument is a published version. Parse Document with contract.Parse.
type ContractDocument struct {
	ID          string
	Version     int
	Hash        string
	Document    []byte
	PublishedAt engine.Instant
}

// Lease names who holds work, from when (the caller's now) and until when.
type Lease struct {
	Owner      string
	Now, Until engine.Instant
}

// Due is leased work.
type Due struct {
	ClaimID string
	// Contract names the pinned version.
	Contract ContractRef
	DueAt    engine.Instant
	// Generation changes whenever the work is woken.
	Generation int64
	// TriggeredBy is why it is due: "action", "fact:<raw_ref>", "recheck", "manual".
	TriggeredBy string
	// Attempts counts leases since the last stored run or wake, this one included.
	Attempts int
	// Made: LeaseActions made the row.
	Made bool
}

// Parked is work that could not be done and does not hold the rest.
type Parked struct {
	Due      Due
	ActionID string
	Error    string
	At       engine.Instant
}

// Statuses of a run.
const (
	Pending = "pending"
	Settled = "settled"
)

// Run is one stored verification.
type Run struct {
	// ID and Seq are given by StoreRuns; Seq is the chain position of the policy verdict.
	ID  string
	Seq int64
	// ClaimID is the action; Lease the work under which it is stored, nil for none.
	ClaimID string
	Lease   *Due
	// Owner of the lease.
	Owner       string
	Contract    ContractRef
	ComputedAt  engine.Instant
	TriggeredBy string
	Status      string
	Headline    string
	Outcome     StoredVerdict
	Policy      StoredVerdict
	// Report is the JSON of checks, summary, settlement, sources and reversal (see engine/report).
	Report json.RawMessage
	// NextCheckAt is when to verify again; nil when settled.
	NextCheckAt *engine.Instant
	// Events go into the outbox: "action.pending", "action.verified", ...
	Events []string
	// PreviousSeq is the run that this one replaces; 0 for the first.
	PreviousSeq int64
	// Changed: the verdict pair differs from the previous run's.
	Changed bool
	// Evidence are the content hashes of the facts that the verdicts name, in the
	// order of seal.Evidence. Only ChainRuns reads them again.
	Evidence [][32]byte
	// Compensates is the action that the run's action corrects; empty for none.
	// Like Evidence it is hashed (seal.Run), and only ChainRuns reads it again.
	Compensates string
	// Judged is the action as it was judged, where its contract says updates:
	// until_settled; nil otherwise. StoreRuns compares it, and stores none of it.
	Judged *engine.Action
}

// StoredVerdict is a verdict with what its hash was made of (decision D24).
type StoredVerdict struct {
	engine.Verdict
	Hash [32]byte
	// Document is the canonical JSON whose SHA-256 is Hash.
	Document string
	// Seq and ChainHash are given by StoreRuns.
	Seq       int64
	ChainHash [32]byte
}

// OutboxEvent is a leased event about one run.
type OutboxEvent struct {
	Tenant string
	ID     int64
	Kind   string
	Action StoredAction
	// Run is the run that the event is about, not necessarily the latest.
	Run Run
	// Previous is the run that Run replaces; nil for the first.
	Previous  *Run
	CreatedAt engine.Instant
	Attempts  int
}

// OutboxRetry keeps an event for a later attempt.
type OutboxRetry struct {
	Tenant  string
	ID      int64
	RetryAt engine.Instant
	Error   string
}

// StoredAction is an action as the store has it.
type StoredAction struct {
	ClaimID    string
	Action     engine.Action
	RecordedAt engine.Instant
	// Latest is nil until the first verification.
	Latest *Run
	// NextCheckAt is when it is due; nil when nothing is queued.
	NextCheckAt *engine.Instant
	// ParkedError is set when the action is parked.
	ParkedError string
}

// ActionFilter selects actions; zero fields select all.
type ActionFilter struct {
	// Verdict is PASS, FAIL, UNKNOWN (policy verdict of the latest run), PENDING or COMPENSATED.
	Verdict                                             string
	ContractID, AgentID, SubjectID, TraceID, WorkflowID string
	// Since and Until bound requested_at: since <= requested_at < until.
	Since, Until *engine.Instant
	// Cursor is ActionPage.Next of the page before.
	Cursor string
	// Limit is 1 to 500; 0 means 50.
	Limit int
}

// ActionPage is one page of a list.
type ActionPage struct {
	Actions []StoredAction
	// Next is empty on the last page.
	Next string
}

// Summary counts actions by the policy verdict of their latest run. Pending and
// compensated overlap with the others; unverified actions have no run.
type Summary struct {
	Total, Pass, Fail, Unknown, Pending, Compensated, Unverified int
}

// Compensation is the latest action that corrects another one.
type Compensation struct {
	By StoredAction
	// Settled is the policy verdict of By's latest settled run; empty while
	// there is none. The corrected action is compensated when it is Verified.
	Settled engine.RawVerdict
}

// PublicVerdict is a verdict that was looked up by its hash. Of the document, which
// is a tenant's, nobody but its owner may learn more than the verdict.
type PublicVerdict struct {
	// Document is what the hash was made of, as it is stored.
	Document   string
	ComputedAt engine.Instant
}

// ChainEntry is one verdict of the chain.
type ChainEntry struct {
	Seq         int64
	ClaimID     string
	Lens        engine.Lens
	Raw         engine.RawVerdict
	Reasons     []string
	VerdictHash [32]byte
	ChainHash   [32]byte
	Document    string
}

// ChainRun is a run as it is stored: of its verdicts it has the sequence numbers alone.
type ChainRun struct {
	Run
	// ReportHash and RunHash are RunHashes as they are stored; both nil for a run
	// of a program that did not hash runs.
	ReportHash, RunHash []byte
	// Err says that the stored content hashes of its evidence are none; Evidence is nil then.
	Err error
	// Action is what the action says today of what no update changes; its
	// ActionID is empty when the action is not stored any more.
	Action ChainAction
}

// ChainAction is the part of a recorded action that stays as it was recorded
// first. Compensates stays, too: it is in Run.
type ChainAction struct {
	ActionID string
	Contract ContractRef
}

// StoredFact is a fact with its content hash as it is stored, and since when it is.
type StoredFact struct {
	engine.Fact
	ContentHash []byte
	IngestedAt  engine.Instant
	// Err says that the stored attributes are no object that this program could have written; Attributes are empty then.
	Err error
}

// LatestCheck is what CheckLatest found in one page.
type LatestCheck struct {
	Actions int
	// Last is the claim id after which the next page begins.
	Last string
	// BrokenAt is the run, the first in the chain, whose verdict is not the one that is listed; 0 for none.
	BrokenAt int64
}

// Dropped is what retention has removed of a tenant.
type Dropped struct {
	// Horizon is the latest one: actions requested at it or later have kept everything. 0 for never.
	Horizon        engine.Instant
	Facts, Reports int64
}

// OrphanFilter selects facts by source and type pairs and time.
type OrphanFilter struct {
	Effects      []EffectType
	Since, Until *engine.Instant
	Limit        int
}

// EffectType is a fact type that contracts expect; an empty source means any.
type EffectType struct{ Source, Type string }

// OrphanCount is how many facts of a source no recorded action explains.
type OrphanCount struct {
	Source string
	Facts  int64
}

// TallyFilter selects what is counted by since <= requested_at < until; empty
// fields select all.
type TallyFilter struct {
	Since, Until        engine.Instant
	ContractID, AgentID string
	// Step is the width of TallyContracts' intervals, which begin at multiples of it since 1970.
	Step engine.Duration
	// Limit bounds the groups of TallyAgents.
	Limit int
}

// Tally counts actions of one group by the policy verdict of their latest run.
// Every action of Total is in exactly one of Pass, Fail, Unknown, Pending and
// Unverified: unlike in a Summary, a provisional verdict counts as pending only.
type Tally struct {
	// Key is the contract or the agent; At the begin of the interval, 0 where time is no group.
	Key string
	At  engine.Instant

	Total, Pass, Fail, Unknown, Pending, Unverified int
	// Compensated are those of Fail and Unknown whose latest correcting action
	// settled PASS (decision D18); Contradicted those whose agent reported
	// success while the outcome settled FAIL (decision D34).
	Compensated, Contradicted int
}

// Add adds the counts of another tally; group and time stay.
func (t *Tally) Add(other Tally) {
	t.Total += other.Total
	t.Pass += other.Pass
	t.Fail += other.Fail
	t.Unknown += other.Unknown
	t.Pending += other.Pending
	t.Unverified += other.Unverified
	t.Compensated += other.Compensated
	t.Contradicted += other.Contradicted
}

// Settled is how many have a final verdict.
func (t Tally) Settled() int { return t.Pass + t.Fail + t.Unknown }

// ReasonCount says how many actions carry a reason code.
type ReasonCount struct {
	Code    string
	Actions int
}

// Roles of keys (AC "Recording actions and pushing facts").
const (
	RoleRecorder = "recorder"
	RoleEvidence = "evidence"
	RoleAnalyst  = "analyst"
	RoleViewer   = "viewer"
)

// Key is an API key. The secret itself is never stored.
type Key struct {
	Tenant, ID, Role string
	// Prefix is the visible start of the secret.
	Prefix string
	Hash   [32]byte
	// Sources that an evidence key may push for; empty means none.
	Sources                          []string
	CreatedAt                        engine.Instant
	ExpiresAt, RevokedAt, LastUsedAt *engine.Instant
}

// KeyUse is one use of a key.
type KeyUse struct {
	Tenant, ID string
	At         engine.Instant
}
