package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/diagnostic"
)

// contractFiles reads contracts from files and, recursively, from folders.
// In folders it takes .yaml and .yml and leaves out the contract tests
// (_test.yaml) and hidden folders. What cannot be read is an error of its own.
func contractFiles(paths []string) ([]contract.File, error) {
	var files []contract.File
	for _, path := range paths {
		found, err := contractFilesIn(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

func contractFilesIn(path string) ([]contract.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(err)
	}
	if !info.IsDir() && isTestFile(path) {
		return nil, usagef("%s holds tests, no contract; countersign contracts test runs them", path)
	}
	if !info.IsDir() {
		file, err := readContract(path)
		return []contract.File{file}, err
	}
	names, err := yamlFiles(path, isContractFile)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, usagef("%s holds no contract: no .yaml or .yml file apart from _test.yaml", path)
	}
	files := make([]contract.File, 0, len(names))
	for _, name := range names {
		file, err := readContract(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// yamlFiles walks a folder in the order of names.
func yamlFiles(dir string, wanted func(name string) bool) ([]string, error) {
	var names []string
	// DirFS: the folder may be a link, as where Kubernetes mounts one.
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		var unread *fs.PathError
		if errors.As(err, &unread) {
			err = unreadable(&fs.PathError{Op: unread.Op, Path: filepath.Join(dir, unread.Path), Err: unread.Err})
		}
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		if !entry.IsDir() && wanted(entry.Name()) {
			names = append(names, filepath.Join(dir, name))
		}
		return nil
	})
	return names, err
}

func isContractFile(name string) bool {
	return isYAML(name) && !isTestFile(name) && !strings.HasPrefix(name, ".")
}

func isTestFile(name string) bool {
	return strings.HasSuffix(name, "_test.yaml") || strings.HasSuffix(name, "_test.yml")
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// readContract reads one byte more than a contract may have, so that a huge
// file is refused by its size without being read.
func readContract(name string) (contract.File, error) {
	document, err := readBounded(name, contract.MaxDocument)
	return contract.File{Name: name, Document: document}, err
}

// readBounded reads at most most+1 bytes: enough to see that a file is too large.
func readBounded(name string, most int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, unreadable(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, unreadable(err)
	}
	return data, nil
}

// unreadable says of a path whether the caller named the wrong one (usage) or
// the machine refuses (could not).
func unreadable(err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("%s: no such file or folder", path.Path)
	}
	return fmt.Errorf("%s: cannot be read: %w", path.Path, path.Err)
}

// loadContracts reads and parses; every error of every file is printed.
func loadContracts(t *terminal, paths []string) ([]*contract.Contract, error) {
	files, err := contractFiles(paths)
	if err != nil {
		return nil, err
	}
	contracts, diagnostics := contract.ParseAll(files...)
	if len(diagnostics) == 0 {
		return contracts, nil
	}
	for _, d := range diagnostics {
		fmt.Fprintln(t.stderr, printable(d.Error()))
	}
	return nil, nof("%s; nothing was done", invalidText(diagnostics))
}

func invalidText(diagnostics []diagnostic.Diagnostic) string {
	files := map[string]bool{}
	for _, d := range diagnostics {
		files[d.File] = true
	}
	return fmt.Sprintf("%s in %s", plural(len(diagnostics), "error"), plural(len(files), "file"))
}

// plural is 1 error, 2 errors.
func plural(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
