package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/verifier/api"
)

func newFacts(t *terminal) *cobra.Command {
	return group("facts", "Facts from systems of record", newFactsPush(t), newFactsTry(t), newFactsRejected(t))
}

func newFactsPush(t *terminal) *cobra.Command {
	var flags backendFlags
	var file string
	cmd := &cobra.Command{
		Use:   "push --file facts.json",
		Short: "Push facts, links and watermarks, as POST /v1/facts does",
		Long: `Pushes facts, links and watermarks. What cannot be taken is named, one by one; the good ones
beside it are taken all the same, and the exit code is 1.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			body, err := readBody(t, file)
			if err != nil {
				return err
			}
			return flags.with(cmd.Context(), func(b backend) error {
				pushed, err := b.Push(cmd.Context(), body)
				if err != nil {
					return err
				}
				return printPushed(t, pushed)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&file, "file", "", "the body of POST /v1/facts; - reads standard input")
	return required(cmd, "file")
}

func printPushed(t *terminal, pushed api.Pushed) error {
	if t.json() {
		if err := t.printJSON(pushed); err != nil {
			return err
		}
	} else {
		t.printf("%d ingested, %d known already, %d conflicting, %d rejected\n", pushed.Ingested, pushed.Duplicates, pushed.Conflicting, len(pushed.Rejected))
		printRejected(t, &pushed)
	}
	if len(pushed.Rejected) > 0 {
		return errAnswered
	}
	return nil
}

func newFactsRejected(t *terminal) *cobra.Command {
	var flags backendFlags
	var query api.RejectedQuery
	var since string
	cmd := &cobra.Command{
		Use:   "rejected",
		Short: "Show evidence that was sent and not taken, and why",
		Long: `Lists facts, links and watermarks, newest first, that a collector's evidence exporter could not write, that
its evidence processor could not make, or that were pushed and not taken, while those beside them were. They
are no evidence: correct the rule, the source or the settings, and have the source send them again. With
-o json each shows what was sent.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if query.Since, err = moment("--since", since, now()); err != nil {
				return err
			}
			query.Source = engine.Fold(query.Source)
			return flags.with(cmd.Context(), func(b backend) error {
				list, err := b.Rejected(cmd.Context(), query)
				if err != nil {
					return err
				}
				return printRejectedFacts(t, list)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&query.Source, "source", "", "of this source")
	cmd.Flags().StringVar(&since, "since", "", "came at or after: RFC 3339, or how long ago, like 7d")
	cmd.Flags().IntVar(&query.Limit, "limit", 100, "how many, 1 to 1000")
	return inRange(cmd, "limit", &query.Limit, 1, 1000)
}

func printRejectedFacts(t *terminal, list api.RejectedList) error {
	if t.json() {
		return t.printJSON(list)
	}
	if len(list.Rejected) == 0 {
		t.printf("nothing was rejected\n")
		return nil
	}
	b := table{head: []string{"LAST", "TIMES", "KIND", "SOURCE", "REASON", "SUBJECT", "RAW REF", "ERROR"}}
	for _, r := range list.Rejected {
		b.add(r.LastAt.String(), strconv.Itoa(r.Times), r.Kind, printable(r.Source), r.Reason, printable(r.SubjectID), printable(r.RawRef), printable(r.Error))
	}
	t.print(b)
	return nil
}

func newReport(t *terminal) *cobra.Command {
	return group("report", "What no single verdict shows", newReportOrphans(t))
}

func newReportOrphans(t *terminal) *cobra.Command {
	var flags backendFlags
	var query api.OrphanQuery
	var since, until string
	cmd := &cobra.Command{
		Use:   "orphans",
		Short: "Effects that no recorded action explains",
		Long: `Lists facts of the types that published contracts expect as effects, for records on which no
action was recorded, links honoured: somebody acted, and no agent said so.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if query.Since, err = moment("--since", since, now()); err != nil {
				return err
			}
			if query.Until, err = moment("--until", until, now()); err != nil {
				return err
			}
			query.Source = engine.Fold(query.Source)
			return flags.with(cmd.Context(), func(b backend) error {
				list, err := b.Orphans(cmd.Context(), query)
				if err != nil {
					return err
				}
				return printOrphans(t, list)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&query.Source, "source", "", "effects of this source")
	cmd.Flags().StringVar(&since, "since", "", "occurred at or after: RFC 3339, or how long ago, like 7d")
	cmd.Flags().StringVar(&until, "until", "", "occurred before: RFC 3339, or how long ago")
	cmd.Flags().IntVar(&query.Limit, "limit", 100, "how many, 1 to 1000")
	return inRange(cmd, "limit", &query.Limit, 1, 1000)
}

func printOrphans(t *terminal, list api.OrphanList) error {
	if t.json() {
		return t.printJSON(list)
	}
	if len(list.Orphans) == 0 {
		t.printf("no orphans among %s\n", plural(len(list.Effects), "expected effect"))
		return nil
	}
	b := table{head: []string{"OCCURRED", "SOURCE", "TYPE", "SUBJECT", "RAW REF", "ATTRIBUTES"}}
	for _, f := range list.Orphans {
		b.add(f.OccurredAt.String(), f.Source, f.FactType, printable(f.SubjectID), printable(f.RawRef), printable(f.Attributes.Text()))
	}
	t.print(b)
	return nil
}
