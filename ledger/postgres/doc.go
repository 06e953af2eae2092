// Package postgres is the ledger on PostgreSQL 15 and later, on pgx natively.
//
// Fixed statements stand in statements/, one file per table; the statement that
// evaluates a contract is composed by engine/sqleval. Every statement names one
// tenant, except the few that ledger.Ledger documents as looking across tenants,
// so that the tables can be distributed by tenant_id.
//
// Update runs at READ COMMITTED: what two transactions must not interleave is
// ordered by row locks, taken in the order of the keys. View and Rehearse run at
// REPEATABLE READ, in one snapshot.
//
// New facts are looked up first and the unknown ones copied in with COPY, which
// costs little more than COPY alone; a writer who was faster with the same
// raw_ref shows as a unique violation, and the transaction runs again.
//
// The session settings jit=off (compiling the long evaluation statements costs
// more than running them) and lock_timeout=10s are set on every connection where
// the URL does not set them itself. A pooler in between must keep sessions
// (PgBouncer: pool_mode=session), because Wake listens and Migrate locks.
//
// Roles: the second migration makes one group role per job. A program connects
// as a login role that is a member of those that it needs. A URL with
// options=-c%20role%3Dcountersign_verify narrows a wider login.
package postgres
