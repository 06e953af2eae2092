package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/countersign-otel/countersign/ledger"
)

// checkPath finds what SQLite would report as "unable to open database file"
// or, on a network file system, not at all: there, two hosts that write at once
// destroy the file.
func checkPath(path string) error {
	folder := filepath.Dir(path)
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s: the folder %s does not exist; make it, or choose another path", ledger.ErrUnavailable, path, folder)
	case err != nil:
		return fmt.Errorf("%w: %s: the folder cannot be read: %w", ledger.ErrUnavailable, path, err)
	case !info.IsDir():
		return fmt.Errorf("%w: %s: %s is no folder; choose another path", ledger.ErrUnavailable, path, folder)
	}
	if info, err = os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%w: %s: is a folder; name a file in it, like %s", ledger.ErrUnavailable, path, filepath.Join(path, "countersign.db"))
	}
	kind, err := fileSystem(folder)
	if err != nil {
		return fmt.Errorf("%w: %s: the file system cannot be told: %w", ledger.ErrUnavailable, path, err)
	}
	return checkFileSystem(path, kind)
}

func checkFileSystem(path string, kind int64) error {
	if name, ok := networkFileSystems[kind]; ok {
		return fmt.Errorf("%w: %s: lies on a network file system (%s), where SQLite cannot share a file safely; choose a path on a local disk, or use a postgres:// store", ledger.ErrUnavailable, path, name)
	}
	return nil
}

// networkFileSystems are those of statfs(2) on which WAL does not work between
// hosts. FUSE is not among them: it carries local file systems too.
var networkFileSystems = map[int64]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x5346414f: "AFS",
	0x00c36400: "Ceph",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x01021997: "9P",
}
