package metered

import "slices"

// standardValues are the values of members with which tokens cost what the price table says.
var standardValues = map[string][]any{
	"service_tier":  {"auto", "default", "flex", "standard_only"},
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
