package main

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"net/url"
	"os"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/countersign-otel/countersign/examples/refunds"
	"github.com/countersign-otel/countersign/examples/stack"
)

// pagePath is the page of the first action of the story. It names the action
// as its telemetry does, so it is the same in every run.
func pagePath(rows []refunds.Played) string {
	return "/actions/" + url.PathEscape(rows[0].Got.Action.ActionID)
}

// look opens the page as a person would. It fails unless the page shows what
// the last verification of the action said.
func look(ctx context.Context, s *stack.Stack, rows []refunds.Played) error {
	said := ""
	for _, row := range rows {
		if row.Got.Action.ActionID == rows[0].Got.Action.ActionID {
			_, said, _ = strings.Cut(row.Got.Summary.Headline, " — ")
		}
	}
	path := pagePath(rows)
	page, err := s.ReadPage(ctx, path)
	if err != nil {
		return fmt.Errorf("the page of the first action: %w", err)
	}
	if !strings.Contains(html.UnescapeString(page), "<h1>"+said+"</h1>") {
		return fmt.Errorf("the page %s does not show %q", s.API(path), said)
	}
	return nil
}

// watched says whether somebody sits in front of this run. Services of
// continuous integration may have a terminal and nobody there.
func watched() bool {
	return os.Getenv("CI") == "" && isatty.IsTerminal(os.Stdin.Fd()) && isatty.IsTerminal(os.Stdout.Fd())
}

// stay keeps everything running until somebody presses Enter or ctx ends.
func stay(ctx context.Context) {
	enter := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // a terminal that is gone ends it, too
		close(enter)
	}()
	select {
	case <-ctx.Done():
	case <-enter:
	}
}
