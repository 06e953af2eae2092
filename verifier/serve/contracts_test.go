package serve

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestContractsOfAMount: Kubernetes mounts files as links into a hidden
// folder, and an operator may name a link to the folder. Each file counts once.
func TestContractsOfAMount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mount, link := filepath.Join(dir, "contracts"), filepath.Join(dir, "current")
	hidden := filepath.Join(mount, "..2026_11_30")
	if err := os.MkdirAll(hidden, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(hidden, "refund.yaml"), []byte("id: refund\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		filepath.Join(mount, "..data"):      "..2026_11_30",
		filepath.Join(mount, "refund.yaml"): filepath.Join("..data", "refund.yaml"),
		link:                                mount,
	} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	got, err := contractNames(link)
	if diff := cmp.Diff([]string{filepath.Join(link, "refund.yaml")}, got); err != nil || diff != "" {
		t.Errorf("error %v, names (-want +got):\n%s", err, diff)
	}
	files, err := contractFiles([]string{mount})
	if err != nil || len(files) != 1 || string(files[0].Document) != "id: refund\n" {
		t.Errorf("got %+v, %v", files, err)
	}
}
