package fakeprovider

import "encoding/json"

// messages is the format of Anthropic's messages.
type messages struct{}

func (messages) problem(status int, text string) any {
	kind := "invalid_request_error"
	if status >= 500 {
		kind = "api_error"
	} else if status == 429 {
		kind = "rate_limit_error"
	}
	return object{"type": "error", "error": object{"type": kind, "message": text}}
}

func (f messages) answer(c call, g generated) answer {
	a := answer{usage: g.usage, whole: f.message(c, g)}
	add := func(tokens int64, kind string, data object) {
		data["type"] = kind
		a.events = append(a.events, event{kind, data, tokens})
	}
	start := f.message(c, g)
	start["content"], start["stop_reason"] = []object{}, nil
	if usage, has := start["usage"].(object); has && c.fake.usage != "empty" && c.fake.usage != "zero" {
		usage["output_tokens"] = 1
	}
	add(0, "message_start", object{"message": start})
	add(0, "ping", object{})
	block, delta := object{"type": "text", "text": ""}, func(text string) object { return object{"type": "text_delta", "text": text} }
	if c.fake.tools {
		block = object{"type": "tool_use", "id": "toolu_fake", "name": c.tool.name, "input": object{}}
		delta = func(text string) object { return object{"type": "input_json_delta", "partial_json": text} }
	}
	index := 0
	if hidden := g.usage.total() - int64(len(g.choices[0])); hidden > 0 {
		add(0, "content_block_start", object{"index": 0, "content_block": object{"type": "thinking", "thinking": "", "signature": ""}})
		for range hidden {
			add(1, "content_block_delta", object{"index": 0, "delta": object{"type": "thinking_delta", "thinking": "hm "}})
		}
		add(0, "content_block_delta", object{"index": 0, "delta": object{"type": "signature_delta", "signature": "fake"}})
		add(0, "content_block_stop", object{"index": 0})
		index = 1
	}
	add(0, "content_block_start", object{"index": index, "content_block": block})
	for _, p := range c.pieces(g.choices[0]) {
		add(p.tokens, "content_block_delta", object{"index": index, "delta": delta(p.text)})
	}
	add(0, "content_block_stop", object{"index": index})
	end := object{"delta": object{"stop_reason": f.stop(c, g), "stop_sequence": nil}}
	if usage, says := c.fake.shown(object{"output_tokens": c.output(g)}); says {
		end["usage"] = usage
	}
	add(0, "message_delta", end)
	add(0, "message_stop", object{})
	a.broken = event{name: "error", data: object{"type": "error", "error": object{"type": "overloaded_error", "message": "Overloaded"}}}
	return a
}

func (messages) stop(c call, g generated) string {
	switch {
	case c.fake.tools:
		return "tool_use"
	case g.full:
		return "max_tokens"
	}
	return "end_turn"
}

func (f messages) message(c call, g generated) object {
	content := []object{}
	if g.usage.total() > int64(len(g.choices[0])) {
		content = append(content, object{"type": "thinking", "thinking": "hm", "signature": "fake"})
	}
	if c.fake.tools {
		content = append(content, object{"type": "tool_use", "id": "toolu_fake", "name": c.tool.name, "input": json.RawMessage(c.arguments(g.choices[0]))})
	} else {
		content = append(content, object{"type": "text", "text": joined(g.choices[0])})
	}
	o := object{"id": "msg_fake", "type": "message", "role": "assistant", "model": c.answering, "content": content,
		"stop_reason": f.stop(c, g), "stop_sequence": nil}
	usage := object{"input_tokens": g.usage.Input, "cache_creation_input_tokens": g.usage.created(),
		"cache_read_input_tokens": g.usage.CachedInput, "output_tokens": c.output(g)}
	if c.fake.forHour {
		usage["cache_creation"] = object{
			"ephemeral_5m_input_tokens": g.usage.CacheCreationInput, "ephemeral_1h_input_tokens": g.usage.HourCacheCreationInput,
		}
	}
	c.fake.sayTier(usage)
	if shown, says := c.fake.shown(usage); says {
		o["usage"] = shown
	}
	return o
}
