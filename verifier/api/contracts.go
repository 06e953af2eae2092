package api

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/seal"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/view"
)

// ContractList is published contracts.
type ContractList struct {
	Contracts []ContractVersion `json:"contracts"`
}

// ContractVersion is one published version.
type ContractVersion struct {
	ID          string         `json:"id"`
	Version     int            `json:"version"`
	Hash        string         `json:"hash" doc:"SHA-256 of the content, hex; it does not change under one version"`
	Window      string         `json:"window,omitempty" doc:"settlement window as the contract writes it; absent where this version of Countersign cannot read the document" example:"15m"`
	PublishedAt engine.Instant `json:"published_at"`
	// Document is left out of lists.
	Document string `json:"document,omitempty" doc:"the YAML text"`
}

// ListContracts is GET /contracts: the latest version of each.
func (s *Service) ListContracts(ctx context.Context, caller Caller) (ContractList, error) {
	return s.contracts(ctx, caller, "")
}

// Contract is GET /contracts/{id}: all versions of one contract, with their texts.
func (s *Service) Contract(ctx context.Context, caller Caller, id string) (ContractList, error) {
	list, err := s.contracts(ctx, caller, engine.Fold(id))
	if err == nil && len(list.Contracts) == 0 {
		return ContractList{}, notFound("no contract %q is published; contracts list, or GET /v1/contracts, names those that are", clip(id))
	}
	return list, err
}

func (s *Service) contracts(ctx context.Context, caller Caller, id string) (ContractList, error) {
	if err := caller.need(keys.Inspect); err != nil {
		return ContractList{}, err
	}
	var documents []ledger.ContractDocument
	err := s.view(ctx, func(tx ledger.Tx) (err error) {
		documents, err = tx.ListContracts(ctx, id)
		return err
	})
	list := ContractList{Contracts: make([]ContractVersion, 0, len(documents))}
	for _, d := range documents {
		shown := ContractVersion{ID: d.ID, Version: d.Version, Hash: d.Hash, PublishedAt: d.PublishedAt}
		if c, err := ledger.ParseDocument(d); err == nil {
			shown.Window = c.WindowText
		}
		if id != "" {
			shown.Document = string(d.Document)
		}
		list.Contracts = append(list.Contracts, shown)
	}
	return list, err
}

// Definition is what anybody may know of a contract (AC "Full example": kind,
// lens_labels, window and rules by section).
type Definition struct {
	ID             string            `json:"id"`
	Version        int               `json:"version"`
	Hash           string            `json:"hash"`
	Kind           string            `json:"kind" example:"action"`
	VendorDisplay  string            `json:"vendor_display"`
	ActionType     string            `json:"action_type"`
	OutcomeType    string            `json:"outcome_type"`
	SubjectKind    string            `json:"subject_kind"`
	Description    string            `json:"description"`
	SourceCitation Citation          `json:"source_citation"`
	LensLabels     map[string]string `json:"lens_labels" doc:"the engine's lenses and how they are shown"`
	Window         string            `json:"window"`
	WindowSeconds  int64             `json:"window_seconds"`
	Rules          Rules             `json:"rules"`
	UnverifiableIf *Condition        `json:"unverifiable_if"`
	Exclusions     []Condition       `json:"exclusions"`
}

// Citation says where the policy comes from.
type Citation struct {
	URL       string `json:"url"`
	Retrieved string `json:"retrieved"`
	Title     string `json:"title"`
	Notes     string `json:"notes"`
}

// Rules are the checks by section, each in contract order.
type Rules struct {
	Preconditions    []Rule `json:"preconditions"`
	Limits           []Rule `json:"limits"`
	AggregateLimits  []Rule `json:"aggregate_limits"`
	ForbiddenEffects []Rule `json:"forbidden_effects"`
	ReversedBy       []Rule `json:"reversed_by"`
	ExpectedEffects  []Rule `json:"expected_effects"`
}

// Rule is one check in words.
type Rule struct {
	Code        string  `json:"code" doc:"the reason code when it decides"`
	Description string  `json:"description"`
	Explanation string  `json:"explanation"`
	Message     *string `json:"message"`
}

// Condition is a condition tree in words: any, all and not of conditions, or one primitive.
type Condition struct {
	Operator    string      `json:"operator" enum:"any,all,not,leaf"`
	Explanation string      `json:"explanation,omitempty"`
	Conditions  []Condition `json:"conditions,omitempty"`
}

// Definition is GET /public/definitions/{id}: the latest version. It needs no key.
func (s *Service) Definition(ctx context.Context, id string) (Definition, error) {
	var c *contract.Contract
	err := s.view(ctx, func(tx ledger.Tx) (err error) {
		c, err = s.Contracts.Get(ctx, tx, ledger.ContractRef{ID: engine.Fold(id)})
		if errors.Is(err, ledger.ErrUnknownContract) {
			return notFound("no contract %q is published", clip(id))
		}
		return err
	})
	if err != nil {
		return Definition{}, err
	}
	return definitionOf(c), nil
}

func definitionOf(c *contract.Contract) Definition {
	d := Definition{
		ID: c.ID, Version: c.Version, Hash: c.Hash, Kind: "action",
		VendorDisplay: c.VendorDisplay, ActionType: c.ActionType, OutcomeType: c.OutcomeType,
		SubjectKind: c.SubjectKind, Description: c.Description, SourceCitation: Citation(c.Citation),
		LensLabels: map[string]string{"vendor": string(engine.Outcome), "strict": string(engine.Policy)},
		Window:     c.WindowText, WindowSeconds: int64(c.Window),
		Rules: Rules{
			rules(c, contract.Preconditions), rules(c, contract.Limits), rules(c, contract.AggregateLimits),
			rules(c, contract.ForbiddenEffects), rules(c, contract.ReversedBy), rules(c, contract.ExpectedEffects),
		},
		Exclusions: conditions(c, c.Exclusions),
	}
	if c.UnverifiableIf != nil {
		d.UnverifiableIf = &conditions(c, []*contract.Tree{c.UnverifiableIf})[0]
	}
	return d
}

func rules(c *contract.Contract, section contract.Section) []Rule {
	list := []Rule{}
	for _, check := range c.Checks {
		if check.Section != section {
			continue
		}
		rule := Rule{Code: check.Call.Code(true), Description: check.Call.Describe(), Explanation: check.Call.Explain()}
		if check.Message != "" {
			rule.Message = &check.Message
		}
		list = append(list, rule)
	}
	return list
}

func conditions(c *contract.Contract, trees []*contract.Tree) []Condition {
	list := make([]Condition, 0, len(trees))
	for _, tree := range trees {
		if tree.Operator == contract.Leaf {
			list = append(list, Condition{Operator: string(tree.Operator), Explanation: c.Calls[tree.Call].Explain()})
			continue
		}
		list = append(list, Condition{Operator: string(tree.Operator), Conditions: conditions(c, tree.Children)})
	}
	return list
}

// PublicVerdict is what anybody who has a hash may learn: the raw value, and no tenant's data.
type PublicVerdict struct {
	Hash            string            `json:"hash"`
	RawVerdict      engine.RawVerdict `json:"raw_verdict" enum:"VERIFIED,NOT_VERIFIED,UNVERIFIABLE"`
	Lens            engine.Lens       `json:"lens" enum:"outcome,policy"`
	ContractID      string            `json:"contract_id"`
	ContractVersion int               `json:"contract_version"`
	ComputedAt      engine.Instant    `json:"computed_at"`
}

// PublicVerdict is GET /public/verdicts/{hash}. It needs no key.
func (s *Service) PublicVerdict(ctx context.Context, text string) (PublicVerdict, error) {
	decoded, err := hex.DecodeString(text)
	if err != nil || len(decoded) != 32 {
		return PublicVerdict{}, badParameter("hash", "is not a hash of 64 hex digits")
	}
	var found ledger.PublicVerdict
	err = s.view(ctx, func(tx ledger.Tx) (err error) {
		found, err = tx.VerdictByHash(ctx, [32]byte(decoded))
		if errors.Is(err, ledger.ErrNotFound) {
			return notFound("no verdict with this hash was stored")
		}
		return err
	})
	if err != nil {
		return PublicVerdict{}, err
	}
	// Who asks knows nothing but the hash, so that nothing but what it covers is told.
	said, err := seal.Open(found.Document, [32]byte(decoded))
	if err != nil {
		return PublicVerdict{}, s.asProblem(ctx, err)
	}
	return PublicVerdict{hex.EncodeToString(decoded), said.Raw, said.Lens, said.ContractID, said.ContractVersion, found.ComputedAt}, nil
}

// OrphanList is effects that no recorded action explains, newest first.
type OrphanList struct {
	Orphans []view.Fact `json:"orphans"`
	// Effects are the types that were looked for.
	Effects []EffectType `json:"effects"`
}

// EffectType is a type of fact that contracts expect; source null means any.
type EffectType struct {
	Source *string `json:"source"`
	Type   string  `json:"type"`
}

// OrphanQuery narrows the report of orphans.
type OrphanQuery struct {
	Source       string
	Since, Until *engine.Instant
	// Limit is 1 to 1000.
	Limit int
}

// Orphans is GET /reports/orphans: facts of the types that contracts expect as
// effects, for subjects without an action that explains them, links honoured.
func (s *Service) Orphans(ctx context.Context, caller Caller, query OrphanQuery) (OrphanList, error) {
	if err := caller.need(keys.Inspect); err != nil {
		return OrphanList{}, err
	}
	list := OrphanList{Orphans: []view.Fact{}, Effects: []EffectType{}}
	err := s.view(ctx, func(tx ledger.Tx) error {
		effects, err := expected(ctx, tx, query.Source)
		if err != nil || len(effects) == 0 {
			return err
		}
		facts, err := tx.Orphans(ctx, caller.Tenant, ledger.OrphanFilter{Effects: effects, Since: query.Since, Until: query.Until, Limit: query.Limit})
		if err != nil {
			return err
		}
		list = orphanList(effects, facts)
		return nil
	})
	return list, err
}

func orphanList(effects []ledger.EffectType, facts []engine.Fact) OrphanList {
	list := OrphanList{Orphans: make([]view.Fact, len(facts)), Effects: make([]EffectType, len(effects))}
	for i, e := range effects {
		list.Effects[i].Type = e.Type
		if e.Source != "" {
			list.Effects[i].Source = &effects[i].Source
		}
	}
	for i, f := range facts {
		list.Orphans[i] = view.FactOf(f)
	}
	return list
}

// expected are the effects that the latest versions of all contracts expect,
// narrowed to one source where that is asked for.
func expected(ctx context.Context, tx ledger.Tx, source string) ([]ledger.EffectType, error) {
	documents, err := tx.ListContracts(ctx, "")
	if err != nil {
		return nil, err
	}
	return ledger.ExpectedEffects(documents, source)
}
