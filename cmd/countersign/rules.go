package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/processor/agentactionprocessor"
)

func newRules(t *terminal) *cobra.Command {
	return group("rules", "Rules of the agent_action processor", newRulesTry(t))
}

func newRulesTry(t *terminal) *cobra.Command {
	var input, config, name string
	cmd := &cobra.Command{
		Use:   "try --input spans.json [--config collector.yaml]",
		Short: "Show what the collector would make of telemetry",
		Long: `Reads OTLP/JSON traces or logs and shows each tool call that is recognised, with its dialect,
arguments, agent and session, and what each rule of the configuration would record of it.
Without --config: all dialects, no rules.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings := agentactionprocessor.NewTryConfig()
			if config != "" {
				var err error
				if settings, err = processorConfig(cmd.Context(), config, name); err != nil {
					return err
				}
			}
			telemetry, err := readBody(t, input)
			if err != nil {
				return err
			}
			results, err := agentactionprocessor.Try(settings, telemetry)
			if err != nil {
				return badDocument(input, err)
			}
			return printTried(t, results, settings.Rules)
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "OTLP/JSON traces or logs; - reads standard input")
	cmd.Flags().StringVar(&config, "config", "", "a collector configuration with an agent_action processor")
	cmd.Flags().StringVar(&name, "name", "", "which one, where there are several: the part after the slash of agent_action/NAME")
	return required(cmd, "input")
}

// processorConfig reads the agent_action section of a collector configuration.
func processorConfig(ctx context.Context, path, name string) (*agentactionprocessor.Config, error) {
	conf, err := collectorConfig(ctx, path)
	if err != nil {
		return nil, err
	}
	settings, err := agentactionprocessor.FindConfig(conf, name)
	if err != nil {
		return nil, badSettings(path, err)
	}
	return settings, nil
}

func printTried(t *terminal, results []agentactionprocessor.TryResult, rules []agentactionprocessor.RuleConfig) error {
	if t.json() {
		return t.printJSON(results)
	}
	calls := 0
	for _, r := range results {
		if r.Why != "" {
			t.printf("%s  %s  %s\n  %s\n", t.style.yellow("does not read"), r.Dialect, t.style.dim("span "+deref(r.SpanID, "-")), printable(r.Why))
			continue
		}
		calls++
		t.printf("%s  %s  %s\n", t.style.bold(printable(deref(r.Tool, "(no tool name)"))), r.Dialect, t.style.dim("span "+deref(r.SpanID, "-")))
		t.printf("  agent %s, session %s, outcome %s\n", printable(deref(r.Agent, "-")), printable(deref(r.Session, "-")), r.Outcome)
		t.printf("  arguments %s\n", printable(compact(r.Arguments)))
		for _, rule := range r.Rules {
			printTriedRule(t, rule)
		}
		if len(rules) > 0 && len(r.Rules) == 0 {
			t.printf("  %s\n", t.style.dim(noRuleFor(rules)))
		}
	}
	t.printf("%s recognised\n", plural(calls, "tool call"))
	return nil
}

// noRuleFor names the tools that there are rules for: a name that is written
// otherwise is the usual reason.
func noRuleFor(rules []agentactionprocessor.RuleConfig) string {
	const most = 8
	var tools []string
	for _, rule := range rules {
		if rule.Tool != "" && len(tools) < most {
			tools = append(tools, printable(rule.Tool))
		}
	}
	if len(tools) == 0 {
		return "no rule is for it"
	}
	return "no rule is for it: there are rules for " + strings.Join(tools, ", ") + "; case counts"
}

func printTriedRule(t *terminal, rule agentactionprocessor.TryRule) {
	if rule.Action == nil {
		t.printf("  %s %s: %s\n", t.style.yellow("nothing by"), printable(rule.Rule), printable(rule.Why))
		return
	}
	t.printf("  %s %s: %s on %s under %s with %s\n", t.style.green("action by"), printable(rule.Rule),
		printable(rule.Action.ActionID), printable(rule.Action.SubjectID), rule.ContractID, printable(rule.Action.Params.Text()))
	if rule.Why != "recorded" {
		t.printf("    %s\n", printable(rule.Why))
	}
}

func deref(text *string, otherwise string) string {
	if text == nil {
		return otherwise
	}
	return *text
}

func compact(value any) string {
	if value == nil {
		return "not captured"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
