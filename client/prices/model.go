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

// at returns the price with so many tokens in the prompt; nil: none is given.
func (p *price) at(prompt int64) *big.Int {
	cost := p.base
	for _, v := range p.variants { // ordered by threshold
		if prompt > v.above {
			cost = v.cost
		}
	}
	return cost
}

func (p *price) add(v variant) {
	p.variants = append(p.variants, v)
	slices.SortFunc(p.variants, func(a, b variant) int { return cmp.Compare(a.above, b.above) })
}

// model has the prices of a model and its limits.
type model struct {
	input, output, cacheRead, cacheCreation, reasoning price
	limits                                             Limits
}

// costs are the prices of one call, all given.
type costs struct {
	input, output, cacheRead, cacheCreation, reasoning *big.Int
}

// at returns the prices of a call with so many tokens in its prompt. What has no price of its own costs what input or output
// costs.
func (m *model) at(prompt int64) costs {
	at := costs{input: m.input.at(prompt), output: m.output.at(prompt)}
	at.cacheRead = given(m.cacheRead.at(prompt), at.input)
	at.cacheCreation = given(m.cacheCreation.at(prompt), at.input)
	at.reasoning = given(m.reasoning.at(prompt), at.output)
	return at
}

func given(cost, otherwise *big.Int) *big.Int {
	if cost == nil {
		return otherwise
	}
	return cost
}

// tiersWithin returns one prompt size for each tier that a prompt of so many tokens can be in: 0, and one above each threshold.
func (m *model) tiersWithin(prompt int64) []int64 {
	sizes := []int64{0}
	for _, p := range []price{m.input, m.output, m.cacheRead, m.cacheCreation} {
		for _, v := range p.variants {
			if prompt > v.above {
				sizes = append(sizes, v.above+1)
			}
		}
	}
	return sizes
}
