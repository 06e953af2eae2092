// Package agreement makes random contracts, facts and actions, and demands
// that PostgreSQL, SQLite and Go judge them alike, down to the hash
// (decisions D23 and D27).
package agreement
