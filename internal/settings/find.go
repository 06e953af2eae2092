package settings

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// validator is a configuration as the collector checks it.
type validator interface{ Validate() error }

// FindProcessor reads the settings of one processor of a kind out of a whole
// collector configuration into one that holds the defaults, and validates
// them. name is the part after the slash of kind/name; when it is empty there
// must be only one. Errors name the place.
func FindProcessor(collector *confmap.Conf, kind, name string, into validator) error {
	processors, err := collector.Sub("processors")
	if err != nil {
		return fmt.Errorf("processors: %w", err)
	}
	key, err := findKey(processors.ToStringMap(), kind, name)
	if err != nil {
		return err
	}
	section, err := processors.Sub(key)
	if err == nil {
		err = explain(section.Unmarshal(into), into)
	}
	if err == nil {
		err = into.Validate()
	}
	if err != nil {
		return fmt.Errorf("processors::%s: %w", key, err)
	}
	return nil
}

func findKey(processors map[string]any, kind, name string) (string, error) {
	if name != "" {
		if _, ok := processors[kind+"/"+name]; !ok {
			return "", fmt.Errorf("processors: there is no %s/%s", kind, name)
		}
		return kind + "/" + name, nil
	}
	var found []string
	for key := range processors {
		if key == kind || strings.HasPrefix(key, kind+"/") {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("processors: there is no %s", kind)
	}
	return "", fmt.Errorf("processors: there are %s; say which", strings.Join(found, " and "))
}
