package wire

import (
	"slices"
	"strings"
)

// standardValues are the values of members with which tokens cost what the price table says.
var standardValues = []struct {
	name     string
	standard []any
}{
	{"background", []any{false}}, // where its usage is not seen
	{"models", nil},              // others than the one that is priced
	{"fallbacks", nil},
	{"audio", nil},
	{"speed", []any{"standard"}},
	{"inference_geo", []any{"global"}},
}

// unpriced returns the member by which a request can cost something else than its tokens by the price table, and why. "": it cannot.
func (c *Call) unpriced(request members) (member, reason string) {
	for _, one := range standardValues {
		if value := request[one.name]; value != nil && !slices.Contains(one.standard, value) {
			return one.name, "with this " + one.name + " it can cost something else than its tokens by the price table"
		}
	}
	modalities, isList := request["modalities"].([]any)
	if request["modalities"] != nil && !isList || slices.ContainsFunc(modalities, func(one any) bool { return one != "text" }) {
		return "modalities", "modalities other than text have no price in the table"
	}
	if compacts(request["context_management"]) {
		return "context_management", "a compaction can cost as much again, and no count of the usage has it"
	}
	return c.unpricedContent(request, mostDepth)
}

// compacts reports whether the provider may have the model rewrite the prompt before it answers: Anthropic's edits, OpenAI's list.
func compacts(management any) bool {
	edits, isList := management.([]any)
	if of, is := management.(members); is {
		edits, isList = of["edits"].([]any)
		isList = isList || of["edits"] == nil
	}
	return management != nil && !isList || slices.ContainsFunc(edits, func(edit any) bool {
		o, _ := edit.(members)
		kind, isText := o["type"].(string)
		return !isText || strings.HasPrefix(kind, "compact")
	})
}

// readTier sets the service tier that a request asks for. It returns why that has no price. "": it has one.
func (c *Call) readTier(request members) (reason string) {
	value := request["service_tier"]
	switch value {
	case nil:
		return ""
	case "auto", "default", "flex", "standard_only":
		c.Asked.Tier, _ = value.(string)
		return ""
	case "priority":
		if c.Asked.Tier = "priority"; c.table.HasTier(c.Priced, c.Asked.Tier) {
			return ""
		}
		return "the price table has no price of its priority tier: add input_cost_per_token_priority and output_cost_per_token_priority"
	}
	return "with this service_tier it can cost something else than its tokens by the price table"
}

// unpricedContent looks for audio, and for caches that cost more than the ones of 5 minutes.
func (c *Call) unpricedContent(content any, depth int) (member, reason string) {
	if depth == 0 {
		return "", "it is nested too deeply"
	}
	switch v := content.(type) {
	case []any:
		for _, one := range v {
			if member, reason = c.unpricedContent(one, depth-1); reason != "" {
				return member, reason
			}
		}
	case members:
		if v["type"] == "input_audio" {
			return "input_audio", "audio has no price in the table"
		}
		if !c.readCache(v["cache_control"]) {
			return "cache_control.ttl", "a cache of another ttl than 5m has no price in the table"
		}
		for _, one := range v {
			if member, reason = c.unpricedContent(one, depth-1); reason != "" {
				return member, reason
			}
		}
	}
	return "", ""
}

// readCache notes a cache of an hour, and reports whether writing to a cache like this has a price.
func (c *Call) readCache(control any) bool {
	cache, _ := control.(members)
	switch cache["ttl"] {
	case nil, "5m":
		return true
	case "1h":
		c.Asked.HourCache = c.table.HasHourCache(c.Priced)
		return c.Asked.HourCache
	}
	return false
}
