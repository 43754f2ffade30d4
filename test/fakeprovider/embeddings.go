package fakeprovider

// embeddings is the format of OpenAI's embeddings. They are never streamed.
type embeddings struct{}

func (embeddings) problem(status int, text string) any { return chat{}.problem(status, text) }

func (embeddings) answer(c call, g generated) answer {
	texts, isList := c.request.Input.([]any)
	if !isList {
		texts = []any{c.request.Input}
	}
	var data []object
	for i := range texts {
		data = append(data, object{"object": "embedding", "index": i, "embedding": []float64{0.25, -0.5, c.random.Float64()}})
	}
	o := object{"object": "list", "model": c.answering, "data": data}
	if usage, says := c.fake.shown(object{"prompt_tokens": g.usage.Input, "total_tokens": g.usage.Input}); says {
		o["usage"] = usage
	}
	return answer{whole: o, usage: g.usage}
}
