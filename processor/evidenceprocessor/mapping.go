package evidenceprocessor

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/confmap"
)

// One mapping, one file.
//
//go:embed mappings/*.yaml
var mappingFiles embed.FS

// mappingNames are all ready mappings.
var mappingNames = []string{"stripe", "shopify", "zendesk", "github", "sql_audit"}

// mapping is what a file of mappings/ holds.
type mapping struct {
	// Source is what the facts are of, unless the configuration says otherwise; empty where it has to.
	Source string `mapstructure:"source"`
	// Condition holds for all rules.
	Condition string       `mapstructure:"condition"`
	Rules     []RuleConfig `mapstructure:"rules"`
}

// mappings are read once; a file that does not read is a mistake of ours, which a test finds.
var mappings = sync.OnceValues(func() (map[string]mapping, error) {
	all := map[string]mapping{}
	for _, name := range mappingNames {
		text, err := mappingFiles.ReadFile("mappings/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		retrieved, err := confmap.NewRetrievedFromYAML(text)
		if err != nil {
			return nil, fmt.Errorf("mapping %s: %w", name, err)
		}
		conf, err := retrieved.AsConf()
		if err != nil {
			return nil, fmt.Errorf("mapping %s: %w", name, err)
		}
		var read mapping
		if err := conf.Unmarshal(&read); err != nil {
			return nil, fmt.Errorf("mapping %s: %w", name, err)
		}
		all[name] = read
	}
	return all, nil
})

// find returns the mapping of this name.
func find(name string) (mapping, error) {
	all, err := mappings()
	if err != nil {
		return mapping{}, err
	}
	found, ok := all[name]
	if !ok {
		return mapping{}, fmt.Errorf("%.40q: write one of %s", name, strings.Join(mappingNames, ", "))
	}
	return found, nil
}
