package main

import "remit/client/prices"

const priceTable = `{"small": {
	"input_cost_per_token": 1.5e-06, "cache_read_input_token_cost": 1e-07, "output_cost_per_token": 6e-06, "output_cost_per_reasoning_token": "9e-06"
}}`

// priced computes what calls of models cost, without the service.
func priced(done *steps) {
	table := get(prices.Parse([]byte(priceTable)))
	done.add("read prices of models", "%t", table != nil)
	done.add("what a call costs", "%s", get(table.Cost("small", prices.Usage{Input: 101, CachedInput: 7, Output: 3, Reasoning: 2})))
	done.add("the most that a call costs", "%s", get(table.Worst("small", 1000, 10)))
	unknown := as[*prices.UnknownModel](second(table.Cost("large", prices.Usage{})))
	done.add("a model has no price", "%s", unknown.Model)
	invalid := as[*prices.InvalidPrices](second(prices.Parse([]byte(`{"small": {"input_cost_per_token": -1}}`))))
	done.add("prices are invalid", "%s %s", invalid.Model, invalid.Member)
}
