package collectorcheck

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

var listening = []Rule{
	{
		"open-listener",
		"whoever is on the network can read what passes, or send what they like",
		openListener,
	},
	{
		"secret-in-file",
		"whoever reads the configuration, or a copy of it, can sign as the sender or write into the store",
		secretInFile,
	},
	{
		"store-without-tls",
		"whoever is between the collector and the database can change what is written",
		storeWithoutTLS,
	},
}

func openListener(d *document, report reporter) {
	for _, r := range sorted(d.receivers) {
		switch {
		case r.elsewhere():
		case r.kind() == "otlp":
			for _, protocol := range r.get("protocols").keys() {
				checkListener(r, r.get("protocols", protocol), report)
			}
		default:
			checkListener(r, r.setting, report)
		}
	}
	for _, e := range sorted(d.extensions) {
		if endpoint := e.get("endpoint"); slices.Contains([]string{"pprof", "zpages"}, e.kind()) && isOpen(endpoint) {
			report(endpoint, "listen on localhost", "extension %s shows the collector's inside beyond this machine", e.id)
		}
	}
}

// proving are receivers that ask every sender who it is, by a signature or a key.
var proving = []string{"evidence", "verifiedactions", "webhookevent"}

func checkListener(r component, server setting, report reporter) {
	endpoint := server.get("endpoint")
	if !isOpen(endpoint) {
		return
	}
	tls := server.get("tls")
	if tls.empty() {
		report(endpoint, "set tls, or listen on localhost behind a proxy that terminates TLS", "receiver %s listens beyond this machine without TLS", r.id)
	}
	if server.get("auth").empty() && tls.get("client_ca_file").empty() && !tls.elsewhere() && !slices.Contains(proving, r.kind()) {
		report(endpoint, "set auth, or tls: client_ca_file, or listen on localhost", "receiver %s listens beyond this machine and asks nobody who they are", r.id)
	}
}

// isOpen says that an address is not of this machine alone. What comes from
// elsewhere is not judged.
func isOpen(endpoint setting) bool {
	text, ok := endpoint.text()
	if !ok || strings.Contains(text, "/") { // a path of a Unix socket, or a URL of somebody else
		return false
	}
	host, _, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	return !isLocal(host)
}

func isLocal(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

// secretKeys are settings whose value is a secret.
var secretKeys = regexp.MustCompile(`(?i)^(secrets?|api_key|seal_key|token|bearer_token|password|client_secret|value)$`)

func secretInFile(d *document, report reporter) {
	for _, section := range []map[string]component{d.receivers, d.processors, d.exporters, d.extensions} {
		for _, c := range sorted(section) {
			eachSecret(c.setting, func(at setting) {
				report(at, "write ${env:NAME}, and give the collector the variable", "%s holds a secret as it is", at.path)
			})
		}
	}
	eachLedger(d, func(e component) {
		store := e.get("store")
		if text, ok := store.text(); ok && hasPassword(text) {
			report(store, "write ${env:COUNTERSIGN_STORE}, and give the collector the variable", "the store of %s holds a password as it is", e.id)
		}
	})
}

// eachSecret goes through all below a setting.
func eachSecret(s setting, visit func(setting)) {
	for _, key := range s.keys() {
		child := s.get(key)
		if !secretKeys.MatchString(key) || key == "value" && !strings.HasSuffix(s.path, "required_header") {
			eachSecret(child, visit)
			continue
		}
		for _, one := range append(child.items(), child) {
			if text, ok := one.text(); ok && text != "" {
				visit(one)
			}
		}
	}
	for _, item := range s.items() {
		eachSecret(item, visit)
	}
}

func hasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return false
	}
	_, has := u.User.Password()
	return has
}

func storeWithoutTLS(d *document, report reporter) {
	eachLedger(d, func(e component) {
		store := e.get("store")
		text, ok := store.text()
		if !ok || !strings.HasPrefix(text, "postgres") {
			return
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || isLocal(u.Hostname()) {
			return
		}
		switch u.Query().Get("sslmode") {
		case "verify-full", "verify-ca":
			return
		}
		report(store, "add sslmode=verify-full, with sslrootcert where the authority is your own", "exporter %s does not check whom it writes to", e.id)
	})
}
