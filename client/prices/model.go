package prices

import (
	"cmp"
	"math/big"
	"slices"
)

// price is what a token of one kind costs. Prompts above a threshold may have another price.
type price struct {
	base     *big.Int // nil: not given
	variants []variant
}

// mostVariants bounds the thresholds of a price: every call goes through them.
const mostVariants = 16

// variant is the price of a call whose prompt has more than above tokens.
type variant struct {
	above int64
	cost  *big.Int
}

// at returns the price with so many tokens in the prompt, and the threshold above which it applies; nil: none is given.
func (p *price) at(prompt int64) (cost *big.Int, above int64) {
	cost, above = p.base, -1
	for _, v := range p.variants { // ordered by threshold
		if prompt > v.above {
			cost, above = v.cost, v.above
		}
	}
	return cost, above
}

// add adds a variant. LiteLLM has two names for the one of a tier above a threshold: the dearer one counts.
func (p *price) add(v variant) {
	if same := slices.IndexFunc(p.variants, func(one variant) bool { return one.above == v.above }); same >= 0 {
		p.variants[same].cost = highest(v.cost, p.variants[same].cost)
		return
	}
	p.variants = append(p.variants, v)
	slices.SortFunc(p.variants, func(a, b variant) int { return cmp.Compare(a.above, b.above) })
}

// The kinds of tokens.
const (
	input = iota
	output
	cacheRead
	cacheCreation
	hourCacheCreation
	reasoning
	kinds
)

// kindNames are the names of their prices.
var kindNames = [kinds]string{
	"input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost", "cache_creation_input_token_cost",
	"cache_creation_input_token_cost_above_1hr", "output_cost_per_reasoning_token",
}

// wholes are the kinds of which others are a part.
var wholes = [kinds]int{cacheRead: input, cacheCreation: input, hourCacheCreation: input, reasoning: output}

// rates are the prices of one service tier, by the kind of token.
type rates [kinds]price

// model has the prices of a model and its limits.
type model struct {
	tiers   [tierCount]rates
	limits  Limits
	reasons bool
}

// costs are the prices of one call by the kind of token, all given.
type costs [kinds]*big.Int

// at returns the prices of a call with so many tokens in its prompt in a tier.
func (m *model) at(t tier, prompt int64) costs {
	own, standard := &m.tiers[t], &m.tiers[standardTier]
	var all costs
	for kind := range all {
		all[kind] = own[kind].orStandard(&standard[kind], prompt)
	}
	// A part of input or output without a price in the tier costs what it costs in the standard one, or what input or output costs in
	// this tier if that is dearer. Without any price of its own it costs what input or output costs.
	for part := cacheRead; part < kinds; part++ {
		whole := wholes[part]
		switch {
		case all[part] == nil:
			all[part] = all[whole]
		case !own[part].isGiven(prompt) && own[whole].isGiven(prompt):
			all[part] = highest(all[part], all[whole])
		}
	}
	return all
}

func (p *price) isGiven(prompt int64) bool {
	cost, _ := p.at(prompt)
	return cost != nil
}

// orStandard returns the price in a tier: the standard one where the tier has none, and above a threshold that only the standard
// price has if it is dearer. nil: neither is given.
func (p *price) orStandard(standard *price, prompt int64) *big.Int {
	own, above := p.at(prompt)
	otherwise, standardAbove := standard.at(prompt)
	switch {
	case own == nil:
		return otherwise
	case otherwise != nil && standardAbove > above:
		return highest(own, otherwise)
	}
	return own
}

// promptsWithin returns one prompt size for each threshold that a prompt of so many tokens can exceed: 0, and one above each.
func (m *model) promptsWithin(prompt int64) []int64 {
	sizes := []int64{0}
	for t := range m.tiers {
		for kind := range m.tiers[t] {
			for _, v := range m.tiers[t][kind].variants {
				if prompt > v.above {
					sizes = append(sizes, v.above+1)
				}
			}
		}
	}
	return sizes
}
