package keys

import (
	"slices"

	"github.com/countersign-otel/countersign/ledger"
)

// Right is something that a role may do.
type Right string

// Rights. The key that records an action never supplies the facts that verify
// it: no key has both Record and Push, except the analyst, who is a person
// signed in (AC "Recording actions and pushing facts").
const (
	// Record an action.
	Record Right = "record actions"
	// Push facts, links and watermarks.
	Push Right = "push facts"
	// Verify asks for a verdict.
	Verify Right = "verify actions"
	// Read actions and their verdicts.
	Read Right = "read actions"
	// Inspect sources, contracts and reports.
	Inspect Right = "inspect sources, contracts and reports"
	// Replay webhooks.
	Replay Right = "replay webhooks"
)

var rights = map[string][]Right{
	ledger.RoleRecorder: {Record, Verify, Read},
	ledger.RoleEvidence: {Push, Verify},
	ledger.RoleAnalyst:  {Record, Push, Verify, Read, Inspect, Replay},
	ledger.RoleViewer:   {Read, Inspect},
}

// May says whether a role has a right.
func May(role string, right Right) bool { return slices.Contains(rights[role], right) }

// RolesWith lists the roles that have a right.
func RolesWith(right Right) []string {
	var roles []string
	for _, role := range Roles() {
		if May(role, right) {
			roles = append(roles, role)
		}
	}
	return roles
}

// Provides says whether a key may push facts of a source: an evidence key only
// of those that it is bound to.
func Provides(key ledger.Key, source string) bool {
	return key.Role != ledger.RoleEvidence || slices.Contains(key.Sources, source)
}
