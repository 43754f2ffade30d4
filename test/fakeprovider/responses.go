package fakeprovider

// responses is the format of OpenAI's responses.
type responses struct{}

func (responses) problem(status int, text string) any { return chat{}.problem(status, text) }

func (f responses) answer(c call, g generated) answer {
	final := "completed"
	if g.full && !c.fake.tools {
		final = "incomplete"
	}
	a := answer{usage: g.usage, whole: f.response(c, g, final)}
	number := 0
	add := func(tokens int64, kind string, data object) {
		data["type"], data["sequence_number"] = kind, number
		number++
		a.events = append(a.events, event{kind, data, tokens})
	}
	item := f.item(c, nil)
	add(0, "response.created", object{"response": f.response(c, g, "in_progress")})
	add(0, "response.in_progress", object{"response": f.response(c, g, "in_progress")})
	add(0, "response.output_item.added", object{"output_index": 0, "item": item})
	if c.fake.tools {
		for _, p := range c.pieces(g.choices[0]) {
			add(p.tokens, "response.function_call_arguments.delta", object{"item_id": item["id"], "output_index": 0, "delta": p.text})
		}
		add(0, "response.function_call_arguments.done",
			object{"item_id": item["id"], "output_index": 0, "name": c.tool.name, "arguments": c.arguments(g.choices[0])})
	} else {
		at := func(more object) object {
			more["item_id"], more["output_index"], more["content_index"] = item["id"], 0, 0
			return more
		}
		add(0, "response.content_part.added", at(object{"part": f.part("")}))
		for _, p := range c.pieces(g.choices[0]) {
			add(p.tokens, "response.output_text.delta", at(object{"delta": p.text, "logprobs": []any{}}))
		}
		text := joined(g.choices[0])
		add(0, "response.output_text.done", at(object{"text": text, "logprobs": []any{}}))
		add(0, "response.content_part.done", at(object{"part": f.part(text)}))
	}
	add(0, "response.output_item.done", object{"output_index": 0, "item": f.item(c, g.choices[0])})
	add(0, "response."+final, object{"response": f.response(c, g, final)})
	a.broken = event{name: "error", data: object{"type": "error", "code": "server_error", "message": "the model failed",
		"param": nil, "sequence_number": number}}
	return a
}

func (responses) part(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// item is the one output item; without tokens it is in progress.
func (f responses) item(c call, tokens []string) object {
	status := "completed"
	if tokens == nil {
		status = "in_progress"
	}
	if c.fake.tools {
		text := ""
		if tokens != nil {
			text = c.arguments(tokens)
		}
		return object{"id": "fc_fake", "type": "function_call", "status": status, "call_id": "call_fake", "name": c.tool.name, "arguments": text}
	}
	content := []object{}
	if tokens != nil {
		content = append(content, f.part(joined(tokens)))
	}
	return object{"id": "msg_fake", "type": "message", "status": status, "role": "assistant", "content": content}
}

func (f responses) response(c call, g generated, status string) object {
	o := object{"id": "resp_fake", "object": "response", "created_at": 1700000000, "status": status, "error": nil,
		"incomplete_details": nil, "instructions": nil, "metadata": object{}, "model": c.answering, "output": []object{},
		"parallel_tool_calls": true, "temperature": 1, "top_p": 1, "tool_choice": "auto", "tools": []any{}, "usage": nil}
	if status == "in_progress" {
		return o
	}
	if status == "incomplete" {
		o["incomplete_details"] = object{"reason": "max_output_tokens"}
	}
	o["output"] = []object{f.item(c, g.choices[0])}
	c.fake.sayTier(o)
	output := c.output(g)
	o["usage"], _ = c.fake.shown(object{
		"input_tokens": g.usage.prompt(), "output_tokens": output, "total_tokens": g.usage.prompt() + output,
		"input_tokens_details":  object{"cached_tokens": g.usage.CachedInput},
		"output_tokens_details": object{"reasoning_tokens": g.usage.Reasoning},
	})
	return o
}
