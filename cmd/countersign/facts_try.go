package main

import (
	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/processor/evidenceprocessor"
)

func newFactsTry(t *terminal) *cobra.Command {
	var input, config, name, trust string
	var as evidenceprocessor.TryAs
	cmd := &cobra.Command{
		Use:   "try --input webhook.json --config collector.yaml",
		Short: "Show what the collector would make of a webhook",
		Long: `Reads the body of a webhook as the sender sends it, or OTLP/JSON logs, and shows for each record
what every mapping and rule of the configuration makes of it: the facts, or why there is none.`,
		Example: "  countersign facts try --input refund.json --config examples/evidence/webhooks.yaml --source stripe",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, err := collectorConfig(cmd.Context(), config)
			if err != nil {
				return err
			}
			settings, err := evidenceprocessor.FindConfig(conf, name)
			if err != nil {
				return usagef("%s: %w", config, err)
			}
			if trust != "" {
				if as.Trust, err = engine.ParseTrust(trust); err != nil {
					return usagef("--trust: %w", err)
				}
			}
			body, err := readBody(t, input)
			if err != nil {
				return err
			}
			results, err := evidenceprocessor.Try(settings, body, as)
			if err != nil {
				return usagef("%s: %w", input, err)
			}
			return printFactsTried(t, results)
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "a webhook's body, or OTLP/JSON logs; - reads standard input")
	cmd.Flags().StringVar(&config, "config", "", "a collector configuration with an evidence processor")
	cmd.Flags().StringVar(&name, "name", "", "which one, where there are several: the part after the slash of evidence/NAME")
	cmd.Flags().StringVar(&as.Source, "source", "", "the source of the endpoint that the webhook would arrive at")
	cmd.Flags().StringVar(&as.Event, "event", "", "the event's name, where the sender puts it into a header")
	cmd.Flags().StringVar(&trust, "trust", "", "the endpoint's trust; that of a verified signature when absent")
	return required(required(cmd, "input"), "config")
}

func printFactsTried(t *terminal, results []evidenceprocessor.TryResult) error {
	if t.json() {
		return t.printJSON(results)
	}
	facts := 0
	for _, r := range results {
		t.printf("%s  source %s, trust %s, delivery %s\n", t.style.bold(printable(deref(r.Event, "(no event name)"))),
			printable(deref(r.Source, "-")), printable(deref(r.Trust, "-")), printable(deref(r.DeliveryID, "-")))
		for _, rule := range r.Rules {
			facts += printTriedFact(t, rule)
		}
	}
	t.printf("%s, %s\n", plural(len(results), "record"), plural(facts, "fact"))
	return nil
}

// printTriedFact prints what one rule makes and returns how many facts that is.
func printTriedFact(t *terminal, rule evidenceprocessor.TryRule) int {
	made := 0
	switch f := rule.Fact; {
	case f != nil:
		made = 1
		t.printf("  %s %s: %s.%s about %s at %s with %s, raw_ref %s\n", t.style.green("fact by"), printable(rule.Rule), f.Source, f.FactType,
			printable(f.SubjectID), f.OccurredAt, printable(f.Attributes.Text()), printable(f.RawRef))
	case rule.Watermark != nil:
		t.printf("  %s %s: the source is complete up to %s\n", t.style.green("watermark by"), printable(rule.Rule), *rule.Watermark)
	case len(rule.Links) > 0:
		t.printf("  %s %s:\n", t.style.green("links by"), printable(rule.Rule))
	default:
		t.printf("  %s %s: %s\n", t.style.yellow("nothing by"), printable(rule.Rule), printable(rule.Why))
	}
	for _, link := range rule.Links {
		t.printf("    links %s and %s\n", printable(link.SubjectID), printable(link.LinkedSubjectID))
	}
	return made
}
