package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/sqlite"
)

// wantError checks the sentinel and the whole text, in which DIR stands for a folder.
func wantError(t *testing.T, err, sentinel error, dir, text string) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Fatalf("error %v, want %v", err, sentinel)
	}
	if got := strings.ReplaceAll(err.Error(), dir, "DIR"); got != text {
		t.Errorf("error:\n  got  %s\n  want %s", got, text)
	}
}

func TestOpenNamesPathAndRemedy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "letter.txt"), []byte(strings.Repeat("Dear reader, ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"NoFolder", "gone/countersign.db", "store unavailable: DIR/gone/countersign.db: the folder DIR/gone does not exist; make it, or choose another path"},
		{"FolderIsAFile", "letter.txt/countersign.db", "store unavailable: DIR/letter.txt/countersign.db: DIR/letter.txt is no folder; choose another path"},
		{"PathIsAFolder", ".", "store unavailable: DIR: is a folder; name a file in it, like DIR/countersign.db"},
		{"NoDatabase", "letter.txt", "store unavailable: DIR/letter.txt: open: the file is no SQLite database, or damaged; choose another path, or restore a copy (file is not a database (26))"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := sqlite.Open(t.Context(), filepath.Join(dir, c.path))
			wantError(t, err, ledger.ErrUnavailable, dir, c.want)
		})
	}
}

// hold takes the write lock of a file until the test ends or release is called.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	database, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	database.SetMaxOpenConns(1)
	if _, err := database.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(release)
	return release
}

func TestLockedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "countersign.db")
	impatient, err := sqlite.Open(t.Context(), path, sqlite.WithBusyTimeout(time.Millisecond, 2))
	migrated(t, impatient, err)
	patient, err := sqlite.Open(t.Context(), path)
	migrated(t, patient, err)
	release := hold(t, path)

	nothing := func(ledger.Tx) error { return nil }
	wantError(t, impatient.Update(t.Context(), nothing), ledger.ErrUnavailable, dir,
		"gave up after 3 attempts: store unavailable: DIR/countersign.db: begin: another program holds the file's lock; let it finish, or stop it (database is locked (5) (SQLITE_BUSY))")
	_, err = sqlite.Open(t.Context(), path, sqlite.WithBusyTimeout(time.Millisecond, 0))
	wantError(t, err, ledger.ErrUnavailable, dir,
		"store unavailable: DIR/countersign.db: open: another program holds the file's lock; let it finish, or stop it (database is locked (5) (SQLITE_BUSY))")
	if err := impatient.View(t.Context(), nothing); err != nil {
		t.Errorf("a reader had to wait: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() { waiting <- patient.Update(ctx, nothing) }()
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while waiting: %v, want context.Canceled", err)
	}
	go func() { waiting <- patient.Update(t.Context(), nothing) }()
	release()
	if err := <-waiting; err != nil {
		t.Errorf("the lock was released: %v", err)
	}
}

// TestReadOnly runs as somebody who may not write; root may write everything.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		folder os.FileMode
		want   string
	}{
		{"File", 0o777, "store is read-only: DIR/countersign.db: open: let this user write the file and its folder, or choose another path (attempt to write a readonly database (8))"},
		{"Folder", 0o555, "store is read-only: DIR/countersign.db: open: let this user write the file and its folder, or choose another path (attempt to write a readonly database (1544))"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "countersign.db")
			store, err := sqlite.Open(t.Context(), path)
			if err == nil {
				err = errors.Join(store.Migrate(t.Context()), store.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			binary := publicCopy(t)
			chmod(t, path, 0o444)
			chmod(t, filepath.Dir(dir), 0o755)
			chmod(t, dir, c.folder)
			t.Cleanup(func() { chmod(t, dir, 0o755) })
			cmd, _, errs := start(t, "open", path, func(cmd *exec.Cmd) {
				cmd.Path = binary
				if os.Geteuid() == 0 {
					cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
				}
			})
			if err := cmd.Wait(); err == nil {
				t.Fatal("a file that cannot be written was written")
			}
			wantError(t, errorText(strings.TrimSpace(errs.String())), ledger.ErrReadOnly, dir, c.want)
		})
	}
}

// errorText is an error of another process.
type errorText string

func (e errorText) Error() string { return string(e) }

func (e errorText) Is(target error) bool { return strings.HasPrefix(string(e), target.Error()+":") }

// publicCopy is the test binary where everybody may run it.
func publicCopy(t *testing.T) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	chmod(t, filepath.Dir(dir), 0o755)
	from, err := os.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	// A process that another test starts meanwhile would inherit the file open
	// for writing, and nobody could run it until that process is over.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	to, err := os.OpenFile(filepath.Join(dir, "program"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		t.Fatal(err)
	}
	return to.Name()
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Error(err)
	}
}

func TestMigrateFromSeveralAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "countersign.db")
	var group sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		group.Go(func() {
			store, err := sqlite.Open(t.Context(), path)
			if err == nil {
				err = errors.Join(store.Migrate(t.Context()), store.CheckSchema(t.Context()), store.Close())
			}
			errs[i] = err
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// raw runs a statement behind the store's back.
func raw(t *testing.T, path, statement string) error {
	t.Helper()
	database, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = database.ExecContext(t.Context(), statement)
	return errors.Join(err, database.Close())
}

func TestSchemaVersions(t *testing.T) {
	t.Parallel()
	migrations, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	latest := len(migrations)
	dir := t.TempDir()
	path := filepath.Join(dir, "countersign.db")
	store, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	wantError(t, store.CheckSchema(t.Context()), ledger.ErrNotMigrated, dir,
		fmt.Sprintf("the store is not migrated: DIR/countersign.db has schema version 0, this program needs %d; run countersign migrate", latest))
	if err := errors.Join(store.Migrate(t.Context()), store.Migrate(t.Context()), store.CheckSchema(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := raw(t, path, "INSERT INTO countersign_migrations (version_id, is_applied) VALUES (999, true)"); err != nil {
		t.Fatal(err)
	}
	newer := fmt.Sprintf("the store's schema is newer than this program: DIR/countersign.db has schema version 999, this program knows %d; use the program that migrated it, or a newer one", latest)
	wantError(t, store.CheckSchema(t.Context()), ledger.ErrNewerSchema, dir, newer)
	wantError(t, store.Migrate(t.Context()), ledger.ErrNewerSchema, dir, newer)
}

func TestAppendOnly(t *testing.T) {
	t.Parallel()
	path, store := sharedFile(t)
	if err := store.Update(t.Context(), func(tx ledger.Tx) error { return writeBatch(t.Context(), tx, 0) }); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"facts", "runs", "verdicts"} {
		for _, statement := range []string{"DELETE FROM " + table, "UPDATE " + table + " SET claim_id = 'x'"} {
			if table == "facts" {
				statement = strings.ReplaceAll(statement, "claim_id", "subject_id")
			}
			err := raw(t, path, statement)
			if want := "constraint failed: " + table + " are append-only (1811)"; err == nil || err.Error() != want {
				t.Errorf("%s: %v, want %s", statement, err, want)
			}
		}
	}
	checkBatches(t, store, 0)
}

// TestFullDisk fills a small file system of its own.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Fatalf("a small file system is needed: %v; run as root, or with: unshare -rm go test ./ledger/sqlite", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "countersign.db")
	store, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	batch := 0
	for err == nil {
		err = store.Update(t.Context(), func(tx ledger.Tx) error { return writeBatch(t.Context(), tx, batch) })
		if err == nil {
			batch++
		}
	}
	if !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "the disk is full; make room, nothing that was acknowledged is lost") {
		t.Errorf("error %v", err)
	}
	checkBatches(t, store, batch-1)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := store.Update(t.Context(), func(tx ledger.Tx) error { return writeBatch(t.Context(), tx, batch) }); err != nil {
		t.Errorf("after making room: %v", err)
	}
	checkBatches(t, store, batch)
}

// TestFileThatIsGone: what is written into a file that was removed or replaced ends with the
// process, so that nothing of it may be acknowledged.
func TestFileThatIsGone(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(path string) error{
		"removed":  os.Remove,
		"replaced": func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "countersign.db")
			store, err := sqlite.Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			if err := store.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			nothing := func(ledger.Tx) error { return nil }
			if err := errors.Join(store.Update(t.Context(), nothing), store.CheckSchema(t.Context())); err != nil {
				t.Fatal(err)
			}
			if err := harm(path); err != nil {
				t.Fatal(err)
			}
			const remedy = "the file was removed or replaced while this program had it open; restart the program, to use what is there now (it is not the file that was opened)"
			wantError(t, store.Update(t.Context(), nothing), ledger.ErrUnavailable, dir, "store unavailable: DIR/countersign.db: begin: "+remedy)
			wantError(t, store.CheckSchema(t.Context()), ledger.ErrUnavailable, dir, "store unavailable: DIR/countersign.db: check: "+remedy)
		})
	}
}

// TestCancelledWhileItBegins: what is cancelled in the moment in which it begins leaves no
// transaction open, which would hold the file's lock and refuse every later one.
func TestCancelledWhileItBegins(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "countersign.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	nothing := func(ledger.Tx) error { return nil }
	for i := range 20_000 {
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(time.Duration(i%100)*time.Microsecond, cancel)
		err := store.Update(ctx, nothing)
		timer.Stop()
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("round %d, cancelled: %v", i, err)
		}
		if err := store.Update(t.Context(), nothing); err != nil {
			t.Fatalf("round %d, after one that was cancelled: %v", i, err)
		}
	}
}
