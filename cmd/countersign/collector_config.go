package main

import (
	"context"
	"errors"
	"path/filepath"

	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
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
		return nil, usagef("%s: %w", path, err)
	}
	return conf, nil
}
