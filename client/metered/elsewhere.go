package metered

import "strings"

// refersElsewhere reports whether a request has input that is not in its body: content by URL or id, what the provider keeps,
// or the results of tools that the provider runs.
func refersElsewhere(request any) bool {
	members, _ := request.(map[string]any)
	for _, name := range []string{"previous_response_id", "conversation", "prompt", "container", "mcp_servers", "web_search_options"} {
		if members[name] != nil {
			return true
		}
	}
	return hasHostedTools(members["tools"]) || hasReference(members["messages"]) || hasReference(members["input"]) || hasReference(members["system"])
}

// hasHostedTools reports whether one of the tools is no function of the caller's.
func hasHostedTools(tools any) bool {
	list, _ := tools.([]any)
	for _, tool := range list {
		o, _ := tool.(map[string]any)
		switch o["type"] {
		case nil, "function", "custom":
		default:
			return true
		}
	}
	return false
}

// hasReference reports whether content names an image or a file that is elsewhere.
func hasReference(content any) bool {
	switch v := content.(type) {
	case []any:
		for _, element := range v {
			if hasReference(element) {
				return true
			}
		}
	case map[string]any:
		if v["type"] == "item_reference" || v["type"] == "url" && v["url"] != nil {
			return true
		}
		for name, member := range v {
			switch name {
			case "file_id", "file_url", "image_url":
				if !isInline(member) {
					return true
				}
			default:
				if hasReference(member) {
					return true
				}
			}
		}
	}
	return false
}

// isInline reports whether a URL is absent or holds its data itself. Some formats wrap it in an object.
func isInline(url any) bool {
	if o, isObject := url.(map[string]any); isObject {
		url = o["url"]
	}
	text, isText := url.(string)
	return url == nil || isText && strings.HasPrefix(text, "data:")
}
