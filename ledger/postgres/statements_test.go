package postgres

import (
	"maps"
	"slices"
	"strings"
	"testing"
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
	"NextDue":       "when to look again",
	"WaitingEvents": "what to deliver next",
	"VerdictByHash": "a hash names no tenant",
	"KeyByHash":     "a key is what names the tenant",
	"Tenants":       "the list of tenants itself",
	"Backlog":       "how much is still to do",
	"SourceLags":    "how far sources have got",

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
	"Listen":            "touches no table",
}

// Every table that a statement names is held to one tenant.
func TestStatementsNameTheirTenant(t *testing.T) {
	t.Parallel()
	for name, s := range allStatements {
		single := strings.Contains(s.Text, "tenant_id = $1") || strings.HasPrefix(s.Text, "SELECT countersign_") && strings.Contains(s.Text, "($1, ") || strings.Contains(s.Text, "(tenant_id, ") && strings.Contains(s.Text, "$1")
		if _, listed := acrossTenants[name]; listed == single {
			t.Errorf("%s: names one tenant: %t, listed as looking across tenants: %t", name, single, listed)
		}
	}
	for name := range acrossTenants {
		if _, ok := allStatements[name]; !ok {
			t.Errorf("%s is listed and does not exist", name)
		}
	}
}
