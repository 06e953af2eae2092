package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/cmd/countersign/collectorcheck"
	"github.com/countersign-otel/countersign/engine/diagnostic"
)

func newCollector(t *terminal) *cobra.Command {
	return group("collector", "Look after a collector", newCollectorCheck(t))
}

type checkView struct {
	Files    int                      `json:"files"`
	Findings []collectorcheck.Finding `json:"findings"`
}

func newCollectorCheck(t *terminal) *cobra.Command {
	var ignore []string
	cmd := &cobra.Command{
		Use:   "check CONFIG...",
		Short: "Find known ways to lose or to forge in a collector configuration",
		Long: `Reads collector configurations and reports, as file:line:col, what would lose items that were
acknowledged, or let somebody forge evidence: what is wrong, what comes of it, what helps.
References like ${env:NAME} are left as they are. Exit code 1 when there is a finding.

It does not say whether the collector would start; countersign-collector validate does.`,
		Example: "  countersign collector check /etc/countersign/collector.yaml",
		Args:    atLeast(1, "a collector configuration"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := knownRules(ignore); err != nil {
				return err
			}
			view := checkView{Files: len(args), Findings: []collectorcheck.Finding{}}
			for _, name := range args {
				found, err := checkCollector(name)
				if err != nil {
					return err
				}
				view.Findings = append(view.Findings, slices.DeleteFunc(found, func(f collectorcheck.Finding) bool {
					return slices.Contains(ignore, f.Rule)
				})...)
			}
			return printCollectorCheck(t, view)
		},
	}
	cmd.Flags().StringArrayVar(&ignore, "ignore", nil, "a rule to leave out, by its name; may stand several times")
	return cmd
}

func knownRules(names []string) error {
	var known []string
	for _, rule := range collectorcheck.Rules() {
		known = append(known, rule.Name)
	}
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		if near := diagnostic.Nearest(name, known); near != "" {
			return usagef("--ignore: there is no rule %q; did you mean %q?", name, near)
		}
		return usagef("--ignore: there is no rule %q", name)
	}
	return nil
}

func checkCollector(name string) ([]collectorcheck.Finding, error) {
	text, err := readBounded(name, collectorcheck.MaxDocument)
	if err != nil {
		return nil, err
	}
	found, diagnostics := collectorcheck.Check(name, text)
	if len(diagnostics) > 0 {
		return nil, usagef("%s", printable(diagnostics[0].Error()))
	}
	return found, nil
}

func printCollectorCheck(t *terminal, view checkView) error {
	if t.json() {
		if err := t.printJSON(view); err != nil {
			return err
		}
	} else {
		for _, f := range view.Findings {
			t.printf("%s\n", printable(f.String()))
		}
	}
	if n := len(view.Findings); n > 0 {
		return nof("%s in %s", plural(n, "finding"), plural(view.Files, "file"))
	}
	if !t.json() {
		t.printf("%s: nothing found\n", plural(view.Files, "file"))
	}
	return nil
}
