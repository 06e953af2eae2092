package pgserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// victimVariable tells this binary, run as a child of its own test, to start a server, print where
// it is and wait to be killed.
const victimVariable = "PGSERVER_TEST_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(victimVariable) != "" {
		beVictim()
	}
	code := Run(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func TestDatabasesAreFreshAndApart(t *testing.T) {
	t.Parallel()
	server := Shared(t)
	first, second := connect(t, server.Database(t)), connect(t, server.Database(t))

	execute(t, first, "CREATE TABLE facts (id int)")
	if got := query[bool](t, second, "SELECT to_regclass('facts') IS NULL"); !got {
		t.Error("a table of one test's database shows in another's")
	}
}

func TestTemplateIsPreparedOnce(t *testing.T) {
	t.Parallel()
	server := Shared(t)
	prepared := 0
	prepare := func(ctx context.Context, url string) error {
		prepared++
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "CREATE TABLE facts (id int); INSERT INTO facts VALUES (7)")
		return errors.Join(err, conn.Close(ctx))
	}

	first := connect(t, server.DatabaseFrom(t, "facts", prepare))
	execute(t, first, "DELETE FROM facts")
	second := connect(t, server.DatabaseFrom(t, "facts", prepare))

	if got := query[int](t, second, "SELECT id FROM facts"); got != 7 {
		t.Errorf("the second copy holds %d, want what the template holds: 7", got)
	}
	if prepared != 1 {
		t.Errorf("the template was prepared %d times", prepared)
	}
}

// A store that means to compare bytes and forgets COLLATE "C" must not pass by luck.
func TestDefaultCollationIsLinguistic(t *testing.T) {
	t.Parallel()
	conn := connect(t, Shared(t).Database(t))
	if !query[bool](t, conn, `SELECT 'a' < 'B'`) {
		t.Error("the default collation orders by bytes")
	}
	if query[bool](t, conn, `SELECT 'a' COLLATE "C" < 'B' COLLATE "C"`) {
		t.Error(`COLLATE "C" does not order by bytes`)
	}
}

func TestRestartBreaksConnectionsAndKeepsData(t *testing.T) {
	t.Parallel()
	server := Start(t)
	url := server.Database(t)
	conn := connect(t, url)
	execute(t, conn, "CREATE TABLE facts AS SELECT 7 AS id")

	server.Restart(t)

	if _, err := conn.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("the connection survived a crash of the server")
	}
	if got := query[int](t, connect(t, url), "SELECT id FROM facts"); got != 7 {
		t.Errorf("after the restart the table holds %d, want 7", got)
	}
	if !strings.Contains(server.Log(), "automatic recovery in progress") {
		t.Errorf("the server did not recover from a crash:\n%s", server.Log())
	}
}

func TestStoppedServerRefusesAndResumes(t *testing.T) {
	t.Parallel()
	server := Start(t, WithFsync())
	url := server.Database(t)

	server.Stop(t)
	if _, err := pgx.Connect(t.Context(), url); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connect to a stopped server: %v, want connection refused", err)
	}
	server.Stop(t) // does nothing

	server.Resume(t)
	if got := query[string](t, connect(t, url), "SHOW fsync"); got != "on" {
		t.Errorf("fsync is %q, want on", got)
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	server := Shared(t)
	config, err := pgx.ParseConfig(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.Host = server.SocketDir()
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestKilledTestBinaryLeavesNothing(t *testing.T) {
	t.Parallel()
	victim := exec.Command(os.Args[0], "-test.run=^$")
	victim.Env = append(os.Environ(), victimVariable+"=1")
	victim.Stderr = os.Stderr
	output, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	if !lines.Scan() {
		t.Fatalf("the child said nothing: %v", lines.Err())
	}
	dir, url, _ := strings.Cut(lines.Text(), " ")

	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // "signal: killed", as we asked

	eventually(t, "the server's folder is gone", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, fs.ErrNotExist)
	})
	if _, err := pgx.Connect(t.Context(), url); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the server of a killed test binary still answers: %v", err)
	}
}

func beVictim() {
	server, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if _, err := os.Stdout.WriteString(server.dir + " " + server.URL() + "\n"); err != nil {
		os.Exit(1)
	}
	select {}
}

func TestMissingPostgreSQLSaysWhatToInstall(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(binariesVariable, dir)
	_, err := findBinaries()
	want := binariesVariable + "=" + dir + `: exec: "` + filepath.Join(dir, "initdb") + `": stat ` + filepath.Join(dir, "initdb") + ": no such file or directory"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}

	_, err = chooseBinaries([]string{dir})
	want = "no PostgreSQL 15 or newer on this machine, and these tests run against the real one: " +
		"install it (Debian and Ubuntu: apt-get install postgresql-15; macOS: brew install postgresql), " +
		"or set COUNTERSIGN_PG_BIN to the folder that holds initdb and postgres\n" +
		dir + `: exec: "` + filepath.Join(dir, "initdb") + `": stat ` + filepath.Join(dir, "initdb") + ": no such file or directory"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

// Not parallel: a fork elsewhere while this file is open for writing makes it "text file busy".
func TestOldPostgreSQLIsRefused(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"initdb":   "#!/bin/sh\n",
		"postgres": "#!/bin/sh\necho 'postgres (PostgreSQL) 14.9'\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	err := checkBinaries(dir)
	if want := "is PostgreSQL 14, older than 15"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestNewestVersionFirst(t *testing.T) {
	t.Parallel()
	got := newestFirst([]string{"/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/9.6/bin", "/usr/lib/postgresql/17/bin"})
	want := []string{"/usr/lib/postgresql/17/bin", "/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/9.6/bin"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // may be broken by the test
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func query[T any](t *testing.T, conn *pgx.Conn, sql string) T {
	t.Helper()
	var got T
	if err := conn.QueryRow(t.Context(), sql).Scan(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("after 20 s it is still not so that %s", what)
		case <-ticker.C:
		}
	}
}
