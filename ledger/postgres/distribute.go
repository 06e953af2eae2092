package postgres

import (
	"context"
	"errors"
	"fmt"
)

var (
	citusInstalled  = named("CitusInstalled")
	isDistributed   = named("IsDistributed")
	distributeTable = named("DistributeTable")
	referenceTable  = named("ReferenceTable")
)

// ErrNoCitus: the database has no Citus extension, so that its tables stay on one machine.
var ErrNoCitus = errors.New("the database has no citus extension")

// Tables by how they lie on a distributed PostgreSQL: by tenant_id, all of one
// tenant on one node, or whole on every node.
var (
	distributedTables = []string{
		"tenants", "claims", "trace_contexts", "facts", "subject_links", "sources", "due",
		"runs", "verdicts", "chain_heads", "outbox", "api_keys", "retentions", "parkings", "new_links", "rejected_facts",
		"webhook_cursors", "webhook_deliveries", "key_events",
	}
	referenceTables = []string{"contracts", "contract_reversals", "contract_sources"}
)

// Distribute spreads the tables of a migrated store over the nodes of a Citus
// cluster, by tenant. What is distributed already stays as it is, so that it may
// be called again. It needs the owner of the tables, on the coordinator, and
// fails with ErrNoCitus where there is no Citus.
//
// Citus itself is not part of this project's tests. What is tested is that no
// table is forgotten and that statements name one tenant; a distributed store
// is to be tried on a cluster of its own before it is relied upon.
func (s *Store) Distribute(ctx context.Context) error {
	if err := s.CheckSchema(ctx); err != nil {
		return err
	}
	var installed bool
	if err := s.pool.QueryRow(ctx, citusInstalled.Text).Scan(&installed); err != nil {
		return fail(citusInstalled.Name, err)
	}
	if !installed {
		return fmt.Errorf("%w: run CREATE EXTENSION citus on the coordinator and add its nodes", ErrNoCitus)
	}
	for _, group := range []struct {
		how    statement
		tables []string
	}{{referenceTable, referenceTables}, {distributeTable, distributedTables}} {
		for _, table := range group.tables {
			if err := s.distribute(ctx, group.how, table); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) distribute(ctx context.Context, how statement, table string) error {
	var done bool
	if err := s.pool.QueryRow(ctx, isDistributed.Text, table).Scan(&done); err != nil {
		return fail(isDistributed.Name+" "+table, err)
	}
	if done {
		return nil
	}
	_, err := s.pool.Exec(ctx, how.Text, table)
	return fail(how.Name+" "+table, err)
}
