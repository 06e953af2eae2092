package settings

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/countersign-otel/countersign/engine/diagnostic"
)

var (
	unknownKeys  = regexp.MustCompile(`^'([^']*)' has invalid keys: (.*)$`)
	wrongSetting = regexp.MustCompile(`^'([^']*)' (.*)$`)
	index        = regexp.MustCompile(`\[[^\]]*\]`)
)

// explain says in the terms of the file what the decoder says in those of Go,
// one setting a line, each with its place in the section, and for an unknown
// one the nearest that there is.
func explain(err error, into any) error {
	if err == nil {
		return nil
	}
	var all []error
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "decoding failed due to") {
			continue
		}
		if found := unknownKeys.FindStringSubmatch(line); found != nil {
			all = append(all, unknown(into, found[1], strings.Split(found[2], ", "))...)
			continue
		}
		if found := wrongSetting.FindStringSubmatch(line); found != nil {
			line = found[1] + ": " + found[2]
		}
		all = append(all, errors.New(line))
	}
	return errors.Join(all...)
}

// unknown names keys that section has not; the decoder calls the whole by its type of Go.
func unknown(into any, section string, keys []string) (all []error) {
	prefix := section + "."
	if section == "" || section == strings.TrimPrefix(fmt.Sprintf("%T", into), "*") {
		section, prefix = "", ""
	}
	names := namesAt(reflect.TypeOf(into), strings.FieldsFunc(index.ReplaceAllString(section, ""), func(r rune) bool { return r == '.' }))
	for _, key := range keys {
		near := ""
		if best := diagnostic.Nearest(key, names); best != "" {
			near = fmt.Sprintf("; did you mean %q?", best)
		}
		all = append(all, fmt.Errorf("%s%s is no setting%s", prefix, key, near))
	}
	return all
}

// namesAt are the settings of a type, at the end of a path of settings.
func namesAt(t reflect.Type, path []string) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("mapstructure"), ",")
		switch {
		case options == "squash":
			names = append(names, namesAt(field.Type, path)...)
		case len(path) > 0 && name == path[0]:
			return namesAt(field.Type, path[1:])
		case len(path) == 0 && name != "" && name != "-":
			names = append(names, name)
		}
	}
	return names
}
