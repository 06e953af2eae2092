package agentactionprocessor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gobwas/glob"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottllog"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspan"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/ottlvalue"
	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
	"github.com/countersign-otel/countersign/processor/agentactionprocessor/dialect"
)

// Contexts of OTTL that rules are compiled for.
type (
	spanContext = *ottlspan.TransformContext
	logContext  = *ottllog.TransformContext
)

// compiled is a whole configuration, ready to use by many goroutines.
type compiled struct {
	recognizer *dialect.Recognizer
	heads      []*ruleHead
	// A rule stands in one of these or, when its expressions name neither span. nor log., in both.
	spanRules []rule[spanContext]
	logRules  []rule[logContext]
}

// compileRules parses every rule for spans and for log records. A rule is
// wrong when it parses for neither.
func compileRules(configs []RuleConfig) (*compiled, []error) {
	spans, logs, err := newParsers()
	if err != nil {
		return nil, []error{err}
	}
	all := &compiled{}
	var errs []error
	for i := range configs {
		config := &configs[i]
		head, headErrs := compileHead(config, i)
		spanRule, spanErrs := compileRule(spans, config, head)
		logRule, logErrs := compileRule(logs, config, head)
		all.heads = append(all.heads, head)
		if len(spanErrs) == 0 {
			all.spanRules = append(all.spanRules, spanRule)
		}
		if len(logErrs) == 0 {
			all.logRules = append(all.logRules, logRule)
		}
		if len(spanErrs) > 0 && len(logErrs) > 0 {
			headErrs = append(headErrs, likelier(config, spanErrs, logErrs)...)
		}
		for _, err := range headErrs {
			errs = append(errs, fmt.Errorf("rules[%d].%w", i, err))
		}
	}
	return all, append(errs, sameNames(configs)...)
}

// newParsers make parsers that stay silent: what is wrong is returned.
func newParsers() (*ottl.Parser[spanContext], *ottl.Parser[logContext], error) {
	settings := component.TelemetrySettings{Logger: zap.NewNop()}
	spanFunctions := functions[spanContext]()
	root := ottlfuncs.NewIsRootSpanFactory()
	spanFunctions[root.Name()] = root
	spans, err := ottlspan.NewParser(spanFunctions, settings, ottlspan.EnablePathContextNames())
	if err != nil {
		return nil, nil, fmt.Errorf("rules: %w", err)
	}
	logs, err := ottllog.NewParser(functions[logContext](), settings, ottllog.EnablePathContextNames())
	if err != nil {
		return nil, nil, fmt.Errorf("rules: %w", err)
	}
	return &spans, &logs, nil
}

// likelier are the errors of the kind of telemetry that the rule was written for.
func likelier(config *RuleConfig, spanErrs, logErrs []error) []error {
	texts := append(config.expressions(), config.Condition)
	for _, text := range config.Params.Values {
		texts = append(texts, text)
	}
	all := strings.Join(texts, "\n")
	if strings.Contains(all, "log.") && !strings.Contains(all, "span.") {
		return logErrs
	}
	return spanErrs
}

func (c *RuleConfig) expressions() []string {
	return []string{c.ActionID, c.SubjectID, c.WorkflowID, c.AgentID, c.Channel, c.Compensates, c.RequestedAt}
}

func sameNames(configs []RuleConfig) []error {
	first := map[string]int{}
	var errs []error
	for i := range configs {
		name := configs[i].Name
		if name == "" {
			continue
		}
		if j, ok := first[name]; ok {
			errs = append(errs, fmt.Errorf("rules[%d].name: %q is the name of rules[%d]; names tell rules apart", i, name, j))
			continue
		}
		first[name] = i
	}
	return errs
}

// compileHead checks what is no expression. Errors start with the key.
func compileHead(config *RuleConfig, index int) (*ruleHead, []error) {
	head := &ruleHead{
		index: index, name: config.Name, tool: config.Tool, version: config.ContractVersion,
		actionType: config.ActionType, paramsMode: config.Params.Mode,
	}
	if head.paramsMode == "" && config.Params.Values == nil {
		head.paramsMode = allParams
	}
	var errs []error
	report := func(key string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	report("tool", head.compileTool())
	var err error
	if config.VerifiedAction != "" {
		head.verified, err = verifiedactions.ParseType(config.VerifiedAction)
		report("verified_action", err)
	}
	if config.Tool == "" && config.VerifiedAction == "" && config.Condition == "" {
		report("tool", errors.New("it is empty, as are verified_action and condition; say which calls the rule is for"))
	}
	if config.Contract == "" {
		report("contract", errors.New("it is empty; name the contract that the actions are recorded under"))
	} else {
		head.contract, err = engine.Identifier(config.Contract)
		report("contract", err)
	}
	if config.ContractVersion < 0 {
		report("contract_version", fmt.Errorf("it is %d; write 1 or more, or leave it out for the latest", config.ContractVersion))
	}
	if config.SubjectID == "" {
		report("subject_id", errors.New(`it is empty; name the record that the action changes, like ToolArgument("order_id")`))
	}
	if config.SubjectKind != "" {
		head.kind, err = engine.Identifier(config.SubjectKind)
		report("subject_kind", err)
	}
	if config.ActionType != "" {
		report("action_type", engine.CheckOpaque("action_type", config.ActionType))
	}
	return head, append(errs, checkParamNames(config.Params.Values)...)
}

func (h *ruleHead) compileTool() error {
	if !strings.ContainsAny(h.tool, `*?[]{}\`) {
		return nil
	}
	pattern, err := glob.Compile(h.tool)
	if err != nil {
		return fmt.Errorf("%q is no pattern: %w", h.tool, err)
	}
	h.pattern = pattern
	return nil
}

// checkParamNames: contracts read params by identifier.
func checkParamNames(values map[string]string) []error {
	var errs []error
	first := map[string]string{}
	for _, name := range ottlvalue.SortedNames(values) {
		folded, err := engine.Identifier(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("params: %w", err))
			continue
		}
		if other, ok := first[folded]; ok {
			errs = append(errs, fmt.Errorf("params: %q and %q are the same name; case does not count", other, name))
		}
		first[folded] = name
		if values[name] == "" {
			errs = append(errs, fmt.Errorf("params.%s: the expression is empty", name))
		}
	}
	return errs
}

// compileRule parses the expressions. Errors start with the key.
func compileRule[K any](parser *ottl.Parser[K], config *RuleConfig, head *ruleHead) (rule[K], []error) {
	r := rule[K]{ruleHead: head}
	var errs []error
	parse := func(key, text string) expression[K] {
		e, err := compileExpression(parser, text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %s: %w", key, text, err))
		}
		return e
	}
	if config.Condition != "" {
		condition, err := parser.ParseCondition(config.Condition)
		if err != nil {
			errs = append(errs, fmt.Errorf("condition: %w", err))
		}
		r.condition, r.conditionText = condition, config.Condition
	}
	r.actionID = parse("action_id", config.ActionID)
	r.subjectID = parse("subject_id", config.SubjectID)
	r.requestedAt = parse("requested_at", config.RequestedAt)
	r.compensates = parse("compensates", config.Compensates)
	for _, f := range []struct {
		name, text string
		into       func(*engine.Action) *string
	}{
		{"workflow_id", config.WorkflowID, func(a *engine.Action) *string { return &a.WorkflowID }},
		{"agent_id", config.AgentID, func(a *engine.Action) *string { return &a.AgentID }},
		{"channel", config.Channel, func(a *engine.Action) *string { return &a.Channel }},
	} {
		if e := parse(f.name, f.text); e.configured() {
			r.optional = append(r.optional, field[K]{f.name, e, f.into})
		}
	}
	for _, name := range ottlvalue.SortedNames(config.Params.Values) {
		if text := config.Params.Values[name]; text != "" {
			r.params = append(r.params, param[K]{engine.Fold(name), parse("params."+name, text)})
		}
	}
	return r, errs
}
