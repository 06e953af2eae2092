// Package settings holds what the configurations of several collector
// components have in common, and finds one of them in a whole collector
// configuration.
package settings
