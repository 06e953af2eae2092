package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/api"
)

func newSources(t *terminal) *cobra.Command {
	return group("sources", "Systems of record: how far each is trusted, how far its clock is off", newSourcesList(t), newSourcesSet(t))
}

func newSourcesList(t *terminal) *cobra.Command {
	var flags backendFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sources with their trust, watermark, clock skew and connections",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.with(cmd.Context(), func(b backend) error {
				list, err := b.Sources(cmd.Context())
				if err != nil {
					return err
				}
				if t.json() {
					return t.printJSON(list)
				}
				t.print(sourceTable(list.Sources))
				if len(list.Sources) == 0 {
					fmt.Fprintln(t.stderr, "no source has reported, and nothing is set of any")
				}
				return nil
			})
		},
	}
	flags.add(cmd)
	return cmd
}

func sourceTable(sources []api.SourceState) table {
	b := table{head: []string{"SOURCE", "PRESENT", "TRUST", "WATERMARK", "BEHIND", "CLOCK SKEW", "CONNECTIONS"}}
	for _, s := range sources {
		present, behind, skew := "no", "-", "-"
		if s.Present {
			present = "yes"
		}
		if s.Lag != nil {
			behind = *s.Lag
		}
		if s.ClockSkewSeconds > 0 {
			skew = inSeconds(s.ClockSkewSeconds)
		}
		b.add(s.Source, present, trustInWords(s), instantOrDash(s.Watermark), behind, skew, connectionsInWords(s.Connections))
	}
	return b
}

// inSeconds keeps the seconds, and is what --clock-skew takes.
func inSeconds(n int64) string { return (time.Duration(n) * time.Second).String() }

// trustInWords says what an operator overrides, where that is a change.
func trustInWords(s api.SourceState) string {
	if s.Trust == nil {
		return "-"
	}
	if s.Override == nil {
		return s.Trust.String()
	}
	return s.Trust.String() + " (set)"
}

func connectionsInWords(connections []api.ConnectionState) string {
	var words []string
	for _, c := range connections {
		said := []string{}
		if c.Health != nil {
			said = append(said, string(*c.Health))
		}
		if c.Trust != nil {
			said = append(said, c.Trust.String())
		}
		if !c.Delivered {
			said = append(said, "no fact so far")
		}
		text := printable(c.Name)
		if len(said) > 0 {
			text += " (" + strings.Join(said, ", ") + ")"
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}

// takenBack is the value of a setting that takes the setting back.
const takenBack = "none"

type sourceFlags struct {
	store                     storeFlags
	connection, trust, health string
	skew                      time.Duration
}

func newSourcesSet(t *terminal) *cobra.Command {
	var flags sourceFlags
	cmd := &cobra.Command{
		Use:   "set SOURCE [--trust LEVEL] [--clock-skew 30s] [--connection NAME --health STATE]",
		Short: "Say how far a source is trusted, how far its clock is off, and whether a connection works",
		Long: `Says what the operator knows of a source, in the store: who has the store is the operator, and no
API key may change what verdicts rest on.

  --trust       overrides the level of the connections that deliver the source, for what
                min_trust demands; none takes it back. Facts of agent spans (otel) stay self_reported
  --clock-skew  how much too early the source may stamp an effect, up to 1h: what was seen that
                little before the request counts as its effect; 0s takes it back
  --health      whether a connection works: a source whose only connection is in error is absent
                (missing_fact_source), one with a healthy connection is present before its first
                fact, and cannot be pushed with POST /v1/facts; none takes it back

Actions that are not settled are judged again at once where the contract reads the source. Settled
verdicts stay; countersign actions verify REF judges one again.

On PostgreSQL the login has to be a member of the role countersign_evidence.`,
		Example: `  countersign sources set stripe --clock-skew 30s --store sqlite:countersign.db
  countersign sources set crm --trust independent --connection poll --health healthy`,
		Args: exactly(1, "the name of one source"),
		RunE: func(cmd *cobra.Command, args []string) error {
			setting, err := flags.setting(cmd, args[0])
			if err != nil {
				return err
			}
			return withStore(cmd.Context(), flags.store.url(), func(store ledger.Ledger) error {
				at := now()
				var set ledger.SourceSet
				var known []engine.Connection
				err := store.Update(cmd.Context(), func(tx ledger.Tx) (err error) {
					if known, err = tx.Connections(cmd.Context(), flags.store.tenant); err != nil {
						return err
					}
					set, err = ledger.SetSource(cmd.Context(), tx, flags.store.tenant, setting, at)
					return err
				})
				if err != nil {
					return err
				}
				warn(t, setting, set, known)
				return printSourceSet(t, set, at)
			})
		},
	}
	flags.store.add(cmd)
	cmd.Flags().StringVar(&flags.trust, "trust", "", "independent, shared, self_reported, or none")
	cmd.Flags().DurationVar(&flags.skew, "clock-skew", 0, "0s to 1h, like 30s")
	cmd.Flags().StringVar(&flags.connection, "connection", "", "whose --health it is, as sources list shows it; "+api.FactsAPI+" for pushed facts")
	cmd.Flags().StringVar(&flags.health, "health", "", "healthy, syncing, error, or none")
	return cmd
}

// setting reads the flags that are given.
func (f *sourceFlags) setting(cmd *cobra.Command, source string) (setting ledger.SourceSetting, err error) {
	given := cmd.Flags().Changed
	switch {
	case !given("trust") && !given("clock-skew") && !given("health"):
		return setting, usagef("%s needs --trust, --clock-skew or --health\nsee: %s --help", cmd.CommandPath(), cmd.CommandPath())
	case given("health") && f.connection == "":
		return setting, usagef("--health is of one connection: name it with --connection, %s for pushed facts; countersign sources list shows them", api.FactsAPI)
	case given("connection") && !given("health"):
		return setting, usagef("--connection says whose --health it is; --trust and --clock-skew are of the whole source, because a fact does not tell how it came")
	}
	if setting.Source, err = engine.Identifier(source); err != nil {
		return setting, usagef("SOURCE: %w", err)
	}
	if f.connection != api.FactsAPI {
		setting.Connection = f.connection
	}
	if given("trust") {
		if setting.Trust, err = trustLevel(f.trust); err != nil {
			return setting, err
		}
	}
	if given("health") {
		if setting.Health, err = healthState(f.health); err != nil {
			return setting, err
		}
	}
	if given("clock-skew") {
		if f.skew%time.Second != 0 {
			return setting, usagef("--clock-skew: %s is no whole number of seconds", f.skew)
		}
		skew := engine.Duration(f.skew / time.Second)
		setting.ClockSkew = &skew
	}
	return setting, nil
}

func trustLevel(text string) (*engine.Trust, error) {
	level := engine.UnknownTrust
	if text == takenBack {
		return &level, nil
	}
	level, err := engine.ParseTrust(text)
	if err != nil {
		return nil, usagef("--trust: %w, or %s to take it back", err, takenBack)
	}
	return &level, nil
}

func healthState(text string) (*engine.Health, error) {
	state := engine.Health(text)
	switch state {
	case takenBack:
		state = engine.NoHealth
	case engine.Healthy, engine.Syncing, engine.Failing:
	default:
		return nil, usagef("--health: %q is not known; write healthy, syncing, error, or %s to take it back", text, takenBack)
	}
	return &state, nil
}

// warn tells of what may be a misspelt name, and of what pushes a healthy connection ends.
func warn(t *terminal, setting ledger.SourceSetting, set ledger.SourceSet, known []engine.Connection) {
	if len(set.Before.Connections) == 0 {
		fmt.Fprintf(t.stderr, "nothing was known of %s so far%s\n", setting.Source, others(known))
	}
	if setting.Health == nil || setting.Connection == engine.FactsAPI {
		return
	}
	if !slices.ContainsFunc(set.Before.Connections, func(c engine.Connection) bool { return c.Name == setting.Connection }) {
		fmt.Fprintf(t.stderr, "%s is a new connection of %s: nothing came over it so far\n", printable(setting.Connection), setting.Source)
	}
	if *setting.Health == engine.Healthy || *setting.Health == engine.Syncing {
		fmt.Fprintf(t.stderr, "as long as %s is %s, facts of %s cannot be pushed with POST /v1/facts\n", printable(setting.Connection), *setting.Health, setting.Source)
	}
}

// others names the sources that there are, for who has misspelt one.
func others(known []engine.Connection) string {
	var names []string
	for _, c := range known {
		names = append(names, c.Source)
	}
	if len(names) == 0 {
		return ""
	}
	return "; known: " + strings.Join(slices.Compact(names), ", ")
}

func printSourceSet(t *terminal, set ledger.SourceSet, at engine.Instant) error {
	source := api.DescribeSource(set.After.Name, set.After.Connections, at)
	if t.json() {
		return t.printJSON(map[string]any{"source": source, "actions_judged_again": set.Woken})
	}
	t.print(sourceTable([]api.SourceState{source}))
	if set.Woken > 0 {
		t.printf("%s judged again now\n", plural(set.Woken, "unsettled action"))
	}
	if set.ReachesVerdicts() {
		t.printf("settled verdicts stay; countersign actions verify REF judges one again\n")
	}
	return nil
}
