package main

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/verifier/heap"
	"github.com/countersign-otel/countersign/verifier/serve"
)

func newServe(t *terminal) *cobra.Command {
	var config string
	values := map[string]*string{}
	cmd := &cobra.Command{
		Use:   "serve [--config verifier.yaml]",
		Short: "Run the sidecar: verify what is due, answer over HTTP, send verdicts back",
		Long: `Runs the sidecar until it is told to stop: it verifies actions as they become due, answers
the HTTP API, and sends verdicts back as OTLP.

Every setting of the file is also a flag and a COUNTERSIGN_* variable; flags win over
variables, variables over the file. docs/configuration.md describes them.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := map[string]string{}
			for _, setting := range serve.Settings() {
				if cmd.Flags().Changed(setting.Flag()) {
					flags[setting.Key] = *values[setting.Key]
				}
			}
			settings, err := serve.Load(cmd.Context(), config, os.LookupEnv, flags)
			if err != nil {
				return err
			}
			defer heap.Relax()()
			return serve.Run(cmd.Context(), settings, serve.Options{
				Version: thisVersion().Version, Logger: t.logger(), Ready: t.ready,
			})
		},
	}
	cmd.Flags().StringVar(&config, "config", os.Getenv("COUNTERSIGN_CONFIG"), "YAML file with settings; COUNTERSIGN_CONFIG")
	for _, setting := range serve.Settings() {
		values[setting.Key] = cmd.Flags().String(setting.Flag(), "", setting.Usage+"; "+setting.Env())
	}
	return cmd
}

// logger writes to standard error: lines for people, or JSON with -o json.
func (t *terminal) logger() *slog.Logger {
	if t.json() {
		return slog.New(slog.NewJSONHandler(t.stderr, nil))
	}
	return slog.New(slog.NewTextHandler(t.stderr, nil))
}

// ready says where the API is, for a person at a terminal and for scripts.
func (t *terminal) ready(url string) {
	if t.json() {
		_ = t.printJSON(map[string]string{"url": url}) // standard output may be closed; serving goes on
		return
	}
	t.printf("serving %s\n", url)
}
