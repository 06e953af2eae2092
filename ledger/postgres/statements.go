package postgres

import (
	"embed"

	"github.com/countersign-otel/countersign/ledger/internal/statements"
)

//go:embed statements/*.sql
var statementFiles embed.FS

// statement is one fixed statement; its name stands in its file and in errors.
type statement = statements.Statement

var allStatements = statements.MustLoad(statementFiles, "statements")

// named returns a statement of the files. A name that is not there is a mistake
// in this package, so it stops the program when the package is initialised.
func named(name string) statement { return allStatements.Named(name) }
