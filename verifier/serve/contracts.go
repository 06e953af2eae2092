package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
)

// publish makes the contracts of files and folders known to the store.
func publish(ctx context.Context, store ledger.Ledger, paths []string, now engine.Instant) (int, error) {
	files, err := contractFiles(paths)
	if err != nil || len(files) == 0 {
		return 0, err
	}
	parsed, diagnostics := contract.ParseAll(files...)
	if len(diagnostics) > 0 {
		all := make([]error, len(diagnostics))
		for i := range diagnostics {
			all[i] = diagnostics[i]
		}
		return 0, fmt.Errorf("the contracts cannot be published:\n%w", errors.Join(all...))
	}
	err = store.Update(ctx, func(tx ledger.Tx) error { return tx.PublishContracts(ctx, parsed, now) })
	if err != nil {
		return 0, fmt.Errorf("the contracts cannot be published: %w", err)
	}
	return len(parsed), nil
}

func contractFiles(paths []string) ([]contract.File, error) {
	var files []contract.File
	for _, path := range paths {
		names, err := contractNames(path)
		if err != nil {
			return nil, fmt.Errorf("contracts: %w", err)
		}
		for _, name := range names {
			document, err := readContract(name)
			if err != nil {
				return nil, fmt.Errorf("contracts: %w", err)
			}
			files = append(files, contract.File{Name: name, Document: document})
		}
	}
	return files, nil
}

// contractNames lists one file, or the *.yaml and *.yml below a folder without
// the contract tests, in order.
func contractNames(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var names []string
	// DirFS: the folder may be a link. Hidden folders hold the same files again where Kubernetes mounts them.
	err = fs.WalkDir(os.DirFS(path), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !entry.IsDir() && isContract(entry.Name()):
			names = append(names, filepath.Join(path, name))
		}
		return nil
	})
	slices.Sort(names)
	if err == nil && len(names) == 0 {
		return nil, fmt.Errorf("there is no contract (*.yaml) in %s", path)
	}
	return names, err
}

// readContract reads no more than the parser takes, and one byte to know that there is more.
func readContract(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	document, err := readAtMost(file, contract.MaxDocument+1)
	return document, errors.Join(err, file.Close())
}

func isContract(name string) bool {
	extension := filepath.Ext(name)
	return (extension == ".yaml" || extension == ".yml") && !strings.HasPrefix(name, ".") && !strings.HasSuffix(strings.TrimSuffix(name, extension), "_test")
}
