package metered

import (
	"slices"

	"remit/client/prices"
)

// standardValues are the values of members with which tokens cost what the price table says.
var standardValues = map[string][]any{
	"speed":         {"standard"},
	"inference_geo": {"global"},
	"background":    {false}, // where its usage is not seen
	"audio":         nil,
	"models":        nil, // others than the one that is priced
	"fallbacks":     nil,
}

// unpriced returns why a request can cost something else than its tokens by the price table. "": it cannot.
func unpriced(request members) string {
	for name, standard := range standardValues {
		if value := request[name]; value != nil && !slices.Contains(standard, value) {
			return "with this " + name + " it can cost something else than its tokens by the price table"
		}
	}
	modalities, isList := request["modalities"].([]any)
	if request["modalities"] != nil && !isList || slices.ContainsFunc(modalities, func(one any) bool { return one != "text" }) {
		return "modalities other than text have no price in the table"
	}
	return unpricedContent(request, mostDepth)
}

// readTier sets the service tier that a request asks for. It returns why that has no price. "": it has one.
func (q *call) readTier(request members, table *prices.Table) (reason string) {
	value := request["service_tier"]
	switch value {
	case nil:
		return ""
	case "auto", "default", "flex", "standard_only":
		q.tier, _ = value.(string)
		return ""
	case "priority":
		if q.tier = "priority"; table.HasTier(q.priced, q.tier) {
			return ""
		}
		return "the price table has no price of its priority tier: add input_cost_per_token_priority and output_cost_per_token_priority"
	}
	return "with this service_tier it can cost something else than its tokens by the price table"
}

// unpricedContent looks for audio, and for caches that cost more than the ones of 5 minutes.
func unpricedContent(content any, depth int) (reason string) {
	if depth == 0 {
		return "it is nested too deeply"
	}
	switch v := content.(type) {
	case []any:
		for _, one := range v {
			if reason = unpricedContent(one, depth-1); reason != "" {
				return reason
			}
		}
	case members:
		if v["type"] == "input_audio" {
			return "audio has no price in the table"
		}
		if cache, _ := v["cache_control"].(members); cache["ttl"] != nil && cache["ttl"] != "5m" {
			return "a cache of another ttl than 5m has no price in the table"
		}
		for _, member := range v {
			if reason = unpricedContent(member, depth-1); reason != "" {
				return reason
			}
		}
	}
	return ""
}
