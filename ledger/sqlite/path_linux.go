package sqlite

import "syscall"

// fileSystem is the magic number of the file system that holds a folder.
func fileSystem(folder string) (int64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return 0, err
	}
	return int64(uint32(stat.Type)), nil //nolint:gosec // the numbers have 32 bits, whatever the type of the field
}
