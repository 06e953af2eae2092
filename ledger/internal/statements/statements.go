// Package statements reads the fixed SQL statements of a store out of its .sql
// files, one file per table, in which "-- name: X" starts the statement X.
package statements

import (
	"fmt"
	"io/fs"
	"strings"
)

// Statement is one fixed statement. Its name stands in its file, in errors and in golden plans.
type Statement struct{ Name, Text string }

// Set holds statements by name.
type Set map[string]Statement

// MustLoad reads all .sql files of a folder. Two statements of one name, a
// statement without text or text without a name are mistakes in the program,
// so they stop it when the package is initialised.
func MustLoad(files fs.FS, folder string) Set {
	set := Set{}
	names, err := fs.Glob(files, folder+"/*.sql")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err)
		}
		set.add(name, string(text))
	}
	return set
}

// Named returns a statement that must be there.
func (s Set) Named(name string) Statement {
	statement, ok := s[name]
	if !ok {
		panic(fmt.Sprintf("no statement is named %q", name))
	}
	return statement
}

func (s Set) add(file, text string) {
	before, rest, _ := strings.Cut(text, "-- name: ")
	if withoutComments(before) != "" {
		panic(file + ": text before the first name")
	}
	for _, part := range strings.Split(rest, "-- name: ") {
		name, body, _ := strings.Cut(part, "\n")
		name = strings.TrimSpace(name)
		statement := Statement{name, strings.TrimSuffix(withoutComments(body), ";")}
		if _, twice := s[name]; twice || name == "" || statement.Text == "" {
			panic(fmt.Sprintf("%s: statement %q stands twice or has no name or text", file, name))
		}
		s[name] = statement
	}
}

// withoutComments drops comment lines, which the database need not read.
func withoutComments(text string) string {
	var kept []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, "\n"))
}
