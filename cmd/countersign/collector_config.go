package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"gopkg.in/yaml.v3"

	"github.com/countersign-otel/countersign/cmd/countersign/collectorcheck"
	"github.com/countersign-otel/countersign/engine/diagnostic"
)

// collectorConfig resolves a collector configuration as the collector does.
func collectorConfig(ctx context.Context, path string) (*confmap.Conf, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := readBounded(path, 0); err != nil {
		return nil, err
	}
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs: []string{"file:" + absolute},
		ProviderFactories: []confmap.ProviderFactory{
			fileprovider.NewFactory(), envprovider.NewFactory(), yamlprovider.NewFactory(),
		},
		DefaultScheme: "env",
	})
	if err != nil {
		return nil, err
	}
	conf, err := resolver.Resolve(ctx)
	if err = errors.Join(err, resolver.Shutdown(ctx)); err != nil {
		return nil, unreadConfig(path, err)
	}
	return conf, nil
}

// unreadConfig says where a configuration stops being one, if it is by its YAML.
func unreadConfig(path string, err error) error {
	text, unread := readBounded(path, collectorcheck.MaxDocument)
	if unread != nil {
		return unread
	}
	if d, bad := diagnostic.Syntax(path, text); bad {
		return usagef("%s", printable(d.Error()))
	}
	return usagef("%s: %w", path, err)
}

// sectionOf and settingOf are what an error about a component's settings
// begins with: the key of the component, and on each line that of the setting.
var (
	sectionOf = regexp.MustCompile(`^(processors)::([^:]+): `)
	settingOf = regexp.MustCompile(`^[a-z_]+(\[\d+\]|\.[a-z_]+)*`)
	stepOf    = regexp.MustCompile(`[a-z_]+|\d+`)
)

// badSettings puts file:line:col before each line of an error about the settings
// of a component, as far as the file has the setting.
func badSettings(path string, err error) error {
	section := sectionOf.FindStringSubmatch(err.Error())
	text, unread := readBounded(path, collectorcheck.MaxDocument)
	var root yaml.Node
	if section == nil || unread != nil || yaml.Unmarshal(text, &root) != nil {
		return usagef("%s: %w", path, err)
	}
	var all []string
	for line := range strings.Lines(strings.TrimPrefix(err.Error(), section[0])) {
		line = strings.TrimSuffix(line, "\n")
		steps := append(section[1:], stepOf.FindAllString(settingOf.FindString(line), -1)...)
		place := path
		if node := diagnostic.At(&root, steps...); node != nil {
			place = fmt.Sprintf("%s:%d:%d", path, node.Line, node.Column)
		}
		all = append(all, printable(place+": "+section[0]+line))
	}
	return usagef("%s", strings.Join(all, "\n"))
}
