package builder

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

func TestManifestNamesExactlyTheComponentsThatExist(t *testing.T) {
	t.Parallel()
	for _, problem := range checkComponents(readManifest(t), os.DirFS(root)) {
		t.Error(problem)
	}
}

func TestCollectorModulesAreOfOneRelease(t *testing.T) {
	t.Parallel()
	for _, problem := range checkVersions(readManifest(t), requirements(readFile(t, "go.mod"))) {
		t.Error(problem)
	}
}

func TestBuilderIsOfTheRelease(t *testing.T) {
	t.Parallel()
	release, err := releaseOf(requirements(readFile(t, "go.mod")))
	if err != nil {
		t.Fatal(err)
	}
	got := requirements(readFile(t, "internal/tools/go.mod"))[core+"/cmd/builder"]
	if got != release.unstable {
		t.Errorf("internal/tools/go.mod: the builder is at %s, go.mod and builder-config.yaml at %s", got, release.unstable)
	}
}

// The Makefile copies the binary from there.
func TestOutputStaysWhereItIsExpected(t *testing.T) {
	t.Parallel()
	dist := readManifest(t).Dist
	if got, want := []string{dist.Name, dist.OutputPath}, []string{"countersign-collector", "./build/collector"}; !cmp.Equal(got, want) {
		t.Errorf("dist: %q, want %q", got, want)
	}
}

func TestUnknownKeyIsRejected(t *testing.T) {
	t.Parallel()
	_, err := read([]byte("recievers:\n  - gomod: " + core + "/receiver/otlpreceiver v0.165.0\n"))
	const want = "yaml: unmarshal errors:\n  line 1: field recievers not found in type builder.manifest"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestCheckComponentsFinds(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	factory := file("package x\n\nfunc NewFactory() exporter.Factory {\n")
	ours := component{GoMod: module + " v0.0.0", Import: module + "/exporter/ledgerexporter", Path: "."}
	for name, test := range map[string]struct {
		named []component
		tree  fstest.MapFS
		want  []string
	}{
		"agreement": {
			named: []component{ours, {GoMod: core + "/exporter/debugexporter v0.165.0"}},
			tree:  fstest.MapFS{"exporter/ledgerexporter/factory.go": factory},
		},
		"a component that is not named": {
			tree: fstest.MapFS{"exporter/ledgerexporter/factory.go": factory},
			want: []string{"builder-config.yaml, exporters: lacks " + module + "/exporter/ledgerexporter, which is in the tree"},
		},
		"a name without a component": {
			named: []component{ours},
			tree:  fstest.MapFS{},
			want:  []string{"builder-config.yaml, exporters: names " + module + "/exporter/ledgerexporter, which is not in the tree"},
		},
		"a name twice": {
			named: []component{ours, ours},
			tree:  fstest.MapFS{"exporter/ledgerexporter/factory.go": factory},
			want:  []string{"builder-config.yaml, exporters: names " + module + "/exporter/ledgerexporter twice"},
		},
		"a component from elsewhere": {
			named: []component{{GoMod: module + " v0.1.0", Import: ours.Import}},
			tree:  fstest.MapFS{"exporter/ledgerexporter/factory.go": factory},
			want:  []string{"builder-config.yaml, exporters: " + module + "/exporter/ledgerexporter must be at v0.0.0 with path: . so that the collector is built from this tree"},
		},
		"a folder that is no component": {
			tree: fstest.MapFS{"exporter/ledgerexporter/config.go": factory},
			want: []string{"exporter/ledgerexporter is no component: open exporter/ledgerexporter/factory.go: file does not exist"},
		},
		"a factory that the builder does not find": {
			tree: fstest.MapFS{"exporter/ledgerexporter/factory.go": file("package x\n\nfunc newFactory() {}\n")},
			want: []string{"exporter/ledgerexporter/factory.go has no func NewFactory(), which the builder calls"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := texts(checkComponents(manifest{Exporters: test.named}, test.tree))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheckVersionsFinds(t *testing.T) {
	t.Parallel()
	goMod := requirements([]byte(`module x

require ` + contrib + `/pkg/golden v0.165.1

require (
	` + contrib + `/pkg/ottl v1.4.1 // indirect
	` + core + `/component v1.71.0
	` + core + `/component/componenttest v0.165.0
	` + core + `/consumer v1.70.0
)
`))
	m := manifest{Receivers: []component{
		{GoMod: core + "/receiver/otlpreceiver v0.164.0"},
		{GoMod: core + "/consumer v1.71.0"},
		{GoMod: contrib + "/exporter/fileexporter v0.165.0"},
	}}
	want := []string{
		"go.mod: " + core + "/consumer is at v1.70.0, want v1.71.0 or v0.165.0: all modules of the collector are of one release",
		"builder-config.yaml: " + core + "/receiver/otlpreceiver is at v0.164.0, want v1.71.0 or v0.165.0: all modules of the collector are of one release",
		"builder-config.yaml: " + core + "/consumer is at v1.71.0, go.mod requires v1.70.0",
		"builder-config.yaml: " + contrib + "/exporter/fileexporter is at v0.165.0, want v0.165.1: all modules of the collector are of one release",
	}
	if diff := cmp.Diff(want, texts(checkVersions(m, goMod))); diff != "" {
		t.Error(diff)
	}
}

func readManifest(t *testing.T) manifest {
	t.Helper()
	m, err := read(readFile(t, "builder-config.yaml"))
	if err != nil {
		t.Fatalf("builder-config.yaml: %v", err)
	}
	return m
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func texts(problems []error) []string {
	var lines []string
	for _, problem := range problems {
		lines = append(lines, problem.Error())
	}
	return lines
}
