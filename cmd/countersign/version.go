package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what the builder of a release sets; otherwise the module's version counts.
var version = ""

type versionView struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which build this is",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := thisVersion()
			if t.json() {
				return t.printJSON(v)
			}
			t.printf("countersign %s\n", v.text())
			return nil
		},
	}
}

func (v versionView) text() string {
	revision := ""
	if v.Revision != "" {
		revision = " (" + v.Revision + ")"
	}
	return v.Version + revision + " " + v.Go + " " + v.Platform
}

func thisVersion() versionView {
	v := versionView{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" && info.Main.Version != "(devel)" {
			v.Version = info.Main.Version
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				v.Revision = setting.Value[:min(12, len(setting.Value))]
			}
		}
	}
	if version != "" {
		v.Version = version
	}
	return v
}
