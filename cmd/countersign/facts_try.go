package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/confmap"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/processor/evidenceprocessor"
	"github.com/countersign-otel/countersign/receiver/evidencereceiver"
)

// factsTry are the flags of facts try.
type factsTry struct {
	input, config, name, endpoint, trust string
	as                                   evidenceprocessor.TryAs
}

func newFactsTry(t *terminal) *cobra.Command {
	var f factsTry
	cmd := &cobra.Command{
		Use:   "try --input webhook.json --config collector.yaml",
		Short: "Show what the collector would make of a webhook",
		Long: `Reads the body of a webhook as the sender sends it, or OTLP/JSON logs, and shows for each record
what every mapping and rule of the configuration makes of it: the facts, or why there is none. Those that
are for other sources are counted in one line; -o json names each. Trust and whether an array is several
events are those of the receiver's endpoint of that source.`,
		Example: "  countersign facts try --input refund.json --config examples/evidence/webhooks.yaml --source stripe",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, err := collectorConfig(cmd.Context(), f.config)
			if err != nil {
				return err
			}
			settings, err := evidenceprocessor.FindConfig(conf, f.name)
			if err != nil {
				return badSettings(f.config, err)
			}
			if err := f.arrives(conf, settings); err != nil {
				return err
			}
			body, err := readBody(t, f.input)
			if err != nil {
				return err
			}
			results, err := evidenceprocessor.Try(settings, body, f.as)
			if err != nil {
				return badDocument(f.input, err)
			}
			return printFactsTried(t, results)
		},
	}
	cmd.Flags().StringVar(&f.input, "input", "", "a webhook's body, or OTLP/JSON logs; - reads standard input")
	cmd.Flags().StringVar(&f.config, "config", "", "a collector configuration with an evidence processor")
	cmd.Flags().StringVar(&f.name, "name", "", "which one, where there are several: the part after the slash of evidence/NAME")
	cmd.Flags().StringVar(&f.as.Source, "source", "", "the source of the endpoint that the webhook would arrive at")
	cmd.Flags().StringVar(&f.endpoint, "endpoint", "", "that endpoint, where several are of one source")
	cmd.Flags().StringVar(&f.as.Event, "event", "", "the event's name, where the sender puts it into a header")
	cmd.Flags().StringVar(&f.trust, "trust", "", "less trust than the endpoint's")
	return required(required(cmd, "input"), "config")
}

// arrives says how the webhook would come: by an endpoint of the configuration, where there is one.
func (f *factsTry) arrives(conf *confmap.Conf, settings *evidenceprocessor.Config) error {
	ways, err := evidencereceiver.Ways(conf)
	if err != nil {
		return usagef("%s: %w", f.config, err)
	}
	f.as.Source = engine.Fold(f.as.Source)
	way, err := f.way(ways)
	if err != nil {
		return err
	}
	if way != nil {
		f.as.Source, f.as.Connection, f.as.Trust, f.as.Array = way.Source, way.Connection, way.Trust, way.Array
	}
	if err := f.checkSource(ways, settings); err != nil {
		return err
	}
	if f.trust == "" {
		return nil
	}
	trust, err := engine.ParseTrust(f.trust)
	if err != nil {
		return usagef("--trust: %w", err)
	}
	if way != nil && trust > way.Trust {
		return usagef("--trust: %s is more than the endpoint %s gives, which is %s", trust, way.Endpoint, way.Trust)
	}
	f.as.Trust = trust
	return nil
}

// way is the endpoint that is meant; nil for none.
func (f *factsTry) way(ways []evidencereceiver.Way) (*evidencereceiver.Way, error) {
	var found []evidencereceiver.Way
	var all, names []string
	for _, w := range ways {
		all = append(all, w.Endpoint)
		byName := f.endpoint == "" || w.Endpoint == f.endpoint
		bySource := f.as.Source == "" || w.Source == f.as.Source
		if (f.endpoint != "" || f.as.Source != "") && byName && bySource {
			found, names = append(found, w), append(names, w.Endpoint)
		}
	}
	switch {
	case len(found) == 1:
		return &found[0], nil
	case len(found) > 1:
		return nil, usagef("--endpoint: several may be meant; write one of %s", strings.Join(names, ", "))
	case f.endpoint == "":
		return nil, nil
	case len(all) == 0:
		return nil, usagef("--endpoint: %s has no evidence receiver", f.config)
	}
	return nil, usagef("--endpoint: %.80q is not there, or not of the source; there are %s", f.endpoint, strings.Join(all, ", "))
}

// checkSource: of a source that is misspelt nothing would be made, and nobody would see why.
func (f *factsTry) checkSource(ways []evidencereceiver.Way, settings *evidenceprocessor.Config) error {
	known, any := settings.Sources()
	for _, w := range ways {
		known = append(known, w.Source)
	}
	if f.as.Source == "" || slices.Contains(known, f.as.Source) || any && len(ways) == 0 {
		return nil
	}
	slices.Sort(known)
	return usagef("--source: %.80q is none of the sources of %s: %s", f.as.Source, f.config, strings.Join(slices.Compact(known), ", "))
}

func printFactsTried(t *terminal, results []evidenceprocessor.TryResult) error {
	if t.json() {
		return t.printJSON(results)
	}
	facts := 0
	for _, r := range results {
		t.printf("%s  source %s, trust %s, delivery %s\n", t.style.bold(printable(deref(r.Event, "(no event name)"))),
			printable(deref(r.Source, "-")), printable(deref(r.Trust, "-")), printable(deref(r.DeliveryID, "-")))
		var elsewhere []string
		for _, rule := range r.Rules {
			if rule.Elsewhere != "" {
				elsewhere = append(elsewhere, rule.Elsewhere)
				continue
			}
			facts += printTriedFact(t, rule)
		}
		printElsewhere(t, elsewhere)
	}
	t.printf("%s, %s\n", plural(len(results), "record"), plural(facts, "fact"))
	return nil
}

// printElsewhere prints one line for all rules that are for records of other sources.
func printElsewhere(t *terminal, sources []string) {
	if len(sources) == 0 {
		return
	}
	rules := plural(len(sources), "other")
	slices.Sort(sources)
	t.printf("  %s %s, for records of %s\n", t.style.yellow("nothing by"), rules, printable(strings.Join(slices.Compact(sources), ", ")))
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
