package serve

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/countersign-otel/countersign/engine/diagnostic"
)

var (
	invalidKeys  = regexp.MustCompile(`^'([^']*)' has invalid keys: (.*)$`)
	wrongSetting = regexp.MustCompile(`^'([^']*)' (.*)$`)
)

// explain says in the terms of the file what the decoder says in those of Go:
// in one line, and for an unknown setting the nearest that there is.
func explain(err error) error {
	if err == nil {
		return nil
	}
	var all []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "decoding failed due to") {
			continue
		}
		if found := invalidKeys.FindStringSubmatch(line); found != nil {
			all = append(all, unknownSettings(found[1], strings.Split(found[2], ", "))...)
			continue
		}
		if found := wrongSetting.FindStringSubmatch(line); found != nil {
			line = found[1] + ": " + found[2]
			if strings.HasPrefix(found[2], "time: ") {
				line += "; write a length of time like 15m, 48h or 10s"
			}
		}
		all = append(all, line)
	}
	return errors.New(strings.Join(all, "; "))
}

// unknownSettings names keys that section has not; the section of the whole file is a type of Go.
func unknownSettings(section string, keys []string) []string {
	prefix := section + "."
	if strings.Contains(section, "Config") {
		prefix = ""
	}
	known := map[string]bool{}
	for _, s := range Settings() {
		if rest, ok := strings.CutPrefix(s.Key, prefix); ok {
			known[strings.Split(rest, ".")[0]] = true
		}
	}
	var names []string
	for name := range known {
		names = append(names, name)
	}
	all := make([]string, len(keys))
	for i, key := range keys {
		near := ""
		if best := diagnostic.Nearest(key, names); best != "" {
			near = fmt.Sprintf(" (did you mean %s%s?)", prefix, best)
		}
		all[i] = fmt.Sprintf("%s%s is no setting%s", prefix, key, near)
	}
	return all
}
