package fakeprovider

import "encoding/json"

// chat is the format of OpenAI's chat completions.
type chat struct{}

func (chat) problem(status int, text string) any {
	kind := "invalid_request_error"
	if status >= 500 {
		kind = "server_error"
	} else if status == 429 {
		kind = "rate_limit_error"
	}
	return object{"error": object{"message": text, "type": kind, "param": nil, "code": nil}}
}

func (f chat) answer(c call, g generated) answer {
	a := answer{usage: g.usage, whole: f.whole(c, g)}
	withUsage := c.request.StreamOptions != nil && c.request.StreamOptions.IncludeUsage
	chunk := func(choices []object, usage any) object {
		o := object{"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1700000000, "model": c.answering,
			"system_fingerprint": nil, "choices": choices}
		if withUsage {
			o["usage"] = usage
		}
		c.fake.sayTier(o)
		return o
	}
	for i, tokens := range g.choices {
		choice := func(delta object, finish any) []object {
			return []object{{"index": i, "delta": delta, "logprobs": nil, "finish_reason": finish}}
		}
		a.events = append(a.events, event{data: chunk(choice(object{"role": "assistant", "content": "", "refusal": nil}, nil), nil)})
		if c.fake.tools {
			a.events = append(a.events, event{data: chunk(choice(f.function(object{"id": "call_fake", "type": "function"}, object{"name": c.tool.name, "arguments": ""}), nil), nil)})
		}
		for _, p := range c.pieces(tokens) {
			delta := object{"content": p.text}
			if c.fake.tools {
				delta = f.function(object{}, object{"arguments": p.text})
			}
			a.events = append(a.events, event{data: chunk(choice(delta, nil), nil), tokens: p.tokens})
		}
		var usage any
		if c.fake.usage == "choices" && i == len(g.choices)-1 {
			usage = f.usage(c, g)
		}
		a.events = append(a.events, event{data: chunk(choice(object{}, f.finish(c, g)), usage)})
	}
	if usage, says := c.fake.shown(f.usage(c, g)); withUsage && says && c.fake.usage != "choices" {
		a.events = append(a.events, event{data: chunk([]object{}, usage)})
	}
	a.events = append(a.events, event{data: "[DONE]"})
	a.broken = event{data: f.problem(500, "the model failed")}
	return a
}

// function is a change that a stream makes to a message's call of a tool.
func (chat) function(call, function object) object {
	call["index"], call["function"] = 0, function
	return object{"tool_calls": []object{call}}
}

func (chat) finish(c call, g generated) string {
	switch {
	case c.fake.tools:
		return "tool_calls"
	case g.full:
		return "length"
	}
	return "stop"
}

func (f chat) whole(c call, g generated) object {
	var choices []object
	for i, tokens := range g.choices {
		message := object{"role": "assistant", "content": joined(tokens), "refusal": nil}
		if c.fake.tools {
			message["content"] = nil
			message["tool_calls"] = []object{{"id": "call_fake", "type": "function",
				"function": object{"name": c.tool.name, "arguments": c.arguments(tokens)}}}
		}
		choices = append(choices, object{"index": i, "message": message, "logprobs": nil, "finish_reason": f.finish(c, g)})
	}
	o := object{"id": "chatcmpl-fake", "object": "chat.completion", "created": 1700000000, "model": c.answering,
		"choices": choices}
	if usage, says := c.fake.shown(f.usage(c, g)); says {
		o["usage"] = usage
	}
	c.fake.sayTier(o)
	return o
}

func (chat) usage(c call, g generated) object {
	output := c.output(g)
	return object{
		"prompt_tokens": g.usage.prompt(), "completion_tokens": output, "total_tokens": g.usage.prompt() + output,
		"prompt_tokens_details":     object{"cached_tokens": g.usage.CachedInput, "audio_tokens": 0},
		"completion_tokens_details": object{"reasoning_tokens": g.usage.Reasoning, "audio_tokens": 0},
	}
}

func quoted(text string) string {
	encoded, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can always be encoded
	}
	return string(encoded)
}
