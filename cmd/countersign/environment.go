package main

import (
	"net/url"
	"os"
	"time"

	"github.com/countersign-otel/countersign/engine"
)

// environment is a variable's value, or the default where it is unset or empty.
func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// redactURL leaves the password out.
func redactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the store"
	}
	return u.Redacted()
}

// now is the command line's clock: below this floor time is passed in.
func now() engine.Instant { return engine.Instant(time.Now().Unix()) }
