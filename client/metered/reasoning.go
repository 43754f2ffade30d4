package metered

import "slices"

// canReason reports whether a call may have output that a provider counts and does not send. The request says so, or else the model's
// entry in the price table.
func canReason(request members, modelReasons bool) bool {
	says := false
	for _, name := range []string{"reasoning", "reasoning_effort", "reasoning_config", "thinking", "thinking_config"} {
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
