package builder

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

const (
	module  = "github.com/countersign-otel/countersign"
	core    = "go.opentelemetry.io/collector"
	contrib = "github.com/open-telemetry/opentelemetry-collector-contrib"
)

// manifest is all that the builder reads in its configuration, and that we use.
type manifest struct {
	Dist struct {
		Module      string `yaml:"module"`
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
		Version     string `yaml:"version"`
		OutputPath  string `yaml:"output_path"`
	} `yaml:"dist"`
	Receivers  []component `yaml:"receivers"`
	Processors []component `yaml:"processors"`
	Exporters  []component `yaml:"exporters"`
	Connectors []component `yaml:"connectors"`
	Extensions []component `yaml:"extensions"`
	Providers  []component `yaml:"providers"`
	Converters []component `yaml:"converters"`
	Replaces   []string    `yaml:"replaces"`
	Excludes   []string    `yaml:"excludes"`
}

type component struct {
	GoMod  string `yaml:"gomod"`
	Import string `yaml:"import"`
	Path   string `yaml:"path"`
}

func (c component) module() string  { name, _, _ := strings.Cut(c.GoMod, " "); return name }
func (c component) version() string { _, version, _ := strings.Cut(c.GoMod, " "); return version }

// kinds are the components by the folder that ours of that kind are in.
func (m manifest) kinds() map[string][]component {
	return map[string][]component{
		"receiver": m.Receivers, "processor": m.Processors, "exporter": m.Exporters,
		"connector": m.Connectors, "extension": m.Extensions,
	}
}

func (m manifest) all() []component {
	return slices.Concat(m.Receivers, m.Processors, m.Exporters, m.Connectors, m.Extensions, m.Providers, m.Converters)
}

// read is strict: a key that the builder would ignore is an error.
func read(text []byte) (manifest, error) {
	var m manifest
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	err := decoder.Decode(&m)
	return m, err
}

// checkComponents compares what the manifest names of ours with the components in the tree.
func checkComponents(m manifest, tree fs.FS) []error {
	var problems []error
	kinds := m.kinds()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		components, err := componentsIn(tree, kind)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		problems = append(problems, compare(kind, kinds[kind], components)...)
	}
	return problems
}

func compare(kind string, named []component, present []string) []error {
	var problems []error
	var ours []string
	for _, c := range named {
		if c.module() != module {
			continue
		}
		if c.version() != "v0.0.0" || c.Path != "." {
			problems = append(problems, fmt.Errorf("builder-config.yaml, %ss: %s must be at v0.0.0 with path: . so that the collector is built from this tree", kind, c.Import))
		}
		ours = append(ours, c.Import)
	}
	for _, name := range present {
		if !slices.Contains(ours, name) {
			problems = append(problems, fmt.Errorf("builder-config.yaml, %ss: lacks %s, which is in the tree", kind, name))
		}
	}
	for i, name := range ours {
		if !slices.Contains(present, name) {
			problems = append(problems, fmt.Errorf("builder-config.yaml, %ss: names %s, which is not in the tree", kind, name))
		}
		if slices.Contains(ours[:i], name) {
			problems = append(problems, fmt.Errorf("builder-config.yaml, %ss: names %s twice", kind, name))
		}
	}
	return problems
}

// newFactory is what the builder calls in every component.
var newFactory = regexp.MustCompile(`(?m)^func NewFactory\(\)`)

// componentsIn returns the import paths of our components of one kind: each folder directly below
// the kind has to be one.
func componentsIn(tree fs.FS, kind string) ([]string, error) {
	entries, err := fs.ReadDir(tree, kind)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		dir := path.Join(kind, entry.Name())
		factory, err := fs.ReadFile(tree, path.Join(dir, "factory.go"))
		if err != nil {
			return nil, fmt.Errorf("%s is no component: %w", dir, err)
		}
		if !newFactory.Match(factory) {
			return nil, fmt.Errorf("%s/factory.go has no func NewFactory(), which the builder calls", dir)
		}
		found = append(found, path.Join(module, dir))
	}
	return found, nil
}

var requirement = regexp.MustCompile(`(?m)^(?:require)?\s+(\S+) (v\S+)`)

// requirements reads the versions in a go.mod file.
func requirements(goMod []byte) map[string]string {
	versions := map[string]string{}
	for _, match := range requirement.FindAllSubmatch(goMod, -1) {
		versions[string(match[1])] = string(match[2])
	}
	return versions
}

// release is one release of the collector, which numbers its stable modules and its others apart.
type release struct{ stable, unstable, contrib string }

// releaseOf reads the release from the modules that every collector component needs.
func releaseOf(goMod map[string]string) (release, error) {
	r := release{
		stable:   goMod[core+"/component"],
		unstable: goMod[core+"/component/componenttest"],
		contrib:  goMod[contrib+"/pkg/golden"],
	}
	if r.stable == "" || r.unstable == "" || r.contrib == "" {
		return r, fmt.Errorf("go.mod: no release of the collector to read: %+v", r)
	}
	return r, nil
}

// check says why a version is not of the release, or returns nil. Modules of others, and
// those of contrib with a number of their own, are not judged.
func (r release) check(name, version string) error {
	var want []string
	switch {
	case strings.HasPrefix(name, core+"/"):
		want = []string{r.stable, r.unstable}
	case strings.HasPrefix(name, contrib+"/") && strings.HasPrefix(version, "v0."):
		want = []string{r.contrib}
	default:
		return nil
	}
	if slices.Contains(want, version) {
		return nil
	}
	return fmt.Errorf("%s is at %s, want %s: all modules of the collector are of one release", name, version, strings.Join(want, " or "))
}

// checkVersions holds the manifest and the go.mod file to one release, and to each other.
func checkVersions(m manifest, goMod map[string]string) []error {
	r, err := releaseOf(goMod)
	if err != nil {
		return []error{err}
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(goMod)) {
		if err := r.check(name, goMod[name]); err != nil {
			problems = append(problems, fmt.Errorf("go.mod: %w", err))
		}
	}
	for _, c := range m.all() {
		if c.module() == module {
			continue
		}
		if err := r.check(c.module(), c.version()); err != nil {
			problems = append(problems, fmt.Errorf("builder-config.yaml: %w", err))
		}
		if required := goMod[c.module()]; required != "" && required != c.version() {
			problems = append(problems, fmt.Errorf("builder-config.yaml: %s is at %s, go.mod requires %s", c.module(), c.version(), required))
		}
	}
	return problems
}
