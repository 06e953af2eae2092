package pgserver

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// binariesVariable names the folder of initdb and postgres, for machines where they are elsewhere.
const binariesVariable = "COUNTERSIGN_PG_BIN"

// minimumMajor is the oldest PostgreSQL the product supports, and the first with ICU as a
// database's own collation.
const minimumMajor = 15

// findBinaries returns a folder that holds initdb and postgres: the one the user names, else the
// newest of Debian's folders, else the one in PATH.
func findBinaries() (string, error) {
	if dir := os.Getenv(binariesVariable); dir != "" {
		if err := checkBinaries(dir); err != nil {
			return "", fmt.Errorf("%s=%s: %w", binariesVariable, dir, err)
		}
		return dir, nil
	}
	return chooseBinaries(candidates())
}

func chooseBinaries(dirs []string) (string, error) {
	problems := []error{fmt.Errorf("no PostgreSQL %d or newer on this machine, and these tests run against the real one: "+
		"install it (Debian and Ubuntu: apt-get install postgresql-15; macOS: brew install postgresql), "+
		"or set %s to the folder that holds initdb and postgres", minimumMajor, binariesVariable)}
	for _, dir := range dirs {
		err := checkBinaries(dir)
		if err == nil {
			return dir, nil
		}
		problems = append(problems, fmt.Errorf("%s: %w", dir, err))
	}
	return "", errors.Join(problems...)
}

func candidates() []string {
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return nil // the pattern is a constant
	}
	dirs = newestFirst(dirs)
	if path, err := exec.LookPath("initdb"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target // the folder of a link need not hold the rest
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	return dirs
}

// newestFirst orders Debian's folders by their major version, as a number: 15 before 9.6.
func newestFirst(dirs []string) []string {
	ordered := slices.Clone(dirs)
	slices.SortFunc(ordered, func(a, b string) int { return cmp.Compare(folderVersion(b), folderVersion(a)) })
	return ordered
}

func folderVersion(dir string) float64 {
	version, err := strconv.ParseFloat(filepath.Base(filepath.Dir(dir)), 64)
	if err != nil {
		return 0
	}
	return version
}

var majorVersion = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func checkBinaries(dir string) error {
	if _, err := exec.LookPath(filepath.Join(dir, "initdb")); err != nil {
		return err
	}
	output, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return err
	}
	found := majorVersion.FindStringSubmatch(string(output))
	if found == nil {
		return fmt.Errorf("postgres --version says %q", strings.TrimSpace(string(output)))
	}
	major, err := strconv.Atoi(found[1])
	if err != nil {
		return err
	}
	if major < minimumMajor {
		return fmt.Errorf("is PostgreSQL %d, older than %d", major, minimumMajor)
	}
	return nil
}

// unprivileged returns whom the server runs as: nil for ourselves, or, because PostgreSQL refuses
// to run as root, the operating system's user postgres.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and there is no user to run it as: "+
			"create one (useradd --system postgres) or run the tests as another user: %w", err)
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// makeFolder makes the folder of a server, short enough for the path of a Unix socket.
func makeFolder(credential *syscall.Credential) (string, error) {
	parent := os.TempDir()
	if len(parent) > maxSocketPath-40 {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "pg")
	if err != nil {
		return "", err
	}
	if credential == nil {
		return dir, nil
	}
	if err := os.Chown(dir, int(credential.Uid), int(credential.Gid)); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}
