package metered

import "slices"

// canReason reports whether a call may have output that a provider counts and does not send. The request says so, or else the model's
// entry in the price table.
func canReason(request members, modelReasons bool) bool {
	says := false
	for _, name := range []string{"reasoning", "reasoning_effort", "reasoning_config", "thinking", "thinking_config"} {
		level := request[name]
		if of, is := level.(members); is {
			level = of["effort"]
			if level == nil {
				level = of["type"]
			}
		}
		if level != nil && !slices.Contains([]any{"none", "disabled", false}, level) {
			return true
		}
		says = says || level != nil
	}
	return !says && modelReasons
}
