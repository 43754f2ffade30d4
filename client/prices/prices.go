// Package prices reads what models cost per token and computes the cost of calls, exact to the micro-dollar.
//
// A table is the JSON that LiteLLM keeps and many tools read: an object from the model's name to its costs in USD per token and
// its limits in tokens.
//
//	{"gpt-4.1": {"input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06, "max_input_tokens": 1047576}}
//
// Costs are exact decimals. The cost of a call is one exact sum, rounded up to the micro-dollar once. docs/prices.md has the
// whole format.
package prices

import (
	"errors"
	"math/big"

	"remit/money"
)

// MaxTokens is the largest count of one kind of token: 2^53 - 1, which every SDK can hold.
const MaxTokens = 1<<53 - 1

// ErrUsage: a count of tokens is below 0 or above MaxTokens, or the cost is above money.Max, or tokens are written to a cache for an
// hour and the model has no price of that.
var ErrUsage = errors.New("prices: token counts must be from 0 to 2^53-1, of kinds that have a price, and cost at most 1000000000 USD")

// Usage is what a call used, in tokens. Each token counts in one field only, and each field is from 0 to MaxTokens.
type Usage struct {
	Input                  int64 `json:"input"`                     // neither read from a cache nor written to one
	CachedInput            int64 `json:"cached_input"`              // read from a cache
	CacheCreationInput     int64 `json:"cache_creation_input"`      // written to a cache, but not for an hour
	HourCacheCreationInput int64 `json:"hour_cache_creation_input"` // written to a cache for an hour
	Output                 int64 `json:"output"`                    // without reasoning
	Reasoning              int64 `json:"reasoning"`
}

// Prompt is all input. Thresholds of prices are about it.
func (u Usage) Prompt() int64 {
	return u.Input + u.CachedInput + u.CacheCreationInput + u.HourCacheCreationInput
}

// Asked is what a request says that changes the price of its tokens.
type Asked struct {
	Tier      string // service_tier; empty: none
	HourCache bool   // it may write to a cache for an hour
}

// Limits are what a model takes and produces at most, in tokens. 0: the table does not say.
type Limits struct {
	MaxInputTokens  int64
	MaxOutputTokens int64
}

// Table has the prices of models. It does not change and is safe for concurrent use.
type Table struct {
	models map[string]*model
}

// Cost returns what a call of the model cost in the standard tier. Its errors are *UnknownModel and ErrUsage.
func (t *Table) Cost(model string, u Usage) (money.MicroUSD, error) {
	return t.CostIn(model, "default", "default", u)
}

// CostIn returns what a call of the model cost, by the service_tier of its request and of its answer ("": none). Without a tier of the
// answer that it knows, that is the dearest tier that the request can get. Its errors are those of Cost.
func (t *Table) CostIn(model, requestedTier, servedTier string, u Usage) (money.MicroUSD, error) {
	m, err := t.model(model)
	if err != nil {
		return 0, err
	}
	isCounted := areCounts(u.Input, u.CachedInput, u.CacheCreationInput, u.HourCacheCreationInput, u.Output, u.Reasoning)
	if !isCounted || u.HourCacheCreationInput > 0 && !m.hasHourCache() {
		return 0, ErrUsage
	}
	cost := new(big.Int)
	for _, tier := range served(servedTier, requestedTier) {
		at := m.at(tier, u.Prompt())
		cost = highest(cost, at.cost(u))
	}
	return roundedUp(cost)
}

func (at costs) cost(u Usage) *big.Int {
	sum := new(big.Int)
	for kind, tokens := range [kinds]int64{u.Input, u.Output, u.CachedInput, u.CacheCreationInput, u.HourCacheCreationInput, u.Reasoning} {
		addProduct(sum, tokens, at[kind])
	}
	return sum
}

// Worst returns the most that a call of the model can cost with so many tokens of input and output: all of them of the kinds
// that cost most, at the thresholds and in the service tier that cost most, but none written to a cache for an hour. Its errors are
// those of Cost.
func (t *Table) Worst(model string, inputTokens, outputTokens int64) (money.MicroUSD, error) {
	return t.WorstIn(model, "", inputTokens, outputTokens)
}

// WorstIn returns the same of a request with this service_tier ("": none): in the dearest tier that it can get.
func (t *Table) WorstIn(model, requestedTier string, inputTokens, outputTokens int64) (money.MicroUSD, error) {
	return t.WorstOf(model, Asked{Tier: requestedTier}, inputTokens, outputTokens)
}

// WorstOf returns the same of a request that says this: at the dearest prices that it can get.
func (t *Table) WorstOf(model string, asked Asked, inputTokens, outputTokens int64) (money.MicroUSD, error) {
	m, err := t.model(model)
	if err != nil {
		return 0, err
	}
	if !areCounts(inputTokens, outputTokens) || asked.HourCache && !m.hasHourCache() {
		return 0, ErrUsage
	}
	worst := new(big.Int)
	for _, tier := range requested(asked.Tier) {
		for _, prompt := range m.promptsWithin(inputTokens) {
			at := m.at(tier, prompt)
			sum, dearest := new(big.Int), highest(at[input], at[cacheRead], at[cacheCreation])
			if asked.HourCache {
				dearest = highest(dearest, at[hourCacheCreation])
			}
			addProduct(sum, inputTokens, dearest)
			addProduct(sum, outputTokens, highest(at[output], at[reasoning]))
			worst = highest(worst, sum)
		}
	}
	return roundedUp(worst)
}

// Limits returns the limits of the model. Its error is *UnknownModel.
func (t *Table) Limits(model string) (Limits, error) {
	m, err := t.model(model)
	if err != nil {
		return Limits{}, err
	}
	return m.limits, nil
}

// Reasons reports whether the model can reason: its entry has supports_reasoning, or a price of reasoning.
func (t *Table) Reasons(model string) bool {
	m, err := t.model(model)
	return err == nil && m.reasons
}

// Has reports whether the table has prices of the model.
func (t *Table) Has(model string) bool {
	_, err := t.model(model)
	return err == nil
}

// HasHourCache reports whether tokens that are written to a cache for an hour have a base price, in the standard tier.
func (t *Table) HasHourCache(model string) bool {
	m, err := t.model(model)
	return err == nil && m.hasHourCache()
}

func (m *model) hasHourCache() bool { return m.tiers[standardTier][hourCacheCreation].base != nil }

func (t *Table) model(name string) (*model, error) {
	if m, known := t.models[name]; known {
		return m, nil
	}
	return nil, &UnknownModel{name}
}

func areCounts(counts ...int64) bool {
	for _, count := range counts {
		if count < 0 || count > MaxTokens {
			return false
		}
	}
	return true
}

func addProduct(sum *big.Int, tokens int64, price *big.Int) {
	sum.Add(sum, new(big.Int).Mul(big.NewInt(tokens), price))
}

func highest(first *big.Int, others ...*big.Int) *big.Int {
	for _, other := range others {
		if other.Cmp(first) > 0 {
			first = other
		}
	}
	return first
}
