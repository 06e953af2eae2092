package sqlite

import (
	"errors"
	"testing"

	"github.com/countersign-otel/countersign/ledger"
)

func TestNetworkFileSystemIsRefused(t *testing.T) {
	t.Parallel()
	const nfs, ext4 = 0x6969, 0xef53
	err := checkFileSystem("/mnt/countersign.db", nfs)
	const want = "store unavailable: /mnt/countersign.db: lies on a network file system (NFS), where SQLite cannot share a file safely; choose a path on a local disk, or use a postgres:// store"
	if !errors.Is(err, ledger.ErrUnavailable) || err.Error() != want {
		t.Errorf("error:\n  got  %v\n  want %s", err, want)
	}
	if err := checkFileSystem("/mnt/countersign.db", ext4); err != nil {
		t.Errorf("a local file system: %v", err)
	}
	if kind, err := fileSystem(t.TempDir()); err != nil || kind == 0 {
		t.Errorf("the file system of a folder: %#x, %v", kind, err)
	}
}
