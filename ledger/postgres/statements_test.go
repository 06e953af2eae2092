package postgres

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine/primitive"
	"github.com/countersign-otel/countersign/engine/sqleval"
)

// onlyCitus are statements that name what only Citus has.
var onlyCitus = map[string]bool{"IsDistributed": true, "DistributeTable": true, "ReferenceTable": true}

func TestEveryStatementIsUnderstoodByTheServer(t *testing.T) {
	t.Parallel()
	conn := connect(t, migratedURL(t))
	for _, name := range slices.Sorted(maps.Keys(allStatements)) {
		if onlyCitus[name] {
			continue
		}
		if _, err := conn.Prepare(t.Context(), name, allStatements[name].Text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// acrossTenants are the statements that look across tenants, or at what belongs
// to none, and why. On a distributed PostgreSQL they fan out to all nodes or read
// a reference table; every other statement goes to the one node of its tenant.
var acrossTenants = map[string]string{
	"DueTenants":    "which tenants have work",
	"WaitingEvents": "what to deliver next",
	"VerdictByHash": "a hash names no tenant",
	"KeyByHash":     "a key is what names the tenant",
	"Tenants":       "the list of tenants itself",
	"Backlog":       "how much is still to do",
	"SourceLags":    "how far sources have got",
	"CountOrphans":  "how much nobody explains",
	"AnyKey":        "whether anybody could come in",

	"ContractHashes":   "contracts belong to all tenants",
	"PublishContracts": "contracts belong to all tenants",
	"PublishReversals": "contracts belong to all tenants",
	"PublishSources":   "contracts belong to all tenants",
	"ContractVersions": "contracts belong to all tenants",
	"ListContracts":    "contracts belong to all tenants",
	"ReversalTypes":    "contracts belong to all tenants",

	"CitusInstalled":  "asks for the extension",
	"IsDistributed":   "asks for a table",
	"DistributeTable": "moves a table",
	"ReferenceTable":  "moves a table",

	"AnnounceEvidence":  "touches no table",
	"EvidenceUnderWay":  "looks at locks",
	"LockCompensations": "touches no table",
	"TakeRetentionRole": "touches no table",
	"NewestApplied":     "the schema's version",
	"Notify":            "touches no table",
	"CommitSoon":        "touches no table",
	"Listen":            "touches no table",
}

// Every distributed table that a statement names is held to the tenant in $1, by
// its alias in each query; across tenants, to the tenant of the first one.
func TestStatementsNameTheirTenant(t *testing.T) {
	t.Parallel()
	for name, s := range allStatements {
		_, across := acrossTenants[name]
		for _, refusal := range refusals(s.Text, across, "$1") {
			t.Errorf("%s: %s", name, refusal)
		}
		if across && len(refusals(s.Text, false, "$1")) == 0 && namesDistributed(s.Text) {
			t.Errorf("%s is listed as looking across tenants, and does not", name)
		}
	}
	for name := range acrossTenants {
		if _, ok := allStatements[name]; !ok {
			t.Errorf("%s is listed and does not exist", name)
		}
	}
}

func namesDistributed(text string) bool {
	return slices.ContainsFunc(distributedTables, func(table string) bool {
		return regexp.MustCompile(`\b` + table + `\b`).MatchString(text)
	})
}

// The evaluator's statement is made from the contract: each contract of the
// library, with totals over the actions of an agent and of a subject.
func TestEvaluationsNameTheirTenant(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"refund_workflow", "payout", "close_ticket"} {
		c := library(t, name)
		for _, refusal := range refusals(sqleval.Compile(c, primitive.Postgres).Text, false, "$1") {
			t.Errorf("%s: %s", name, refusal)
		}
	}
}

// Functions of the schema have the tenant as a parameter of that name.
func TestFunctionsNameTheirTenant(t *testing.T) {
	t.Parallel()
	conn := connect(t, migratedURL(t))
	rows, err := conn.Query(t.Context(), `SELECT p.proname, p.prosrc FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
		WHERE p.pronamespace = current_schema()::regnamespace AND l.lanname = 'sql'`)
	if err != nil {
		t.Fatal(err)
	}
	type function struct{ Name, Body string }
	functions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[function])
	if err != nil || len(functions) == 0 {
		t.Fatal(functions, err)
	}
	for _, f := range functions {
		for _, refusal := range refusals(f.Body, false, "tenant") {
			t.Errorf("%s: %s", f.Name, refusal)
		}
	}
}

func TestStatementsThatMissTheirTenant(t *testing.T) {
	t.Parallel()
	for statement, across := range map[string]bool{
		"SELECT FROM due d JOIN claims c ON c.claim_id = d.claim_id WHERE d.tenant_id = $1":                                         false,
		"SELECT FROM due d, claims c WHERE d.tenant_id = $1 AND c.claim_id = d.claim_id":                                            false,
		"SELECT FROM claims c WHERE c.tenant_id = $1 OR c.claim_id = $2":                                                            false,
		"SELECT FROM claims c WHERE (c.tenant_id = $1 OR true)":                                                                     false,
		"SELECT FROM claims c WHERE c.tenant_id = $2":                                                                               false,
		"SELECT FROM claims c LEFT JOIN due d ON c.tenant_id = $1 AND d.tenant_id = $1":                                             false,
		"SELECT FROM claims c WHERE c.tenant_id = $1 AND EXISTS (SELECT FROM due d WHERE d.claim_id = c.claim_id)":                  false,
		"WITH x AS (SELECT c.claim_id FROM claims c WHERE c.tenant_id = $1) SELECT FROM x JOIN claims c ON c.claim_id = x.claim_id": false,
		"SELECT FROM facts f WHERE f.tenant_id = $1 UNION ALL SELECT FROM facts f":                                                  false,
		"SELECT FROM due d JOIN claims c ON c.tenant_id = d.tenant_id":                                                              false,
		"UPDATE due d SET made = true FROM claims c WHERE c.tenant_id = $1":                                                         false,
		"UPDATE due SET made = true WHERE claim_id = $1":                                                                            false,
		"DELETE FROM due d USING claims c WHERE d.tenant_id = $1 AND c.claim_id = d.claim_id":                                       false,
		"INSERT INTO due (tenant_id, claim_id) SELECT $2, $1":                                                                       false,
		"INSERT INTO due (claim_id, tenant_id) VALUES ($1, $2)":                                                                     false,
		"INSERT INTO due (tenant_id, claim_id) SELECT $1, c.claim_id FROM claims c":                                                 false,
		"SELECT FROM verdicts v JOIN runs r ON r.seq = v.seq":                                                                       true,
		"SELECT FROM tenants t CROSS JOIN LATERAL (SELECT FROM due d WHERE d.due_at <= $1) x":                                       true,
		"SELECT FROM due d WHERE d.due_at <= $1 FOR UPDATE SKIP LOCKED":                                                             true,
		"SELECT 'c.tenant_id = $1' FROM claims c -- WHERE c.tenant_id = $1":                                                         false,
	} {
		if len(refusals(statement, across, "$1")) == 0 {
			t.Errorf("nothing was found wrong with: %s", statement)
		}
	}
}
