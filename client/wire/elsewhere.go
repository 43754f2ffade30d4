package wire

import (
	"cmp"
	"regexp"
	"slices"
)

// mostDepth bounds how deep a prompt is looked into.
const mostDepth = 1000

// Members that stand for content which is not in the request: objects that the provider keeps, and what it fetches or runs.
var (
	objects = []string{"previous_response_id", "conversation", "container"}
	hosted  = []string{"mcp_servers", "web_search_options", "search_parameters", "plugins"}
	ids     = []string{"file_id", "file_ids", "vector_store_ids", "container", "container_id"} // within tools
)

// readElsewhere names what a request refers to. It returns the member by which the request can have more tokens of input than bytes:
// images, files, content by URL or id, what the provider keeps, or the results of tools that the provider runs. Empty: it cannot.
func (c *Call) readElsewhere(request members) (member string) {
	for _, name := range objects {
		if request[name] != nil {
			c.Objects = append(c.Objects, name)
		}
	}
	for _, name := range hosted {
		if request[name] != nil {
			c.host(name, name)
		}
	}
	if _, isChat := c.Format.(chat); !isChat && request["prompt"] != nil { // of the Responses API: a template by its id
		c.Objects = append(c.Objects, "prompt")
	}
	member = cmp.Or(append(slices.Concat(c.Objects, c.Hosted), "")...)
	for _, name := range []string{"messages", "input", "system"} {
		if !c.isBoundedByBytes(request[name], mostDepth) {
			member = cmp.Or(member, name)
		}
	}
	if c.hasOtherTools(request["tools"]) {
		member = cmp.Or(member, "tools")
	}
	return member
}

func (c *Call) host(tool, member string) {
	c.Hosted, c.HostedBy = append(c.Hosted, tool), cmp.Or(c.HostedBy, member)
}

// callersTools begin the types of tools that a provider has defined and the caller runs.
var callersTools = regexp.MustCompile(`^(bash|text_editor|computer|computer_use_preview|memory|local_shell|apply_patch)(_[0-9]{8})?$`)

// hasOtherTools reports whether one of the tools is no function of the caller's, and names those that the provider runs.
func (c *Call) hasOtherTools(tools any) (has bool) {
	list, _ := tools.([]any)
	for _, tool := range list {
		o, _ := tool.(members)
		if o["type"] == nil || o["type"] == "function" || o["type"] == "custom" {
			continue
		}
		if o["type"] == "namespace" { // a group of tools
			has = c.hasOtherTools(o["tools"]) || has
			continue
		}
		has = true
		kind, _ := o["type"].(string)
		if !callersTools.MatchString(kind) {
			c.host(kind, "tools")
		}
		c.nameIDs(o) // what is nested too deeply is refused before
	}
	return has
}

// nameIDs names the objects whose ids the description of a tool has.
func (c *Call) nameIDs(of any) {
	switch v := of.(type) {
	case []any:
		for _, one := range v {
			c.nameIDs(one)
		}
	case members:
		for name, one := range v {
			if _, isNew := one.(members); one != nil && !isNew && slices.Contains(ids, name) { // a new container is described
				c.Objects = append(c.Objects, name)
			}
			c.nameIDs(one)
		}
	}
}

// textTypes are the types of content that is text.
var textTypes = []any{
	"message", "text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal", "reasoning", "thinking",
	"redacted_thinking", "tool_use", "tool_result", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
}

// mediaTypes are those of content that is in the request or at an address, unless it has the id of a file.
var mediaTypes = []any{"image_url", "image", "input_image", "file", "input_file", "document", "search_result"}

// isBoundedByBytes reports whether content has no more tokens than bytes: it is text. An image has as many as its size in pixels
// makes, however few bytes it is compressed to. It names the objects at the provider that the content refers to.
func (c *Call) isBoundedByBytes(content any, depth int) bool {
	switch v := content.(type) {
	case []any:
		bounded := depth > 0
		for _, part := range v {
			if depth > 0 {
				bounded = c.isBoundedByBytes(part, depth-1) && bounded // each is looked into
			}
		}
		return bounded
	case members:
		return depth > 0 && c.isBoundedPart(v, depth)
	}
	return true
}

func (c *Call) isBoundedPart(part members, depth int) bool {
	kind := part["type"]
	isByID := kind == nil && part["role"] == nil && part["content"] == nil && part["text"] == nil // of an item that the provider keeps
	isText := kind == nil || slices.Contains(textTypes, kind)
	source, _ := part["source"].(members)
	file, _ := part["file"].(members)
	switch {
	case isByID:
		c.Objects = append(c.Objects, "id")
	case part["audio"] != nil: // of an earlier answer
		c.Objects = append(c.Objects, "audio")
	case cmp.Or(part["file_id"], source["file_id"], file["file_id"]) != nil:
		c.Objects = append(c.Objects, "file_id")
	case kind == "reasoning" && part["id"] != nil && part["encrypted_content"] == nil && part["content"] == nil:
		c.Objects, isText = append(c.Objects, "reasoning"), false
	case !isText && !slices.Contains(mediaTypes, kind):
		name, _ := kind.(string)
		c.Objects = append(c.Objects, cmp.Or(name, "type"))
	}
	bounded := !isByID && isText && part["audio"] == nil
	for _, within := range []any{part["content"], part["output"], source["content"]} {
		bounded = c.isBoundedByBytes(within, depth-1) && bounded // each is looked into
	}
	return bounded
}
