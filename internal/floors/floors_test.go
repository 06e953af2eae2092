package floors

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestImportsRunDownAndNoClockIsReadBelowTheVerifier(t *testing.T) {
	t.Parallel()
	found, err := check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, violation := range found {
		t.Error(violation)
	}
}

// The check has to be able to fail: each row breaks one rule.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	const own = `"` + module + `/`
	for name, test := range map[string]struct {
		file, text string
		want       []string
	}{
		"a domain that opens files": {
			file: "engine/contract/load.go", text: "package contract\nimport \"os\"\n",
			want: []string{"engine/contract/load.go:2:8: engine imports os: the engine thinks and touches nothing: take values in, give values out"},
		},
		"a domain that knows databases, by prefix": {
			file: "engine/action.go", text: "package engine\nimport _ \"database/sql/driver\"\n",
			want: []string{"engine/action.go:2:8: engine imports database/sql/driver: the engine thinks and touches nothing: take values in, give values out"},
		},
		"a domain that parses addresses": {
			file: "engine/action.go", text: "package engine\nimport \"net/url\"\n",
		},
		"an import that runs up": {
			file: "ledger/sqlite/store.go", text: "package sqlite\nimport " + own + "verifier/settle\"\n",
			want: []string{"ledger/sqlite/store.go:2:8: ledger/sqlite imports " + module + "/verifier/settle: imports run down only, and never sideways; it may import engine, ledger"},
		},
		"an import that runs down": {
			file: "ledger/sqlite/store.go", text: "package sqlite\nimport " + own + "engine/primitive\"\n",
		},
		"a store that imports the other": {
			file: "ledger/sqlite/store.go", text: "package sqlite\nimport " + own + "ledger/postgres\"\n",
			want: []string{"ledger/sqlite/store.go:2:8: ledger/sqlite imports " + module + "/ledger/postgres: imports run down only, and never sideways; it may import engine, ledger"},
		},
		"a component that imports the sidecar": {
			file: "exporter/ledgerexporter/x.go", text: "package ledgerexporter\nimport " + own + "verifier\"\n",
			want: []string{"exporter/ledgerexporter/x.go:2:8: exporter/ledgerexporter imports " + module + "/verifier: imports run down only, and never sideways; it may import engine, internal/ottlvalue, internal/record, internal/settings, ledger, ledger/open"},
		},
		"a component that imports another": {
			file: "processor/evidenceprocessor/x.go", text: "package evidenceprocessor\nimport " + own + "processor/agentactionprocessor/dialect\"\n",
			want: []string{"processor/evidenceprocessor/x.go:2:8: processor/evidenceprocessor imports " + module + "/processor/agentactionprocessor/dialect: imports run down only, and never sideways; it may import engine, internal/ottlvalue, internal/record, internal/settings, ledger, ledger/open"},
		},
		"a driver outside the stores": {
			file: "verifier/settle/settle.go", text: "package settle\nimport \"github.com/jackc/pgx/v5/pgconn\"\n",
			want: []string{"verifier/settle/settle.go:2:8: verifier imports github.com/jackc/pgx/v5/pgconn: databases are known to the stores alone: call the interface of ledger, and test its errors with errors.Is"},
		},
		"a test that imports a command": {
			file: "verifier/api/api_test.go", text: "package api\nimport " + own + "cmd/countersign\"\n",
			want: []string{"verifier/api/api_test.go:2:8: verifier imports " + module + "/cmd/countersign: nothing imports a command"},
		},
		"a store that imports the help for its tests": {
			file: "ledger/postgres/store.go", text: "package postgres\nimport " + own + "internal/pgserver\"\n",
			want: []string{"ledger/postgres/store.go:2:8: ledger/postgres imports " + module + "/internal/pgserver: that is for tests and tools alone"},
		},
		"a store's test that imports it": {
			file: "ledger/postgres/store_test.go", text: "package postgres\nimport " + own + "internal/pgserver\"\n",
		},
		"a clock below the verifier, under another name": {
			file: "internal/record/x.go", text: "package record\nimport clock \"time\"\nvar start = clock.Now()\n",
			want: []string{"internal/record/x.go:3:13: time.Now: no clock is read below the verifier: take the time as an argument"},
		},
		"a domain that waits": {
			file: "engine/x.go", text: "package engine\nimport \"time\"\nvar later = time.After(1)\n",
			want: []string{"engine/x.go:3:13: time.After: no clock is read below the verifier: take the time as an argument"},
		},
		"a store that waits for its next try": {
			file: "ledger/postgres/x.go", text: "package postgres\nimport \"time\"\nvar later = time.NewTimer(1)\n",
		},
		"a store that asks what time it is": {
			file: "ledger/postgres/x.go", text: "package postgres\nimport \"time\"\nvar then = time.Since\n",
			want: []string{"ledger/postgres/x.go:3:12: time.Since: no clock is read below the verifier: take the time as an argument"},
		},
		"a clock hidden by a dot": {
			file: "ledger/x.go", text: "package ledger\nimport . \"time\"\nvar start = Now()\n",
			want: []string{"ledger/x.go:1:1: imports package time with a dot, which hides who reads the clock"},
		},
		"a clock in the verifier": {
			file: "verifier/settle/x.go", text: "package settle\nimport \"time\"\nvar start = time.Now()\n",
		},
		"the database's clock in a fixed statement": {
			file: "ledger/sqlite/facts.sql", text: "-- now() is not for us\nSELECT 1;\nINSERT INTO facts (at) VALUES (datetime('now'));\n",
			want: []string{"ledger/sqlite/facts.sql:3: 'now': a statement does not ask the database what time it is: pass the time as a parameter"},
		},
		"the database's clock in a composed statement": {
			file: "engine/primitive/x.go", text: "package primitive\nvar text = \"WHERE at < now()\"\n",
			want: []string{"engine/primitive/x.go:2:12: now(): a statement does not ask the database what time it is: pass the time as a parameter"},
		},
		"a folder without a room": {
			file: "pkg/x/x.go", text: "package x\n",
			want: []string{"pkg/x/x.go: belongs to no room: give its folder one in internal/floors/rooms_test.go"},
		},
		"a name that says nothing": {
			file: "verifier/util/x.go", text: "package util\n",
			want: []string{"verifier/util/x.go:1:9: a package called util says nothing: name it after what it holds"},
		},
		"another module, build output and test data": {
			file: "build/collector/main.go", text: "package util\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := check(fstest.MapFS{test.file: {Data: []byte(test.text)}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRoomsAreUniqueAndStandOnRooms(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range rooms {
		if seen[r.path] {
			t.Errorf("two rooms at %s", r.path)
		}
		seen[r.path] = true
	}
	for _, r := range rooms {
		for _, below := range r.mayImport {
			if !seen[below] {
				t.Errorf("%s may import %s, which is no room", r.path, below)
			}
		}
	}
}
