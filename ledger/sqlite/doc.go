// Package sqlite is the ledger in one SQLite file, shared by the collector and
// the sidecar of one host, or in memory.
//
// The file is in WAL mode: readers never wait, and of all processes one writes
// at a time. Each process has one connection that writes, in transactions that
// take the write lock at once, and a few that read. Processes that want to write
// take turns, in a queue on the file PATH-queue, so that none keeps another one
// out. A writer waits up to the busy timeout and then tries again a bounded
// number of times; after that it fails with ledger.ErrUnavailable.
//
// synchronous is FULL: a transaction that was acknowledged outlives a power
// cut. NORMAL would spare one fsync per transaction and may lose the last
// transactions then, which a record of who moved money must not. Batches make
// the difference small (see BenchmarkIngestFacts).
//
// Fixed statements stand in statements/, one file per table; the statement that
// evaluates a contract is composed by engine/sqleval. A batch is passed as one
// JSON array, which jsonb_each turns into rows.
//
// Known limits: one host only, because WAL shares memory between processes (a
// network file system is refused); reports over all facts (Orphans) read them
// all, because an index of their times would nearly double the work of writing
// one; whoever may write the file may also drop the triggers that keep facts,
// runs and verdicts append-only, which is what the chain is for.
package sqlite
