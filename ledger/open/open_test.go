package open_test

import (
	"path/filepath"
	"testing"

	"github.com/countersign-otel/countersign/ledger/open"
)

func TestLedger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for url, dialect := range map[string]string{
		"memory:": "sqlite",
		"sqlite:" + filepath.Join(dir, "a file.db"):   "sqlite",
		"sqlite://" + filepath.Join(dir, "other.db"):  "sqlite",
		"postgres://reader:secret@localhost:1/nobody": "postgres", // connects with the first use
	} {
		store, err := open.Ledger(t.Context(), url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if got := store.Capabilities().Dialect; got != dialect {
			t.Errorf("%s opened a store of dialect %s, want %s", url, got, dialect)
		}
		if url == "memory:" {
			if err := store.CheckSchema(t.Context()); err != nil {
				t.Errorf("a store in memory is not ready: %v", err)
			}
		}
		if err := store.Close(); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestLedgerErrors(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                 "invalid store URL: it has no scheme; write sqlite:PATH, memory: or postgres://USER@HOST/DATABASE",
		"countersign.db":   "invalid store URL: it has no scheme; write sqlite:PATH, memory: or postgres://USER@HOST/DATABASE",
		"sqlite:":          "invalid store URL: sqlite: names no file; write sqlite:PATH, like sqlite:countersign.db",
		"memory:x":         "invalid store URL: memory: takes nothing after it",
		"mysql://u:p@host": `invalid store URL: scheme "mysql" is not known; write sqlite:PATH, memory: or postgres://USER@HOST/DATABASE`,
	} {
		_, err := open.Ledger(t.Context(), url)
		if err == nil || err.Error() != want {
			t.Errorf("%q:\n  got  %v\n  want %s", url, err, want)
		}
	}
}
