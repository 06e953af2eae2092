package postgres

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// This file reads statements just far enough to tell whether every distributed
// table in them is held to one tenant. What it does not understand it reports:
// the remedy is to write the condition plainly, as alias.tenant_id = $1 in a
// WHERE or ON without OR.

// use is a distributed table that a query names.
type use struct {
	table, alias string
	held         bool
}

// query is one SELECT, or one UPDATE, INSERT or DELETE.
type query struct {
	parent *query
	uses   []*use
	ties   [][2]string // what must be equal in every row
}

// node is a token, or what stands between parentheses.
type node struct {
	token string
	group []node
}

var tokens = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'|\$?[A-Za-z_0-9][\w.]*|[^\s\w]`)

// parseNodes reads up to the parenthesis that closes.
func parseNodes(words []string) (nodes []node, rest []string) {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case word == ")":
			return nodes, words
		case word == "(":
			var group []node
			group, words = parseNodes(words)
			nodes = append(nodes, node{"(", group})
		case !strings.HasPrefix(word, "--"):
			nodes = append(nodes, node{token: word})
		}
	}
	return nodes, nil
}

// untied are the distributed tables of a statement that nothing holds to the
// tenant in one of the parameters. A statement that looks across tenants may
// leave the first table free; the others have to have its tenant.
func untied(statement string, across bool, parameters ...string) []string {
	nodes, _ := parseNodes(tokens.FindAllString(statement, -1))
	var all []*query
	collectQueries(nodes, nil, &all)
	for _, q := range all {
		if across && len(q.uses) > 0 && q.outer() == nil {
			q.uses[0].held = true
		}
	}
	for changed := true; changed; {
		changed = false
		for _, q := range all {
			for _, tie := range q.ties {
				changed = q.tie(tie[0], tie[1], parameters) || q.tie(tie[1], tie[0], parameters) || changed
			}
		}
	}
	var found []string
	for _, q := range all {
		for _, u := range q.uses {
			if !u.held {
				found = append(found, u.table+" "+u.alias)
			}
		}
	}
	return found
}

// outer is the nearest query around this one that names a distributed table.
func (q *query) outer() *query {
	for p := q.parent; p != nil; p = p.parent {
		if len(p.uses) > 0 {
			return p
		}
	}
	return nil
}

// tie holds the table of left, where right is held.
func (q *query) tie(left, right string, parameters []string) bool {
	mine := q.find(left)
	if mine == nil || mine.held || !slices.Contains(q.uses, mine) {
		return false
	}
	if other := q.find(right); slices.Contains(parameters, right) || other != nil && other != mine && other.held {
		mine.held = true
	}
	return mine.held
}

// find is the table that a name like d.tenant_id is of.
func (q *query) find(name string) *use {
	if name == "tenant_id" && len(q.uses) == 1 {
		return q.uses[0]
	}
	alias, ok := strings.CutSuffix(name, ".tenant_id")
	if !ok {
		return nil
	}
	for ; q != nil; q = q.parent {
		for _, u := range q.uses {
			if u.alias == alias {
				return u
			}
		}
	}
	return nil
}

// clauseEnds are the words after which a condition is over.
var clauseEnds = map[string]bool{
	"WHERE": true, "ON": true, "JOIN": true, "LEFT": true, "CROSS": true, "GROUP": true, "ORDER": true, "LIMIT": true, "OFFSET": true,
	"RETURNING": true, "FOR": true, "FROM": true, "SELECT": true, "SET": true, "UPDATE": true, "DELETE": true, "INSERT": true, "USING": true,
	"HAVING": true, ",": true, ";": true,
}

// collectQueries reads one level between parentheses, and those in it.
func collectQueries(nodes []node, parent *query, all *[]*query) {
	q := &query{parent: parent}
	*all = append(*all, q)
	listing := false // between FROM and the next clause, where a comma brings a table
	for i := 0; i < len(nodes); i++ {
		switch word := strings.ToUpper(nodes[i].token); word {
		case "(":
			collectQueries(nodes[i].group, q, all)
		case "UNION", "INTERSECT", "EXCEPT":
			q, listing = &query{parent: parent}, false
			*all = append(*all, q)
		case "FROM", "JOIN", "UPDATE", "USING", ",":
			if word != "," || listing {
				q.name(nodes[i+1:])
			}
			listing = listing || word == "FROM" || word == "USING"
		case "INTO":
			q.insert(nodes[i+1:])
		case "WHERE", "ON":
			listing = false
			joined := ""
			if word == "ON" && outerJoined(nodes[:i]) && len(q.uses) > 0 {
				joined = q.uses[len(q.uses)-1].alias
			}
			q.conditions(nodes[i+1:], joined)
		case "SET", "GROUP", "ORDER", "RETURNING", "SELECT", "LIMIT":
			listing = false
		}
	}
}

// outerJoined: the last join is an outer one, whose condition leaves the rows of its left side.
func outerJoined(before []node) bool {
	for i := len(before) - 1; i > 0; i-- {
		if before[i].token == "JOIN" {
			return slices.Contains([]string{"LEFT", "RIGHT", "FULL", "OUTER"}, before[i-1].token)
		}
	}
	return false
}

// name adds the table that follows, if it is distributed.
func (q *query) name(next []node) *use {
	for len(next) > 0 && (next[0].token == "ONLY" || next[0].token == "LATERAL") {
		next = next[1:]
	}
	if len(next) == 0 || !slices.Contains(distributedTables, next[0].token) {
		return nil
	}
	u := &use{table: next[0].token, alias: next[0].token}
	rest := next[1:]
	if len(rest) > 0 && rest[0].token == "AS" {
		rest = rest[1:]
	}
	if len(rest) > 0 && regexp.MustCompile(`^[a-z_]\w*$`).MatchString(rest[0].token) {
		u.alias = rest[0].token
	}
	q.uses = append(q.uses, u)
	return u
}

// insert adds the table that is written, whose tenant is the first value.
func (q *query) insert(next []node) {
	u := q.name(next)
	if u == nil {
		return
	}
	columns := slices.IndexFunc(next, func(n node) bool { return n.token == "(" })
	if columns < 0 || len(next[columns].group) == 0 || next[columns].group[0].token != "tenant_id" {
		return
	}
	for i, n := range next[columns+1:] {
		following := next[columns+1+i+1:]
		switch {
		case len(following) == 0:
		case n.token == "SELECT":
			q.ties = append(q.ties, [2]string{u.alias + ".tenant_id", following[0].token})
			return
		case n.token == "VALUES" && len(following[0].group) > 0:
			q.ties = append(q.ties, [2]string{u.alias + ".tenant_id", following[0].group[0].token})
			return
		}
	}
}

// conditions adds the equalities of a clause, unless it is a choice.
func (q *query) conditions(next []node, joined string) {
	var ties [][2]string
	var part []string
	flush := func() {
		if len(part) == 3 && part[1] == "=" && (joined == "" || strings.HasPrefix(part[0], joined+".") || strings.HasPrefix(part[2], joined+".")) {
			ties = append(ties, [2]string{part[0], part[2]})
		}
		part = nil
	}
	for _, n := range next {
		if n.token == "OR" {
			return
		}
		if clauseEnds[n.token] || n.token == "UNION" || n.token == "INTERSECT" || n.token == "EXCEPT" {
			break
		}
		if n.token == "AND" {
			flush()
			continue
		}
		part = append(part, n.token)
	}
	flush()
	q.ties = append(q.ties, ties...)
}

var rowLock = regexp.MustCompile(`\bFOR (NO KEY UPDATE|UPDATE|SHARE|KEY SHARE)\b`)

// refusals are what a distributed PostgreSQL refuses of a statement, or answers wrongly.
func refusals(statement string, across bool, parameters ...string) []string {
	var found []string
	for _, table := range untied(statement, across, parameters...) {
		found = append(found, fmt.Sprintf("nothing holds %q to one tenant", table))
	}
	if across && rowLock.MatchString(statement) {
		found = append(found, "locks rows of several tenants")
	}
	return found
}
