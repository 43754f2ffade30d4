package wire

import "slices"

// reasoning are the members of requests about it.
var reasoning = []string{"reasoning", "reasoning_effort", "reasoning_config", "thinking", "thinking_config"}

// canReason reports whether a call may have output that a provider counts and does not send. The request says so, or else the model's
// entry in the price table.
func canReason(request members, modelReasons bool) bool {
	says := false
	for _, name := range reasoning {
		levels := []any{request[name]}
		if of, is := request[name].(members); is {
			levels = nil
			for name, value := range of {
				if value != nil && name != "effort" && name != "type" {
					return true // such as max_tokens
				}
				levels = append(levels, value)
			}
		}
		for _, level := range levels {
			if level != nil && !slices.Contains([]any{"none", "disabled", false}, level) {
				return true
			}
			says = says || level != nil
		}
	}
	return !says && modelReasons
}

// thinkingBudget returns the highest budget of tokens that a request gives to reasoning: Anthropic's thinking.budget_tokens,
// OpenRouter's reasoning.max_tokens, Google's thinking_config.thinking_budget. 0: there is none.
func thinkingBudget(request members) (budget int64) {
	for _, name := range reasoning {
		of, _ := request[name].(members)
		for _, value := range of {
			if n, is := wholeNumber(value); is {
				budget = max(budget, n)
			}
		}
	}
	return budget
}
