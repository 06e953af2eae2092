package statements

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func load(files map[string]string) (set Set, panicked string) {
	folder := fstest.MapFS{}
	for name, text := range files {
		folder["sql/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	defer func() {
		if value := recover(); value != nil {
			panicked = fmt.Sprint(value)
		}
	}()
	return MustLoad(folder, "sql"), ""
}

func TestMustLoad(t *testing.T) {
	t.Parallel()
	set, panicked := load(map[string]string{
		"a.sql":     "-- About the table.\n\n-- Why.\n-- name: One\nSELECT 1\n  -- a remark\nFROM x;\n\n-- About two.\n-- name: Two\nSELECT '; --'",
		"b.sql":     "-- name: Three\nSELECT 3;",
		"notes.txt": "no SQL",
	})
	if panicked != "" {
		t.Fatal(panicked)
	}
	want := Set{"One": {"One", "SELECT 1\nFROM x"}, "Two": {"Two", "SELECT '; --'"}, "Three": {"Three", "SELECT 3"}}
	if difference := cmp.Diff(want, set); difference != "" {
		t.Errorf("(-want +got):\n%s", difference)
	}
}

func TestMustLoadPanics(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no name":       {map[string]string{"a.sql": "SELECT 1;"}, "sql/a.sql: text before the first name"},
		"twice":         {map[string]string{"a.sql": "-- name: One\nSELECT 1;", "b.sql": "-- name: One\nSELECT 2;"}, `sql/b.sql: statement "One" stands twice or has no name or text`},
		"without text":  {map[string]string{"a.sql": "-- name: One\n-- nothing"}, `sql/a.sql: statement "One" stands twice or has no name or text`},
		"unknown named": {map[string]string{"a.sql": "-- name: One\nSELECT 1;"}, ""},
	} {
		set, panicked := load(c.files)
		if panicked != c.want {
			t.Errorf("%s: panic %q, want %q", name, panicked, c.want)
		}
		if c.want == "" {
			func() {
				defer func() {
					if got := fmt.Sprint(recover()); got != `no statement is named "Nine"` {
						t.Errorf("%s: panic %q", name, got)
					}
				}()
				set.Named("Nine")
			}()
		}
	}
}
