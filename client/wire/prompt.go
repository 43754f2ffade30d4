package wire

import (
	"encoding/json"
	"strconv"
)

// prompts are the members of a request whose texts a model reads.
var prompts = []string{"messages", "input", "system", "instructions"}

// escapes returns how many bytes of the body no model reads, because they only write its texts in JSON: é has two bytes, and six as \u00e9.
//
// Only texts that providers hand on as they are lose their escapes. What else is in a prompt counts as compact JSON, of which each
// object is longer than the tokens that providers put around a message (4, by OpenAI's cookbook) or a part of one; arguments of tools
// count as JSON, because providers write them so. Tools and all else count as they came.
func (c *Call) escapes(request members) (spared int64) {
	for _, name := range prompts {
		if value := request[name]; value != nil {
			spared += int64(len(c.members[name])) - size(value, false)
		}
	}
	return spared
}

// size returns the bytes of a value in compact JSON. The texts in it have their own unless they are written, with their escapes.
func size(value any, written bool) (bytes int64) {
	switch v := value.(type) {
	case nil:
		return int64(len("null"))
	case bool:
		return int64(len(strconv.FormatBool(v)))
	case []any:
		bytes = int64(len("[]") + max(len(v)-1, 0))
		for _, one := range v {
			bytes += size(one, written)
		}
	case members:
		bytes = int64(len("{}") + max(len(v)-1, 0))
		for name, one := range v {
			_, isText := one.(string)
			bytes += int64(len(`"":`)) + int64(len(name)) + size(one, written || name == "input" && !isText)
		}
	case string:
		return int64(len(`""`)) + textSize(v, written)
	case json.Number:
		return int64(len(v))
	}
	return bytes
}

func textSize(text string, written bool) int64 {
	bytes := int64(len(text))
	if !written {
		return bytes
	}
	for _, r := range text {
		switch {
		case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
			bytes++
		case r < ' ':
			bytes += int64(len(`\u0000`)) - 1
		}
	}
	return bytes
}
