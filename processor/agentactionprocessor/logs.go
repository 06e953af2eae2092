package agentactionprocessor

import (
	"context"
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottllog"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/processor/agentactionprocessor/dialect"
)

// logs annotates one batch of log records.
func (p *annotator) logs(ctx context.Context, ld plog.Logs) (plog.Logs, error) {
	scan := newScanner(&p.metadata)
	scan.logs(ld)
	found := p.recognizer.Logs(ld)
	if len(found.Calls) == 0 && len(scan.found) == 0 {
		p.counters.add(ctx, &tally{removed: int64(scan.stripped)})
		return ld, nil
	}
	b := p.begin(ctx)
	b.removed = int64(scan.stripped)
	for i := range found.Calls {
		p.annotateLog(b, ld, &found.Calls[i])
	}
	for _, m := range scan.found {
		p.annotateVerifiedLog(b, logAt(ld, m.Position))
	}
	p.counters.add(ctx, &b.tally)
	return ld, nil
}

// logPlace is a log record with what stands above it.
type logPlace struct {
	resource plog.ResourceLogs
	scope    plog.ScopeLogs
	entry    plog.LogRecord
}

func logAt(ld plog.Logs, at dialect.Position) logPlace {
	resource := ld.ResourceLogs().At(at.Resource)
	scope := resource.ScopeLogs().At(at.Scope)
	return logPlace{resource, scope, scope.LogRecords().At(at.Item)}
}

func (p *annotator) annotateLog(b *batch, ld plog.Logs, found *dialect.Call) {
	at := logAt(ld, found.At)
	if strings.HasPrefix(at.scope.Scope().Name(), ownScope) {
		return
	}
	tc := ottllog.NewTransformContext(at.resource, at.scope, at.entry)
	defer tc.Close()
	annotate(b, p.logRules, tc, &call{ToolCall: found.ToolCall}, at.entry.Attributes())
}

// annotateVerifiedLog records the VerifiedActions that a log record carries.
func (p *annotator) annotateVerifiedLog(b *batch, at logPlace) {
	calls, errs := p.metadata.callsOfLog(at)
	b.reportMetadata(at.entry.Attributes(), errs)
	if len(calls) == 0 {
		return
	}
	tc := ottllog.NewTransformContext(at.resource, at.scope, at.entry)
	defer tc.Close()
	for i := range calls {
		annotate(b, p.logRules, tc, &calls[i], at.entry.Attributes())
	}
}
