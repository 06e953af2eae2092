package floors

// A room is a folder with all that is below it, except what a longer path of another room claims.
type room struct {
	path string
	// mayImport lists the rooms it stands on. Itself is always allowed.
	mayImport []string
	// forbidden are packages of others, by import path or, ending in /, by prefix.
	forbidden []forbidden
	// clock says that the room may ask what time it is, and wait.
	clock bool
	// waits says that the room may wait, for the next try, but not ask what time it is.
	waits bool
	// tests says that the room is there for tests and tools: only test files, and rooms that say
	// the same, import it.
	tests bool
}

// forbidden are import paths that a room stays away from, and what to do in their stead.
type forbidden struct {
	paths   []string
	instead string
}

var (
	inputAndOutput = forbidden{
		paths: []string{
			"database/", "io/fs", "log", "log/", "net", "net/http", "net/http/", "net/rpc", "net/smtp",
			"os", "os/", "plugin", "syscall", "golang.org/x/sys/", "golang.org/x/net/",
		},
		instead: "the engine thinks and touches nothing: take values in, give values out",
	}
	telemetry = forbidden{
		paths:   []string{"go.opentelemetry.io/", "github.com/open-telemetry/", "go.uber.org/zap", "go.uber.org/zap/"},
		instead: "telemetry ends in internal/record, which turns attributes into domain values",
	}
	databases = forbidden{
		paths:   []string{"database/", "github.com/jackc/", "modernc.org/sqlite", "modernc.org/sqlite/", "github.com/pressly/goose/"},
		instead: "databases are known to the stores alone: call the interface of ledger, and test its errors with errors.Is",
	}
	servers = forbidden{
		paths:   []string{"net/http", "net/http/", "google.golang.org/grpc", "google.golang.org/grpc/", "github.com/danielgtaylor/huma/"},
		instead: "HTTP and gRPC are spoken by the sidecar and the collector components",
	}
	terminal = forbidden{
		paths:   []string{"flag", "github.com/spf13/"},
		instead: "flags and terminals are known to cmd alone: take a settings struct",
	}
)

var rooms = []room{
	// 1: the domain.
	{path: "engine", forbidden: []forbidden{inputAndOutput, telemetry, databases, servers, terminal}},
	{path: "contracts", mayImport: []string{"engine"}, forbidden: []forbidden{telemetry, databases, servers, terminal}},

	// 2: what is kept, and how telemetry says it.
	{path: "ledger", mayImport: []string{"engine"}, forbidden: []forbidden{telemetry, databases, servers, terminal}},
	store("ledger/postgres"),
	store("ledger/sqlite"),
	{
		path:      "ledger/open", // which store a URL means
		mayImport: []string{"engine", "ledger", "ledger/postgres", "ledger/sqlite"},
		forbidden: []forbidden{telemetry, servers, terminal},
	},
	{
		path:      "ledger/ledgertest",
		mayImport: []string{"contracts", "engine", "internal/agreement", "ledger"},
		// The suite bounds its waits by the clock.
		forbidden: []forbidden{telemetry, servers, terminal}, tests: true, clock: true,
	},
	{path: "internal/record", mayImport: []string{"engine"}, forbidden: []forbidden{databases, servers, terminal}},
	// What several collector components stand on: values of OTTL, and settings that they share.
	{path: "internal/ottlvalue", mayImport: []string{"engine"}, forbidden: []forbidden{databases, servers, terminal}},
	{path: "internal/settings", mayImport: []string{"engine"}, forbidden: []forbidden{databases, servers, terminal}},

	// 3: the two sides of the collector, and the sidecar. None knows another.
	component("receiver/verifiedactionsreceiver"),
	component("receiver/evidencereceiver"),
	component("processor/agentactionprocessor"),
	component("processor/evidenceprocessor"),
	component("exporter/ledgerexporter"),
	{
		path: "verifier", clock: true,
		mayImport: []string{"contracts", "engine", "internal/record", "ledger", "ledger/open"},
		forbidden: []forbidden{databases, terminal},
	},

	// What other programs import: HTTP and JSON, so that they compile no collector and no database.
	{path: "verifier/client", clock: true, forbidden: []forbidden{telemetry, databases, terminal}},

	// 4: the command line wires everything; nothing imports it.
	{
		path: "cmd", clock: true,
		mayImport: []string{
			"contracts", "engine", "internal/record", "ledger", "ledger/open", "verifier",
			"receiver/verifiedactionsreceiver", "receiver/evidencereceiver",
			"processor/agentactionprocessor", "processor/evidenceprocessor", "exporter/ledgerexporter",
		},
		forbidden: []forbidden{databases},
	},

	// Beside the floors: programs that drive the built binaries from outside, and help for tests.
	{path: "examples", clock: true, tests: true, mayImport: []string{"engine", "verifier/client"}},
	{path: "internal/agreement", tests: true, mayImport: []string{"contracts", "engine", "ledger"}},
	{path: "internal/speccases", tests: true, mayImport: []string{"engine"}},
	{path: "internal/mutation", tests: true},
	{path: "internal/pgserver", clock: true, tests: true},
	{path: "internal/floors", tests: true},
	{path: "internal/builder", tests: true},
	{path: "internal/e2e", clock: true, tests: true, mayImport: []string{"examples"}},
	{path: "internal/torture", clock: true, tests: true, mayImport: []string{"examples", "internal/pgserver"}},
}

// component is a room of floor 3 in the collector. It may open a store, and knows the interface of
// ledger beyond that.
func component(path string) room {
	return room{
		path: path, clock: true,
		mayImport: []string{"engine", "internal/record", "internal/ottlvalue", "internal/settings", "ledger", "ledger/open"},
		forbidden: []forbidden{databases, terminal},
	}
}

// store is a room of floor 2 that knows a database. It neither knows the other store nor which of
// them is in use.
func store(path string) room {
	return room{path: path, waits: true, mayImport: []string{"engine", "ledger"}, forbidden: []forbidden{telemetry, servers, terminal}}
}

// namesThatSayNothing are names under which anything could be put.
var namesThatSayNothing = map[string]bool{
	"util": true, "utils": true, "common": true, "helper": true, "helpers": true, "misc": true, "shared": true,
}
