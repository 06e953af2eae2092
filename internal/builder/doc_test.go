// Package builder holds builder-config.yaml to the tree: the OpenTelemetry Collector Builder
// ignores keys that it does not know and versions that do not fit, so a typing error makes a
// distribution without the component, and no one notices.
package builder
