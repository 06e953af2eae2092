// Package e2e runs the built binaries together, from outside: the collector
// with its configuration, the sidecar with its own, and one SQLite file. What
// it needs in bin/ it has make build.
package e2e
