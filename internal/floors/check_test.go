package floors

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/countersign-otel/countersign"

// source is one parsed Go file.
type source struct {
	name string // slash-separated, from the root of the repository
	set  *token.FileSet
	file *ast.File
}

func (s source) dir() string  { return path.Dir(s.name) }
func (s source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }
func (s source) at(pos token.Pos) string {
	p := s.set.Position(pos)
	return fmt.Sprintf("%s:%d:%d", p.Filename, p.Line, p.Column)
}

// check returns every violation in the tree, one line each, in the order of the files.
func check(tree fs.FS) ([]string, error) {
	sources, err := parse(tree)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, s := range sources {
		found = append(found, checkSource(s)...)
	}
	inSQL, err := checkStatements(tree)
	return append(found, inSQL...), err
}

func checkSource(s source) []string {
	found := checkNames(s)
	r, known := roomOf(s.dir())
	if !known {
		return append(found, fmt.Sprintf("%s: belongs to no room: give its folder one in internal/floors/rooms_test.go", s.name))
	}
	found = append(found, checkImports(s, r)...)
	if s.isTest() || r.clock {
		return found
	}
	found = append(found, checkClock(s, r)...)
	return append(found, checkLiterals(s, r)...)
}

func parse(tree fs.FS) ([]source, error) {
	var sources []source
	err := walk(tree, ".go", func(name string, text []byte) error {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		sources = append(sources, source{name: name, set: set, file: file})
		return nil
	})
	return sources, err
}

// walk visits our files: not those of hidden folders, test data, build output, or other modules.
func walk(tree fs.FS, extension string, visit func(name string, text []byte) error) error {
	return fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(tree, name)
		}
		if path.Ext(name) != extension {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return visit(name, text)
	})
}

func enter(tree fs.FS, dir string) error {
	if dir == "." {
		return nil
	}
	base := path.Base(dir)
	if strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" || dir == "bin" || dir == "build" {
		return fs.SkipDir
	}
	if _, err := fs.Stat(tree, path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func checkNames(s source) []string {
	name := strings.TrimSuffix(s.file.Name.Name, "_test")
	if !namesThatSayNothing[name] && !namesThatSayNothing[path.Base(s.dir())] {
		return nil
	}
	return []string{fmt.Sprintf("%s: a package called %s says nothing: name it after what it holds", s.at(s.file.Name.Pos()), name)}
}

func checkImports(s source, r room) []string {
	var found []string
	for _, spec := range s.file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has accepted it
		}
		if problem := importProblem(s, r, imported); problem != "" {
			found = append(found, fmt.Sprintf("%s: %s imports %s: %s", s.at(spec.Pos()), r.path, imported, problem))
		}
	}
	return found
}

// importProblem says why the import is against the floors, or "". Tests may reach for more: a store
// is tested with a server, a component with a store. Nobody's test reaches for a command.
func importProblem(s source, r room, imported string) string {
	dir, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		if s.isTest() {
			return ""
		}
		return foreignProblem(r, imported)
	}
	target, known := roomOf(dir)
	switch {
	case !known || target.path == r.path:
		return "" // a folder without a room is reported by itself
	case target.path == "cmd":
		return "nothing imports a command"
	case s.isTest() || r.tests && (target.tests || slices.Contains(r.mayImport, target.path)):
		return ""
	case target.tests:
		return "that is for tests and tools alone"
	case !slices.Contains(r.mayImport, target.path):
		return "imports run down only, and never sideways; it may import " + list(r.mayImport)
	}
	return ""
}

func foreignProblem(r room, imported string) string {
	for _, f := range r.forbidden {
		for _, p := range f.paths {
			if imported == p || strings.HasSuffix(p, "/") && strings.HasPrefix(imported, p) {
				return f.instead
			}
		}
	}
	return ""
}

// roomOf returns the room with the longest path that holds the folder.
func roomOf(dir string) (room, bool) {
	var best room
	for _, r := range rooms {
		if (dir == r.path || strings.HasPrefix(dir, r.path+"/")) && len(r.path) > len(best.path) {
			best = r
		}
	}
	return best, best.path != ""
}

// What package time offers to ask what time it is, and to wait until it is later.
var (
	asksTheTime = map[string]bool{"Now": true, "Since": true, "Until": true}
	waitsForIt  = map[string]bool{"After": true, "AfterFunc": true, "NewTicker": true, "NewTimer": true, "Sleep": true, "Tick": true}
)

func checkClock(s source, r room) []string {
	name, imported := importName(s.file, "time")
	if !imported {
		return nil
	}
	if name == "." {
		return []string{s.at(s.file.Package) + ": imports package time with a dot, which hides who reads the clock"}
	}
	var found []string
	ast.Inspect(s.file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || !asksTheTime[selector.Sel.Name] && (r.waits || !waitsForIt[selector.Sel.Name]) {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && x.Name == name {
			found = append(found, fmt.Sprintf("%s: time.%s: no clock is read below the verifier: take the time as an argument", s.at(selector.Pos()), selector.Sel.Name))
		}
		return true
	})
	return found
}

// importName returns the name under which the file knows the package.
func importName(file *ast.File, imported string) (string, bool) {
	for _, spec := range file.Imports {
		if spec.Path.Value != strconv.Quote(imported) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name, true
		}
		return path.Base(imported), true
	}
	return "", false
}

// databaseClock finds the ways to ask the database what time it is, in PostgreSQL and in SQLite.
var databaseClock = regexp.MustCompile(`(?i)\bcurrent_(?:timestamp|date|time)\b|\blocaltime(?:stamp)?\b|\b(?:now|clock_timestamp|statement_timestamp|transaction_timestamp)\s*\(\s*\)|'now'`)

const databaseClockProblem = "a statement does not ask the database what time it is: pass the time as a parameter"

// checkLiterals looks for a database's clock in the statements that Go code holds.
func checkLiterals(s source, r room) []string {
	if !strings.HasPrefix(r.path, "ledger") && r.path != "engine" {
		return nil
	}
	var found []string
	ast.Inspect(s.file, func(node ast.Node) bool {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if clock := databaseClock.FindString(literal.Value); clock != "" {
			found = append(found, fmt.Sprintf("%s: %s: %s", s.at(literal.Pos()), clock, databaseClockProblem))
		}
		return true
	})
	return found
}

// checkStatements looks for a database's clock in .sql files. Comments may speak of it.
func checkStatements(tree fs.FS) ([]string, error) {
	var found []string
	err := walk(tree, ".sql", func(name string, text []byte) error {
		for i, line := range strings.Split(string(text), "\n") {
			statement, _, _ := strings.Cut(line, "--")
			if clock := databaseClock.FindString(statement); clock != "" {
				found = append(found, fmt.Sprintf("%s:%d: %s: %s", name, i+1, clock, databaseClockProblem))
			}
		}
		return nil
	})
	return found, err
}

func list(names []string) string {
	if len(names) == 0 {
		return "no other room"
	}
	return strings.Join(slices.SortedFunc(slices.Values(names), cmp.Compare[string]), ", ")
}
