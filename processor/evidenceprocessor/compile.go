package evidenceprocessor

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottllog"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/ottlvalue"
	"github.com/countersign-otel/countersign/internal/record/delivery"
)

// compiled is a whole configuration, ready to use by many goroutines.
type compiled struct {
	groups []*group
	labels []string
	// kinds are what the rules make, beside labels.
	kinds      []string
	trust      engine.Trust
	connection string
	sealer     *delivery.Sealer
}

// group are rules that share a condition: those of a mapping, or the configuration's own.
type group struct {
	label     string
	condition *ottl.Condition[logContext]
	// conditionText is how it is written.
	conditionText string
	rules         []*rule
	// index is the group's own place among the labels, for what is wrong with its condition.
	index int
	// ready: the rules are those of a mapping.
	ready bool
}

// compiler parses expressions. Errors start with the key.
type compiler struct {
	parser ottl.Parser[logContext]
	errs   []error
}

func (c *compiler) report(key string, err error) {
	if err != nil {
		c.errs = append(c.errs, fmt.Errorf("%s: %w", key, err))
	}
}

// newCompiler makes one that stays silent: what is wrong is returned.
func newCompiler() (*compiler, error) {
	parser, err := ottllog.NewParser(functions(), component.TelemetrySettings{Logger: zap.NewNop()}, ottllog.EnablePathContextNames())
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return &compiler{parser: parser}, nil
}

// take returns the errors so far, each behind a place, and forgets them.
func (c *compiler) take(place string) []error {
	var errs []error
	for _, err := range c.errs {
		errs = append(errs, fmt.Errorf("%s.%w", place, err))
	}
	c.errs = nil
	return errs
}

func (all *compiled) compileGroups(config *Config) []error {
	c, err := newCompiler()
	if err != nil {
		return []error{err}
	}
	var errs []error
	labels := map[string]string{}
	for i := range config.Mappings {
		place := fmt.Sprintf("mappings[%d]", i)
		made := c.mapping(&config.Mappings[i])
		errs = append(errs, c.take(place)...)
		if made == nil {
			continue
		}
		if other, ok := labels[made.label]; ok {
			errs = append(errs, fmt.Errorf("%s.source: %s is that of %s; every source needs its own", place, made.label, other))
		}
		labels[made.label] = place
		all.add(made)
	}
	own := &group{label: "rules"}
	for i := range config.Rules {
		place := fmt.Sprintf("rules[%d]", i)
		made := c.rule(&config.Rules[i], place, config.Trust != "")
		if other, ok := labels[made.label]; ok {
			c.report("name", fmt.Errorf("%q is the name of %s; names tell rules apart", made.label, other))
		}
		labels[made.label] = place
		errs = append(errs, c.take(place)...)
		own.rules = append(own.rules, made)
	}
	if len(own.rules) > 0 {
		all.add(own)
	}
	return errs
}

// add gives the group and its rules their places among the labels.
func (all *compiled) add(g *group) {
	g.index = len(all.labels)
	all.labels, all.kinds = append(all.labels, g.label), append(all.kinds, "fact")
	for _, r := range g.rules {
		r.index = len(all.labels)
		all.labels, all.kinds = append(all.labels, r.label), append(all.kinds, r.kind())
	}
	all.groups = append(all.groups, g)
}

// mapping compiles a ready mapping with what is different here.
func (c *compiler) mapping(config *MappingConfig) *group {
	found, err := find(config.Name)
	if err != nil {
		c.report("name", err)
		return nil
	}
	source := config.Source
	if source == "" {
		source = found.Source
	}
	if source == "" {
		c.report("source", fmt.Errorf("it is empty; the mapping %s is for any source, so name it", config.Name))
		return nil
	}
	g := &group{label: c.source(source), ready: true}
	condition := found.Condition
	if config.Condition != "" {
		condition = config.Condition
	}
	g.condition, g.conditionText = c.condition("condition", condition), condition
	first := c.expression("subject_id", config.SubjectID)
	added := c.attributes("attributes", config.Attributes)
	for i := range found.Rules {
		r := c.rule(&found.Rules[i], "", true)
		r.label = g.label + "/" + found.Rules[i].Name
		r.source = g.label
		r.firstSubject = first
		r.attributes = append(r.attributes, added...)
		g.rules = append(g.rules, r)
	}
	return g
}

// source: what agents say of themselves is no evidence.
func (c *compiler) source(text string) string {
	source, err := engine.Identifier(text)
	if err == nil && source == engine.AgentSource {
		err = fmt.Errorf("%s is what agents say of themselves, which is no evidence", engine.AgentSource)
	}
	c.report("source", err)
	return source
}

// rule compiles one rule. Whether records come that no evidence receiver
// delivered decides whether it needs a source.
func (c *compiler) rule(config *RuleConfig, place string, undelivered bool) *rule {
	r := &rule{label: config.Name}
	if r.label == "" {
		r.label = place
	}
	switch {
	case config.Source != "":
		r.source = c.source(config.Source)
	case place != "" && undelivered:
		c.report("source", errors.New("it is empty; name the system of record, because trust lets records in that no evidence receiver delivered"))
	}
	r.condition, r.conditionText = c.condition("condition", config.Condition), config.Condition
	r.watermark = c.expression("watermark", config.Watermark)
	r.forEach = c.expression("for_each", config.ForEach)
	r.factType = c.name("fact_type", config.FactType)
	r.subjectKind = c.name("subject_kind", config.SubjectKind)
	r.subjectID = c.expression("subject_id", config.SubjectID)
	r.occurredAt = c.expression("occurred_at", config.OccurredAt)
	r.rawRef = c.expression("raw_ref", config.RawRef)
	r.whole = c.expression("attributes", config.Attributes.Whole)
	r.attributes = c.attributes("attributes", config.Attributes.Values)
	for i, text := range config.Links {
		key := "links[" + strconv.Itoa(i) + "]"
		if text == "" {
			c.report(key, errEmptyExpression)
		}
		r.links = append(r.links, c.expression(key, text))
	}
	c.required(config)
	return r
}

var errEmptyExpression = errors.New("the expression is empty")

// onlyWatermark: a report is of the whole source, and of no subject in it.
func (c *compiler) onlyWatermark(config *RuleConfig) {
	for _, key := range []struct {
		name string
		set  bool
	}{
		{"for_each", config.ForEach != ""}, {"fact_type", config.FactType != ""}, {"subject_id", config.SubjectID != ""},
		{"subject_kind", config.SubjectKind != ""}, {"occurred_at", config.OccurredAt != ""}, {"raw_ref", config.RawRef != ""},
		{"attributes", config.Attributes.Whole != "" || len(config.Attributes.Values) > 0}, {"links", len(config.Links) > 0},
	} {
		if key.set {
			c.report(key.name, errors.New("a rule with watermark reports how far its source has come, and nothing else; make it another rule"))
		}
	}
}

func (c *compiler) required(config *RuleConfig) {
	if config.Watermark != "" {
		c.onlyWatermark(config)
		return
	}
	if config.SubjectID == "" {
		c.report("subject_id", errors.New(`it is empty; name the record that the fact is about, like Body("order_id")`))
	}
	if config.FactType != "" {
		return
	}
	if len(config.Links) == 0 {
		c.report("fact_type", errors.New("it is empty, and there are no links; say what happened"))
	}
	for _, key := range []struct {
		name string
		set  bool
	}{
		{"occurred_at", config.OccurredAt != ""}, {"raw_ref", config.RawRef != ""},
		{"attributes", config.Attributes.Whole != "" || len(config.Attributes.Values) > 0},
	} {
		if key.set {
			c.report(key.name, errors.New("without fact_type there is only a link, which has none; remove it"))
		}
	}
}

func (c *compiler) condition(key, text string) *ottl.Condition[logContext] {
	if text == "" {
		return nil
	}
	condition, err := c.parser.ParseCondition(text)
	c.report(key, err)
	return condition
}

func (c *compiler) expression(key, text string) expression {
	e, err := compileExpression(c.parser, text)
	if err != nil {
		c.report(key, fmt.Errorf("%s: %w", text, err))
	}
	return e
}

// nameAsItIs is a name that stands for itself; paths of OTTL start with their context.
var nameAsItIs = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:-]*$`)

func (c *compiler) name(key, text string) expression {
	context, _, dotted := strings.Cut(text, ".")
	switch context {
	case "log", "resource", "scope", "instrumentation_scope", "otelcol":
	default:
		dotted = false
	}
	if dotted || !nameAsItIs.MatchString(text) {
		return c.expression(key, text)
	}
	name, err := engine.Identifier(text)
	c.report(key, err)
	return expression{literal: name}
}

// attributes: contracts read them by identifier.
func (c *compiler) attributes(key string, values map[string]string) []namedValue {
	var all []namedValue
	first := map[string]string{}
	for _, name := range ottlvalue.SortedNames(values) {
		folded, err := engine.Identifier(name)
		if err != nil {
			c.report(key, err)
			continue
		}
		if other, ok := first[folded]; ok {
			c.report(key, fmt.Errorf("%q and %q are the same name; case does not count", other, name))
		}
		first[folded] = name
		if values[name] == "" {
			c.report(key+"."+name, errEmptyExpression)
			continue
		}
		all = append(all, namedValue{folded, c.expression(key+"."+name, values[name])})
	}
	return all
}
