package ledger

import (
	"errors"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
)

// ExpectedEffects are the types of facts that contracts expect as effects, each
// once, in the order of the contracts. A source that is not empty narrows them;
// an effect of any source then is one of that source. Contracts that this
// program cannot read are left out, and named in the error: what the others
// expect is returned all the same.
func ExpectedEffects(documents []ContractDocument, source string) (effects []EffectType, err error) {
	seen := map[EffectType]bool{}
	for _, d := range documents {
		c, unread := ParseDocument(d)
		if unread != nil {
			err = errors.Join(err, unread)
			continue
		}
		for _, check := range c.Checks {
			effect, ok := expectedEffect(check, source)
			if ok && !seen[effect] {
				seen[effect] = true
				effects = append(effects, effect)
			}
		}
	}
	return effects, err
}

func expectedEffect(check contract.Check, source string) (effect EffectType, ok bool) {
	call, ok := check.Call.(primitive.Effect)
	if !ok || check.Section != contract.ExpectedEffects {
		return EffectType{}, false
	}
	effect.Source, effect.Type = call.EffectType()
	if source == "" {
		return effect, true
	}
	if effect.Source != "" && effect.Source != source {
		return EffectType{}, false
	}
	effect.Source = source
	return effect, true
}
