package web

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-otel/countersign/engine"
)

// plain makes hostile text show as what it is: control characters, and those
// that change the direction of what follows or show as nothing, are spelled out.
func plain(text string) string {
	if !strings.ContainsFunc(text, deceptive) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if deceptive(r) {
			fmt.Fprintf(&b, "[U+%04X]", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func deceptive(r rune) bool {
	if r == ' ' || r == '\n' || r == '\t' {
		return false
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co) ||
		(unicode.IsSpace(r) && r != ' ' && r != '\u00a0')
}

// clip shortens a text for places that are narrow; the whole text stands beside it.
func clip(most int, text string) string {
	text = plain(text)
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)
	return strings.TrimRight(string(runes[:most-1]), " ") + "…"
}

// clock is a moment as people read it; the zone stands beside it.
func clock(at engine.Instant) string { return at.Time().Format("2006-01-02 15:04:05") }

// shortClock leaves out the day of a reference.
func shortClock(reference, at engine.Instant) string {
	if reference.Time().Format("2006-01-02") == at.Time().Format("2006-01-02") {
		return at.Time().Format("15:04:05")
	}
	return at.Time().Format("2006-01-02 15:04")
}

// ago is how long before now a moment was, in the largest unit.
func ago(now, at engine.Instant) string {
	if at > now {
		return "in " + largest(engine.Duration(at-now))
	}
	if now-at < 2 {
		return "just now"
	}
	return largest(engine.Duration(now-at)) + " ago"
}

func largest(d engine.Duration) string {
	text, _, _ := strings.Cut(d.String(), " ")
	return text
}

// offset is a distance from the request, like +7s or −2h 10m.
func offset(request, at engine.Instant) string {
	switch {
	case at == request:
		return "±0s"
	case at < request:
		return "−" + engine.Duration(request-at).String()
	}
	return "+" + engine.Duration(at-request).String()
}

// percent is a share with one decimal that never claims all or nothing when it is not.
func percent(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	share := math.Round(float64(part)/float64(whole)*1000) / 10
	switch {
	case part < whole && share >= 100:
		share = 99.9
	case part > 0 && share <= 0:
		share = 0.1
	}
	return strconv.FormatFloat(share, 'f', 1, 64) + " %"
}

// grouped is a count with thousands apart.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}

func plural(n int, one, many string) string {
	if n == 1 {
		return grouped(n) + " " + one
	}
	return grouped(n) + " " + many
}

// actionPath is an action's page. Links use the internal id, which needs no escaping.
func actionPath(ref string) string { return "/actions/" + url.PathEscape(ref) }

func contractPath(id string) string { return "/contracts/" + url.PathEscape(id) }

// listPath is the list of actions under some filters: names and values in turn.
func listPath(pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	if len(query) == 0 {
		return "/actions"
	}
	return "/actions?" + query.Encode()
}

// encoded is a query without its empty values.
func encoded(query map[string]string) string {
	values := url.Values{}
	for name, value := range query {
		if value != "" {
			values.Set(name, value)
		}
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// web is a link that a browser may follow: only http and https.
func web(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	return address
}

// shell quotes a text for commands to copy.
func shell(text string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,"
	if text != "" && strings.Trim(text, safe) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// checkTraceURL demands an address with a place for the trace.
func checkTraceURL(template string) error {
	if template == "" {
		return nil
	}
	if web(strings.NewReplacer("{trace_id}", "0", "{span_id}", "0").Replace(template)) == "" || !strings.Contains(template, "{trace_id}") {
		return fmt.Errorf("page.trace_url is %q; write an address like https://grafana.example/trace/{trace_id}?span={span_id}", template)
	}
	return nil
}

// traceLink fills the template; ids from telemetry are hostile, so they are escaped.
func traceLink(template string, a engine.Action) string {
	if template == "" || a.TraceID == "" {
		return ""
	}
	return strings.NewReplacer("{trace_id}", url.QueryEscape(a.TraceID), "{span_id}", url.QueryEscape(a.SpanID)).Replace(template)
}
