package collectorcheck

import (
	"slices"
	"strings"
)

var forging = []Rule{
	{
		"agent-telemetry-as-evidence",
		"whoever can send telemetry can then write evidence of its own acts",
		agentTelemetryAsEvidence,
	},
	{
		"unguarded-attributes",
		"a sender can write records by itself, as countersign. attributes that no processor of this project has removed",
		unguardedAttributes,
	},
	{
		"verdicts-among-agents",
		"verdicts would be read as agents' telemetry, and agents could send verdicts",
		verdictsAmongAgents,
	},
	{
		"trust-not-earned",
		"independent is what was read from the system of record itself; here whoever can write to the way in between is believed as much",
		trustNotEarned,
	},
	{
		"unauthenticated-webhook",
		"whoever finds the address can send events",
		unauthenticatedWebhook,
	},
}

// agentReceivers take telemetry from whoever can reach them.
var agentReceivers = []string{
	"otlp", "verifiedactions", "otelarrow", "zipkin", "jaeger", "opencensus", "skywalking", "datadog", "loki", "splunkhec",
	"signalfx", "sapm", "fluentforward", "syslog", "tcplog", "udplog", "statsd", "influxdb", "prometheusremotewrite", "awsxray",
	"faro", "libhoney", "carbon", "collectd", "wavefront", "cloudfoundry", "awsfirehose",
}

// reachable says why agents can reach a receiver, or nothing.
func (d *document) reachable(r used) string {
	if slices.Contains(agentReceivers, r.kind()) {
		return "takes telemetry from whoever can reach it"
	}
	for i := range d.pipelines {
		p := &d.pipelines[i]
		ofAgents := slices.ContainsFunc(p.processors, ofKind("agentaction")) || slices.ContainsFunc(p.ledgers(), isRecorder)
		if !ofAgents {
			continue
		}
		for _, o := range d.origins(p) {
			if o.receiver.id == r.id {
				return "also feeds the agents' pipeline " + p.name
			}
		}
	}
	return ""
}

// believesSealed says that of what arrives only records that an evidence
// receiver sealed with a shared key become facts.
func believesSealed(u used) bool {
	return u.kind() == "evidence" && u.get("seal_key").there() && !u.get("trust").there()
}

func agentTelemetryAsEvidence(d *document, report reporter) {
	for i := range d.pipelines {
		p := &d.pipelines[i]
		for _, e := range p.ledgers() {
			if !isEvidence(e) {
				continue
			}
			for _, o := range d.origins(p) {
				why := d.reachable(o.receiver)
				if why == "" || o.passes(believesSealed) {
					continue
				}
				report(o.receiver.at,
					"give systems of record a receiver and a pipeline of their own; between collectors, set seal_key on the evidence receiver and the evidence processor, and no trust",
					"receiver %s %s, and reaches %s, which writes evidence, in pipeline %s%s", o.receiver.id, why, e.id, p.name, via(o.through))
			}
		}
	}
}

func via(connectors []string) string {
	if len(connectors) == 0 {
		return ""
	}
	return " through " + strings.Join(connectors, ", ")
}

// unguardedAttributes: agent_action and evidence remove what came from outside under our prefix.
func unguardedAttributes(d *document, report reporter) {
	for i := range d.pipelines {
		p := &d.pipelines[i]
		for _, e := range p.ledgers() {
			for _, o := range d.origins(p) {
				if o.passes(ofKind("agentaction", "evidence")) {
					continue
				}
				processor := "agent_action"
				if isEvidence(e) {
					processor = "evidence"
				}
				report(o.receiver.at, "put the processor "+processor+" before the exporter",
					"what %s receives reaches %s in pipeline %s past no processor of this project%s", o.receiver.id, e.id, p.name, via(o.through))
			}
		}
	}
}

// verdictsAmongAgents goes by the name that the examples use.
func verdictsAmongAgents(d *document, report reporter) {
	const remedy = "give the receiver pipelines of its own for traces and logs, without agent_action, evidence and ledger"
	inUse := map[string]bool{}
	for i := range d.pipelines {
		p := &d.pipelines[i]
		for _, o := range d.origins(p) {
			if !forVerdicts(o.receiver.id) {
				continue
			}
			inUse[o.receiver.id] = true
			switch {
			case o.passes(ofKind("agentaction", "evidence")) || len(p.ledgers()) > 0:
				report(o.receiver.at, remedy, "receiver %s is named for verdicts and feeds what records, in pipeline %s%s", o.receiver.id, p.name, via(o.through))
			case slices.ContainsFunc(p.receivers, func(r used) bool { return r.kind() == "otlp" && !forVerdicts(r.id) }):
				report(o.receiver.at, remedy, "receiver %s is named for verdicts and shares pipeline %s with others", o.receiver.id, p.name)
			}
		}
	}
	for _, r := range sorted(d.receivers) {
		if forVerdicts(r.id) && !inUse[r.id] {
			report(r.setting, remedy, "receiver %s is named for verdicts and in no pipeline, so that it does not start", r.id)
		}
	}
}

func forVerdicts(id string) bool { return strings.Contains(strings.ToLower(id), "verdict") }

func trustNotEarned(d *document, report reporter) {
	for i := range d.pipelines {
		for _, o := range d.origins(&d.pipelines[i]) {
			switch o.receiver.kind() {
			case "evidence", "sqlquery": // a signature, and a poll of the database itself
				continue
			}
			for _, p := range o.passed {
				if p.kind() == "evidence" && p.get("trust").is("independent") {
					report(p.get("trust"), "write trust: shared",
						"processor %s believes what comes from %s as if it were the system of record", p.id, o.receiver.id)
				}
			}
		}
	}
}

func unauthenticatedWebhook(d *document, report reporter) {
	for _, r := range sorted(d.receivers) {
		if r.kind() != "webhookevent" || r.elsewhere() {
			continue
		}
		if !r.get("required_header", "value").there() && !r.get("hmac_signature").there() && !r.get("auth").there() && !r.get("tls", "client_ca_file").there() {
			report(r.setting, "set required_header with a secret value, or use the receiver evidence, which checks signatures",
				"receiver %s asks nobody who they are", r.id)
		}
	}
}
