package metered

import "slices"

// mostDepth bounds how deep a prompt is looked into.
const mostDepth = 1000

// refersElsewhere reports whether a request can have more tokens of input than bytes: images, files, content by URL or id, what
// the provider keeps, or the results of tools that the provider runs.
func refersElsewhere(request members, f format) bool {
	for _, name := range []string{"previous_response_id", "conversation", "container", "mcp_servers", "web_search_options", "plugins"} {
		if request[name] != nil {
			return true
		}
	}
	if _, isChat := f.(chat); !isChat && request["prompt"] != nil {
		return true
	}
	for _, name := range []string{"messages", "input", "system"} {
		if !isBoundedByBytes(request[name], mostDepth) {
			return true
		}
	}
	return hasHostedTools(request["tools"])
}

// hasHostedTools reports whether one of the tools is no function of the caller's.
func hasHostedTools(tools any) bool {
	list, _ := tools.([]any)
	return slices.ContainsFunc(list, func(tool any) bool {
		o, _ := tool.(members)
		return o["type"] != nil && o["type"] != "function" && o["type"] != "custom"
	})
}

// textTypes are the types of content that is text.
var textTypes = []any{
	"message", "text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal", "reasoning", "thinking",
	"redacted_thinking", "tool_use", "tool_result", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
}

// isBoundedByBytes reports whether content has no more tokens than bytes: it is text. An image has as many as its size in pixels
// makes, however few bytes it is compressed to.
func isBoundedByBytes(content any, depth int) bool {
	switch v := content.(type) {
	case []any:
		return depth > 0 && !slices.ContainsFunc(v, func(part any) bool { return !isBoundedByBytes(part, depth-1) })
	case members:
		return depth > 0 && isBoundedPart(v, depth)
	}
	return true
}

func isBoundedPart(part members, depth int) bool {
	switch kind := part["type"]; {
	case kind == nil && part["role"] == nil && part["content"] == nil && part["text"] == nil:
		return false // the id of an item that the provider keeps
	case kind != nil && !slices.Contains(textTypes, kind):
		return false
	}
	return part["audio"] == nil && isBoundedByBytes(part["content"], depth-1) && isBoundedByBytes(part["output"], depth-1)
}
