package sqlite

import (
	"regexp"
	"strings"
	"testing"
)

// acrossTenants are the statements that look across tenants, or at what belongs to none, and why.
var acrossTenants = map[string]string{
	"DueTenants":    "which tenants have work",
	"LeaseOutbox":   "what to deliver next",
	"RemoveEvents":  "what was delivered",
	"RetryEvents":   "what was not",
	"RunsOfEvents":  "what is delivered",
	"VerdictByHash": "a hash names no tenant",
	"KeyByHash":     "a key is what names the tenant",
	"TouchKeys":     "keys of several tenants were used",
	"NoteKeyEvents": "keys of several tenants were used",
	"Tenants":       "the list of tenants itself",
	"LastFact":      "the last row of the file, whose ever it is",
	"Backlog":       "how much is still to do",
	"SourceLags":    "how far sources have got",
	"CountOrphans":  "how much nobody explains",
	"AnyKey":        "whether anybody could come in",

	"DeclareDropping": "opens the triggers to this transaction",
	"EndDropping":     "closes them again",

	"ActionsOfEvents":      "what is delivered",
	"ContractHashes":       "contracts belong to all tenants",
	"PublishContracts":     "contracts belong to all tenants",
	"PublishReversals":     "contracts belong to all tenants",
	"PublishSources":       "contracts belong to all tenants",
	"ContractVersions":     "contracts belong to all tenants",
	"ListContracts":        "contracts belong to all tenants",
	"CountMigrationTables": "the schema's version",
	"NewestApplied":        "the schema's version",
}

// ownedTables matches a table that belongs to tenants where a statement reads or changes it, with its alias.
var ownedTables = regexp.MustCompile(`(?:FROM|JOIN|UPDATE) (claims|facts|subject_links|sources|due|runs|verdicts|chain_heads|outbox|api_keys|retentions|parkings|webhook_cursors|webhook_deliveries|rejected_facts|key_events|trace_contexts|stored_actions|stored_runs|compensated_claims)\b(?: (?:AS )?([a-z])\b)?`)

// Every table that a statement names is held to one tenant: by its alias, or by
// its own name where the statement joins it to a batch.
func TestStatementsNameTheirTenant(t *testing.T) {
	t.Parallel()
	for name, s := range fixed {
		if _, listed := acrossTenants[name]; listed {
			continue
		}
		// Where the table ends is no tenant's secret.
		text := strings.ReplaceAll(s.Text, "max(rowid), 0) FROM facts", "")
		for _, use := range ownedTables.FindAllStringSubmatch(text, -1) {
			table, alias := use[1], use[2]
			condition := regexp.MustCompile(`(^|[^.\w])tenant_id = \?1`)
			if alias != "" || strings.Contains(s.Text, table+".tenant_id") {
				if alias == "" {
					alias = table
				}
				condition = regexp.MustCompile(`\b` + alias + `\.(tenant_id = (\?1|\w\.tenant_id)|rowid > \?2)`)
			}
			if !condition.MatchString(s.Text) {
				t.Errorf("%s: nothing holds %q to one tenant", name, use[0])
			}
		}
		if !strings.Contains(s.Text, "?1") {
			t.Errorf("%s: takes no tenant", name)
		}
	}
	for name := range acrossTenants {
		if _, ok := fixed[name]; !ok {
			t.Errorf("%s is listed and does not exist", name)
		}
	}
}
