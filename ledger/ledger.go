// Package ledger is the store of facts, actions, verdicts and what is due,
// behind one narrow interface. The stores are ledger/sqlite and
// ledger/postgres; ledger/ledgertest is the suite that both pass.
//
// Every method of Tx works on a batch with a bounded number of statements: a
// loop that runs a query per item is a defect. Every method names one tenant,
// except the few whose comment says that they look across tenants.
//
// Times are passed in; a store never reads a clock for anything that is stored.
package ledger

import (
	"context"
	"errors"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
)

// Errors of every store. No driver's own error leaves a store without one of
// these or the context's in its chain.
var (
	// ErrNotFound: no such row in this tenant.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable: the store cannot be reached or is busy; trying again later may work.
	ErrUnavailable = errors.New("store unavailable")
	// ErrData: the database refuses this data; neither time nor trying again helps, and other data is taken.
	ErrData = errors.New("the database refuses this data")
	// ErrReadOnly: the store cannot be written (read-only file, folder or role); trying again does not help.
	ErrReadOnly = errors.New("store is read-only")
	// ErrNewerSchema: the database was migrated by a newer program.
	ErrNewerSchema = errors.New("the store's schema is newer than this program")
	// ErrNotMigrated: the database has no schema, or an older one.
	ErrNotMigrated = errors.New("the store is not migrated")
	// ErrUnknownContract: no version of the contract, or not this one, was published to the store.
	ErrUnknownContract = errors.New("unknown contract")
	// ErrImmutable: other content stands under this contract id and version (decision D21).
	ErrImmutable = errors.New("contract version is immutable")
	// ErrCycle: a compensation that leads back to itself (decision D18).
	ErrCycle = errors.New("compensation cycle")
	// ErrFilter: a cursor or a filter value that no store gave or knows.
	ErrFilter = errors.New("invalid filter")
	// ErrLeaseLost: another verifier took the work over; nothing was stored.
	ErrLeaseLost = errors.New("lease lost")
	// ErrExpired: the action is older than what retention has kept; its evidence is gone, and its last verdict stands.
	ErrExpired = errors.New("older than what retention keeps")
)

// Capabilities are the few things that stores may differ in.
type Capabilities struct {
	// Notifies: Wake is told by the store itself, across processes and hosts, without polling.
	Notifies bool
	// Dialect is the name of the SQL dialect: "postgres" or "sqlite".
	Dialect string
	// ViewsBlockWriters: an Update cannot commit while a View is under way (a store in memory).
	ViewsBlockWriters bool
}

// Ledger is one store. It is safe for concurrent use. Close it once.
type Ledger interface {
	// Migrate brings the schema up to date, forward only; safe from several processes at once.
	// It fails with ErrNewerSchema on a database newer than the program.
	Migrate(ctx context.Context) error
	// CheckSchema fails with ErrNotMigrated or ErrNewerSchema when Migrate would have something to do or refuse.
	CheckSchema(ctx context.Context) error
	// View runs f in one read-only snapshot: all statements of f see the same moment.
	View(ctx context.Context, f func(Tx) error) error
	// Update runs f in a transaction and commits when f returns nil. On a
	// serialization failure, a deadlock or a busy database it runs f again, a
	// bounded number of times with jitter: f must have no effect outside Tx.
	Update(ctx context.Context, f func(Tx) error) error
	// Rehearse is Update in one snapshot, always rolled back (dry run).
	Rehearse(ctx context.Context, f func(Tx) error) error
	// Wake returns a channel that receives after due work or outbox entries may
	// have appeared, from this process or another, until ctx ends. Signals
	// coalesce; a missed one is possible, so callers also poll.
	Wake(ctx context.Context) (<-chan struct{}, error)
	Capabilities() Capabilities
	Close() error
}

// Tx is one transaction. It must not be used after the function it was passed to returned, nor concurrently.
type Tx interface {
	AgentSide
	EvidenceSide
	Contracts
	Verification
	Reading
	Events
	Webhooks
	Overview
	Audit
	Retention
	Keys
}

// AgentSide is what the recorder may do.
type AgentSide interface {
	// RecordActions upserts actions that were normalized and resolved (see
	// Record). A new action gets everything; a known one only what AC
	// "Idempotency" lets an update change: requested_at, params, workflow_id,
	// agent_id, subject_id, channel, and trace fields that are empty so far
	// (trace_id, span_id, session_id, reference_id, tool, reported_outcome,
	// StartedNanos). An update that would empty agent_id or session_id keeps
	// the old value (decision D31); one that sends them replaces what trace
	// context completed.
	//
	// Of an action that has a settled run, now or ever, and is pinned to a
	// contract version with updates: until_settled, the fields of
	// contract.Contract.HeldFields stand as they are, against this call and
	// against trace contexts; Recorded.Conflicting names those that differ. An
	// update sent without a time does not differ by it.
	//
	// Actions with Verify are made due at now, except known ones that are due
	// or verified already and did not change. A known unsettled action (due,
	// or verified and pending) whose content changed is made due too; a settled
	// one stays settled. An action without agent or session is completed from
	// recorded trace contexts in the same call (decision D31).
	//
	// Results stand in the order of the input. An action id that stands twice
	// in one batch is recorded as if the later one came later.
	RecordActions(ctx context.Context, tenant string, actions []NewAction, now engine.Instant) ([]Recorded, error)
	// RecordTraceContexts stores agent-like spans, the first one under a span
	// id, and completes unsettled actions that were sent without an agent or
	// without a session: with the agent, and with the session, of the context
	// of the same trace whose interval contains the action's start and started
	// last, the larger span id deciding between equals (decision D31). The
	// order of arrival changes nothing: a better context replaces what an
	// earlier one completed. Actions that this changes are made due at now when
	// they have been verified or are due.
	RecordTraceContexts(ctx context.Context, tenant string, contexts []TraceContext, now engine.Instant) error
	// CompensationChains returns, for each known action among actionIDs and for
	// all known actions that their compensations lead to, what it compensates,
	// by action id; empty for nothing (decision D18).
	CompensationChains(ctx context.Context, tenant string, actionIDs []string) (map[string]string, error)
}

// EvidenceSide is what an evidence connection may do.
type EvidenceSide interface {
	// IngestFacts stores normalized facts, links and watermarks of one
	// connection, idempotently (decisions D7, D8, D12): the first fact under a
	// raw_ref stands, also within one batch. It creates the connections it
	// meets with the batch's trust, and marks those that sent a fact as having
	// delivered. In the same transaction it makes due, at now:
	//
	//   - every action that has a due row, parked or not, and whose subject (or
	//     linked subject) got a new fact or a new link (decision D16);
	//   - every action that has a due row and whose contract reads a source
	//     whose watermark moved to the close of the action's window or past it
	//     (before that it cannot settle anything);
	//   - every settled action that a new fact named in its contract's
	//     reversed_by undoes, by type, source and time (clock skew counted).
	//
	// What is due already keeps its earlier time and its TriggeredBy.
	IngestFacts(ctx context.Context, tenant string, batch FactBatch, now engine.Instant) (Ingested, error)
	// SetConnection sets health, trust, override, clock skew and a forward
	// watermark of one connection; fields that are nil stay as they are.
	SetConnection(ctx context.Context, tenant string, setting ConnectionSetting, now engine.Instant) error
	// DueContracts are the contract versions of actions that have a due row, each once.
	DueContracts(ctx context.Context, tenant string) ([]ContractRef, error)
	// WakeContracts makes due, at now, every action that has a due row, parked or
	// not, and is pinned to one of some contract versions, and returns how many that
	// are. What is due already keeps its earlier time and its TriggeredBy.
	WakeContracts(ctx context.Context, tenant string, contracts []ContractRef, now engine.Instant) (int, error)
	// RejectFacts keeps evidence that could not be written, received at now,
	// bounded. The same again only counts and moves LastAt.
	RejectFacts(ctx context.Context, tenant string, rejected []RejectedFact, now engine.Instant) error
}

// Contracts are shared by all tenants.
type Contracts interface {
	// PublishContracts makes versions known. The same content again is no
	// change; other content under a known id and version fails with
	// ErrImmutable and names both hashes, and publishes nothing (decision D21).
	PublishContracts(ctx context.Context, contracts []*contract.Contract, now engine.Instant) error
	// ContractVersions returns the documents of the given versions; version 0
	// means the latest. What is unknown is left out.
	ContractVersions(ctx context.Context, refs []ContractRef) ([]ContractDocument, error)
	// ListContracts returns the latest version of every contract, or all versions of one id, by id and version.
	ListContracts(ctx context.Context, id string) ([]ContractDocument, error)
}

// Verification is what the verifier does.
type Verification interface {
	// DueTenants lists tenants that have work due at now, across tenants.
	DueTenants(ctx context.Context, now engine.Instant, limit int) ([]string, error)
	// LeaseDue leases work due at now to owner until the lease's end, oldest
	// due first, skipping what anybody holds. Work whose lease ended at now or before is taken over.
	// A View that begins after the Update of the lease sees all evidence whose
	// transaction had begun by then; later evidence keeps the work due.
	LeaseDue(ctx context.Context, tenant string, lease Lease, limit int) ([]Due, error)
	// LeaseActions leases the named actions whether or not they are due
	// (manual verification), parked ones too, making a due row where there is
	// none. What anybody holds is left out of the result. Due.TriggeredBy is "manual".
	LeaseActions(ctx context.Context, tenant string, lease Lease, claimIDs []string) ([]Due, error)
	// ReleaseDue gives leases back, and removes due rows that LeaseActions made
	// and nothing woke. Attempts stay counted. What the owner no longer holds is left alone.
	ReleaseDue(ctx context.Context, tenant string, owner string, due []Due) error
	// Evaluate runs the SQL evaluator: one statement for the whole batch, which
	// must be of this contract version. Results stand in no particular order;
	// unknown claim ids are left out.
	Evaluate(ctx context.Context, tenant string, c *contract.Contract, claimIDs []string, unavailable []string) ([]engine.Evaluation, error)
	// Snapshot loads the actions with all that the Go evaluator needs, with a
	// fixed number of statements for the whole batch.
	Snapshot(ctx context.Context, tenant string, c *contract.Contract, claimIDs []string, unavailable []string) (*engine.Snapshot, error)
	// LatestRuns returns the latest run of each action that has one, by claim id.
	LatestRuns(ctx context.Context, tenant string, claimIDs []string) (map[string]Run, error)
	// StoreRuns appends runs with their verdicts to the tenant's chain without
	// gaps (decision D25), updates the actions' latest verdict, puts the events
	// into the outbox and sets what is due next: NextCheckAt, or nothing when
	// it is nil. Work that was woken after it was leased stays due at its new
	// time. A run under a lease that another owner took over, or whose due row
	// is gone, fails the whole call with ErrLeaseLost. It returns the runs with Seq, ID and chain hashes filled in, in order.
	// A settled run whose action does not say any more what its Judged says is
	// left out: nothing of it is stored, and its lease stays for ReleaseDue.
	StoreRuns(ctx context.Context, tenant string, runs []Run) ([]Run, error)
	// Park takes leased work out of the queue with the error that stopped it,
	// until something wakes it or LeaseActions names it, and puts an event of
	// the kind ParkedEvent into the sequence. Work that was woken after it was
	// leased, or that the owner no longer holds, is not parked.
	Park(ctx context.Context, tenant string, owner string, parked []Parked, now engine.Instant) error
	// LeaseOutbox leases events for delivery, oldest first, across tenants. Attempts counts this lease.
	LeaseOutbox(ctx context.Context, lease Lease, limit int) ([]OutboxEvent, error)
	// CompleteOutbox removes delivered events; an event in retry stays, and is
	// not leased before its RetryAt. What the owner no longer holds is left alone.
	CompleteOutbox(ctx context.Context, owner string, delivered []OutboxEvent, retry []OutboxRetry) error
}

// Reading is what anybody with the right to read may ask.
type Reading interface {
	// Actions returns actions by reference: an action id, or the internal id. What is unknown is left out.
	Actions(ctx context.Context, tenant string, refs []string) ([]StoredAction, error)
	// ListActions pages through actions, newest requested_at first.
	ListActions(ctx context.Context, tenant string, filter ActionFilter) (ActionPage, error)
	// Runs returns all runs of an action, oldest first.
	Runs(ctx context.Context, tenant string, claimID string) ([]Run, error)
	// RunsAt returns the runs with these sequence numbers, in no particular order. What is unknown is left out.
	RunsAt(ctx context.Context, tenant string, seqs []int64) ([]Run, error)
	// SettledClaims returns those of the named actions whose latest run is
	// settled and that nothing has woken since, in no particular order.
	SettledClaims(ctx context.Context, tenant string, claimIDs []string) ([]string, error)
	// Summary counts the policy verdict of the latest run per action (AC "How the two lenses are derived").
	Summary(ctx context.Context, tenant string, filter ActionFilter) (Summary, error)
	// Connections lists all connections of all sources.
	Connections(ctx context.Context, tenant string) ([]engine.Connection, error)
	// Compensations returns the latest correcting action (by requested_at, then
	// action id) of each action that has one, by the corrected action's id (decision D18).
	Compensations(ctx context.Context, tenant string, actionIDs []string) (map[string]Compensation, error)
	// VerdictByHash looks across tenants.
	VerdictByHash(ctx context.Context, hash [32]byte) (PublicVerdict, error)
	// ParkedActions lists parked work, newest first.
	ParkedActions(ctx context.Context, tenant string, limit int) ([]Parked, error)
	// Orphans lists facts of the given types for subjects that no recorded action explains, links honoured, newest first.
	Orphans(ctx context.Context, tenant string, filter OrphanFilter) ([]engine.Fact, error)
	// NearFacts returns facts near a moment, of a subject and of those linked to
	// it, and of subjects that are spelled like it, in the order of decision D5. Its
	// cost grows with the facts of these subjects in the time that is asked for.
	NearFacts(ctx context.Context, tenant string, filter NearFilter) ([]NearFact, error)
	// RejectedFacts lists evidence that could not be written, by LastAt, the newest first.
	RejectedFacts(ctx context.Context, tenant string, filter RejectedFilter) ([]RejectedFact, error)
	// CountRejected counts it by source, in the order of their names, as far as it came at since or later.
	CountRejected(ctx context.Context, tenant string, since engine.Instant) ([]RejectedCount, error)
	// Tenants lists tenants that own anything, across tenants.
	Tenants(ctx context.Context) ([]string, error)
}

// Events is the sequence of what happened to a tenant's actions: durable, and in the order of commits.
type Events interface {
	// ReadEvents returns what stands after a position, from up to limit runs and
	// parkings, limit 1 to 10,000. Runs that told nothing are in it too, with an empty Kind.
	ReadEvents(ctx context.Context, tenant string, after Position, limit int) (EventPage, error)
	// EventHead is the position of the newest event; nothing will ever be put before it.
	EventHead(ctx context.Context, tenant string) (Position, error)
}

// Webhooks are the events that endpoints are still to be told. An endpoint is a
// name of the operator's, within a tenant.
type Webhooks interface {
	// LockWebhook returns how far an endpoint's deliveries are enqueued, and
	// keeps everybody else from enqueueing until the transaction ends. An
	// endpoint that is new begins at the end of the sequence.
	LockWebhook(ctx context.Context, tenant, endpoint string) (Position, error)
	// EnqueueDeliveries adds deliveries, due at now, leaves known ones as they
	// are, and moves the endpoint on. Call LockWebhook before.
	EnqueueDeliveries(ctx context.Context, tenant, endpoint string, upTo Position, deliveries []NewDelivery, now engine.Instant) error
	// LeaseDeliveries leases waiting deliveries that are due, the longest due
	// and the oldest event first. Attempts counts this lease.
	LeaseDeliveries(ctx context.Context, tenant, endpoint string, lease Lease, limit int) ([]Delivery, error)
	// CompleteDeliveries notes what came of attempts and gives their leases
	// back. What the owner no longer holds is left alone.
	CompleteDeliveries(ctx context.Context, tenant, owner string, results []DeliveryResult, now engine.Instant) error
	// DeadLetters pages through deliveries that were given up. It fails with ErrFilter for a cursor that no page gave.
	DeadLetters(ctx context.Context, tenant string, filter DeadLetterFilter) (DeadLetterPage, error)
	// ReplayDeliveries makes deliveries due at now, whatever became of them,
	// with all their attempts again, and returns the ids of those that are known.
	ReplayDeliveries(ctx context.Context, tenant string, ids []string, now engine.Instant) ([]string, error)
	// ExpireDeliveries removes up to limit deliveries of an endpoint that
	// finished before a time, in one of two states, and returns how many.
	ExpireDeliveries(ctx context.Context, tenant, endpoint, state string, before engine.Instant, limit int) (int, error)
}

// Overview is what people look at. Its statements stay cheap in a large store:
// their cost is bounded by a limit, or by the time that is asked for.
type Overview interface {
	// TallyContracts counts actions by contract and by Step of requested_at, in this order.
	TallyContracts(ctx context.Context, tenant string, filter TallyFilter) ([]Tally, error)
	// TallyAgents counts actions by agent, the busiest first; the empty key is the agents that were not named.
	TallyAgents(ctx context.Context, tenant string, filter TallyFilter) ([]Tally, error)
	// NewestFailures returns actions whose latest run settled with FAIL under
	// the policy lens, latest run first, among those of the tenant's newest runs.
	NewestFailures(ctx context.Context, tenant string, newestRuns, limit int) ([]StoredAction, error)
	// CountReasons counts the reason codes of the policy verdict of the latest run
	// of a contract's newest actions, the most frequent first.
	CountReasons(ctx context.Context, tenant, contractID string, newestActions int) ([]ReasonCount, error)
	// ActionsByHash returns the internal ids of up to limit actions that have a verdict with this hash.
	ActionsByHash(ctx context.Context, tenant string, hash [32]byte, limit int) ([]string, error)
	// LinkedSubjects returns up to limit subjects that are linked to a subject, one hop (decision D7).
	LinkedSubjects(ctx context.Context, tenant, subject string, limit int) ([]string, error)
	// Backlog counts what is still to do, across tenants. Its cost grows with that.
	Backlog(ctx context.Context, now engine.Instant) (Backlog, error)
	// SourceLags returns the sources with the earliest watermarks, across tenants; sources without one are left out.
	SourceLags(ctx context.Context, limit int) ([]SourceLag, error)
	// CountOrphans counts what Orphans lists, with since <= occurred_at < until,
	// by source, across tenants: the up to limit sources with the most. Its cost
	// grows with the facts of that time. A store may look only at the 200,000
	// facts that came last.
	CountOrphans(ctx context.Context, effects []EffectType, since, until engine.Instant, limit int) ([]OrphanCount, error)
	// CaseFacts returns facts of a subject and of those linked to it with since <=
	// occurred_at <= until: up to limit, the newest by decision D5 first.
	CaseFacts(ctx context.Context, tenant, subject string, since, until engine.Instant, limit int) ([]engine.Fact, error)
	// RecentFacts returns up to limit facts with occurred_at >= since, the newest
	// by decision D5 first. A store may look only at the 10,000 that came last.
	RecentFacts(ctx context.Context, tenant string, since engine.Instant, limit int) ([]engine.Fact, error)
}

// Audit re-reads what was written, to see whether it was changed since. It
// returns rows as they are stored, also where they contradict each other.
type Audit interface {
	// ReadChain returns up to limit verdicts with seq > after, in order.
	ReadChain(ctx context.Context, tenant string, after int64, limit int) ([]ChainEntry, error)
	// ChainHead is where the tenant's chain ends.
	ChainHead(ctx context.Context, tenant string) (ChainHead, error)
	// ChainRuns returns up to limit runs with seq > after, in order, whether or not their verdicts are there.
	ChainRuns(ctx context.Context, tenant string, after int64, limit int) ([]ChainRun, error)
	// FactsByRef returns the facts with these raw_refs, in no particular order. What is unknown is left out.
	FactsByRef(ctx context.Context, tenant string, refs []string) ([]StoredFact, error)
	// CheckLatest looks at the next actions after a claim id and compares the
	// verdicts that lists and counts show with those of their newest run.
	CheckLatest(ctx context.Context, tenant string, after string, limit int) (LatestCheck, error)
	// Dropped says what retention has removed of a tenant so far.
	Dropped(ctx context.Context, tenant string) (Dropped, error)
}

// Retention removes what is old; see Expire for what stays. Only the role
// countersign_retention may do it on PostgreSQL, and every method takes that
// role until the end of the transaction.
type Retention interface {
	// ExpireFacts looks at the next facts of a tenant that are older than the
	// horizon and removes those that no action needs.
	ExpireFacts(ctx context.Context, tenant string, page ExpiryPage) (Expired, error)
	// ExpireReports looks at the next runs that are older than the horizon and
	// replaces the reports that no action needs by DroppedReport. Runs and
	// verdicts stay.
	ExpireReports(ctx context.Context, tenant string, page ExpiryPage) (Expired, error)
	// ExpireRejected removes rejected facts that came before the horizon for the last time.
	ExpireRejected(ctx context.Context, tenant string, page ExpiryPage) (Expired, error)
	// ExpireKeyEvents removes uses of keys, and refused ones, that happened before
	// the horizon for the last time. What was done to a key stays.
	ExpireKeyEvents(ctx context.Context, tenant string, page ExpiryPage) (Expired, error)
	// ExpireWebhooks removes deliveries that finished before the horizon, and those
	// that wait without having been due since: nobody sends them any more.
	ExpireWebhooks(ctx context.Context, tenant string, page ExpiryPage) (Expired, error)
	// ExpireParkings looks at the next events of parked work from before the horizon
	// and removes those whose action is parked no longer. What stands behind the
	// newest run stays, so that no position is given twice.
	ExpireParkings(ctx context.Context, tenant string, page ExpiryPage) (Expired, error)
	// ExpireTraceContexts looks at the next trace contexts that were recorded
	// before the horizon and removes those that can complete no action any more.
	ExpireTraceContexts(ctx context.Context, tenant string, page ExpiryPage) (Expired, error)
}

// Keys are the API keys (hashed at rest).
type Keys interface {
	CreateKey(ctx context.Context, key Key) error
	// KeyByHash looks across tenants; ErrNotFound when there is none. Revoked and expired keys are returned as they are.
	KeyByHash(ctx context.Context, hash [32]byte) (Key, error)
	ListKeys(ctx context.Context, tenant string) ([]Key, error)
	// KeyByID fails with ErrNotFound for an unknown id. Revoked and expired keys are returned as they are.
	KeyByID(ctx context.Context, tenant, id string) (Key, error)
	// AnyKey says whether a key of one of the roles is good at now: neither
	// revoked nor expired. It looks across tenants.
	AnyKey(ctx context.Context, roles []string, now engine.Instant) (bool, error)
	// RevokeKey fails with ErrNotFound for an unknown id.
	RevokeKey(ctx context.Context, tenant, id string, now engine.Instant) error
	// ExpireKey lets a key expire at a time, unless it expires earlier. It fails with ErrNotFound for an unknown id.
	ExpireKey(ctx context.Context, tenant, id string, at engine.Instant) error
	// TouchKeys notes the last use of keys.
	TouchKeys(ctx context.Context, uses []KeyUse) error
	// NoteKeyEvents adds to the audit log of keys, of several tenants at once,
	// bounded. What is the same on one day only counts.
	NoteKeyEvents(ctx context.Context, events []KeyEvent) error
	// KeyEvents pages through the audit log of a tenant's keys. It fails with ErrFilter for a cursor that no page gave.
	KeyEvents(ctx context.Context, tenant string, filter KeyEventFilter) (KeyEventPage, error)
}
