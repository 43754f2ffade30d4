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

func (p *price) add(v variant) {
	p.variants = append(p.variants, v)
	slices.SortFunc(p.variants, func(a, b variant) int { return cmp.Compare(a.above, b.above) })
}

// rates are the prices of one service tier.
type rates struct {
	input, output, cacheRead, cacheCreation, reasoning price
}

// named returns where the price of this name is kept, nil for other names.
func (r *rates) named(member string) *price {
	switch member {
	case "input_cost_per_token":
		return &r.input
	case "output_cost_per_token":
		return &r.output
	case "cache_read_input_token_cost":
		return &r.cacheRead
	case "cache_creation_input_token_cost":
		return &r.cacheCreation
	case "output_cost_per_reasoning_token":
		return &r.reasoning
	}
	return nil
}

func (r *rates) all() []*price {
	return []*price{&r.input, &r.output, &r.cacheRead, &r.cacheCreation, &r.reasoning}
}

// model has the prices of a model and its limits.
type model struct {
	tiers   [tierCount]rates
	limits  Limits
	reasons bool
}

// costs are the prices of one call, all given.
type costs struct {
	input, output, cacheRead, cacheCreation, reasoning *big.Int
}

// at returns the prices of a call with so many tokens in its prompt in a tier.
func (m *model) at(t tier, prompt int64) costs {
	own, standard := &m.tiers[t], &m.tiers[standardTier]
	input, output := own.input.orStandard(&standard.input, prompt), own.output.orStandard(&standard.output, prompt)
	// A part of input or output without a price in the tier costs what it costs in the standard one, or what input or output costs in
	// this tier if that is dearer. Without any price of its own it costs what input or output costs.
	part := func(p, standard, whole *price, costOfWhole *big.Int) *big.Int {
		cost := p.orStandard(standard, prompt)
		switch {
		case cost == nil:
			return costOfWhole
		case !p.isGiven(prompt) && whole.isGiven(prompt):
			return highest(cost, costOfWhole)
		}
		return cost
	}
	return costs{
		input: input, output: output,
		cacheRead:     part(&own.cacheRead, &standard.cacheRead, &own.input, input),
		cacheCreation: part(&own.cacheCreation, &standard.cacheCreation, &own.input, input),
		reasoning:     part(&own.reasoning, &standard.reasoning, &own.output, output),
	}
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
		for _, p := range m.tiers[t].all() {
			for _, v := range p.variants {
				if prompt > v.above {
					sizes = append(sizes, v.above+1)
				}
			}
		}
	}
	return sizes
}
