package wire

import (
	"encoding/json"
	"mime"
	"net/http"

	"remit/client/prices"
	"remit/money"
)

// Answer is what an answer has said so far.
type Answer struct {
	Usage    prices.Usage // of the whole call, if it is known
	Known    bool         // the usage is said and can be believed
	Tier     string       // service_tier; empty: it does not say
	Model    string       // empty: it does not say
	Complete bool         // the last event of a stream was read; or all of another answer, or a JSON text that is whole, though its end may not be there
	Failed   bool         // of a stream: it says that it failed
}

// Meter reads an answer as it passes, and says what it used. An answer that is compressed passes unread.
//
// Events pass whole, and of an answer that is not streamed the last byte passes at its end. So the usage is known, and the call can be
// settled, before the bytes pass that complete the answer for its reader.
type Meter struct {
	call     *Call
	streamed bool
	isOpaque bool // compressed
	events   events
	progress progress
	filter   filter

	text    []byte // of an answer that is not streamed: what was read and can count
	skim    skim
	tooLong bool   // to be kept
	all     bool   // of it was read
	last    []byte // its last byte, which has not passed
	passes  []byte
	size    int64
}

// Meter returns a meter of the answer with this header, whose status is one of success.
func (c *Call) Meter(answer http.Header) *Meter {
	kind, _, _ := mime.ParseMediaType(answer.Get("Content-Type")) // "" for none: not streamed
	coding := answer.Get("Content-Encoding")
	m := &Meter{call: c, streamed: kind == "text/event-stream", isOpaque: coding != "" && coding != "identity"}
	m.events = events{most: MaxBody, dispatch: func(data []byte) {
		if !m.progress.ended { // what follows the last event changes nothing
			c.Format.event(data, &m.progress)
		}
	}}
	m.filter.hides = c.HidesUsage
	return m
}

// Shortens reports whether not all bytes pass.
func (m *Meter) Shortens() bool { return m.streamed && !m.isOpaque && m.call.HidesUsage }

// IsOpaque reports whether the answer is compressed: all of it passes as it comes, and its usage is not known.
func (m *Meter) IsOpaque() bool { return m.isOpaque }

// Streamed reports whether the answer is a stream of events.
func (m *Meter) Streamed() bool { return m.streamed }

// Next reads what comes, and returns what passes. That is valid until the next call.
func (m *Meter) Next(text []byte) (passes []byte) {
	m.size += int64(len(text))
	switch {
	case m.isOpaque:
		return text
	case m.streamed:
		m.events.write(text)
		return m.filter.next(text, false)
	case len(text) == 0:
		return nil
	}
	m.keep(text)
	m.passes = append(append(m.passes[:0], m.last...), text[:len(text)-1]...)
	m.last = append(m.last[:0], text[len(text)-1])
	return m.passes
}

// keep keeps what can count of an answer that is not streamed.
func (m *Meter) keep(text []byte) {
	if _, isLong := m.call.Format.(embeddings); isLong {
		m.text = m.skim.next(m.text, text)
		text = nil
	}
	if m.tooLong = m.tooLong || len(m.text)+len(text) > MaxBody; m.tooLong {
		m.text = nil
		return
	}
	m.text = append(m.text, text...)
}

// End ends the answer, or what came of it if it is not whole, and returns the rest that passes.
func (m *Meter) End(whole bool) (passes []byte) {
	switch {
	case m.isOpaque:
		return nil
	case m.streamed:
		if whole {
			m.events.end()
		}
		return m.filter.next(nil, true)
	}
	m.all = m.all || whole
	passes, m.last = m.last, nil
	return passes
}

// Ended reports whether the answer is complete, so that it can be settled. The bytes that complete it are among those that pass next.
func (m *Meter) Ended() bool {
	if m.streamed {
		return m.progress.ended
	}
	return m.all
}

// Answer returns what the answer has said so far.
func (m *Meter) Answer() Answer {
	if m.streamed {
		p := &m.progress
		return m.answer(p.answer, p.isKnown(), p.ended, p.failed)
	}
	if m.isOpaque || m.tooLong {
		return Answer{Complete: m.all}
	}
	a, known := m.call.Format.whole(m.text)
	return m.answer(a, known, known || m.all || json.Valid(m.text), false)
}

func (m *Meter) answer(a answered, known, complete, failed bool) Answer {
	return Answer{m.call.split(a.usage, a.cacheTimesUnknown), known, a.tier, a.model, complete, failed}
}

// split counts writes to caches as for an hour where the request asks for such a cache and the answer does not say which they were.
func (c *Call) split(u prices.Usage, cacheTimesUnknown bool) prices.Usage {
	if c.Asked.HourCache && cacheTimesUnknown {
		u.CacheCreationInput, u.HourCacheCreationInput = 0, u.CacheCreationInput+u.HourCacheCreationInput
	}
	return u
}

// Kept returns how many bytes of the answer are in memory.
func (m *Meter) Kept() int {
	return cap(m.text) + cap(m.passes) + cap(m.events.line) + cap(m.events.data) + cap(m.filter.event) + cap(m.filter.out)
}

// Forget lets go of what is kept, for want of memory. What an answer, or the event that has begun, says of its usage is then not known.
func (m *Meter) Forget() {
	m.text, m.tooLong = nil, true
	m.events.line, m.events.data, m.events.tooLong = nil, nil, true
	m.filter.isLong = true
}

// IsTooLong reports whether an answer that is not streamed was too long to be read.
func (m *Meter) IsTooLong() bool { return m.tooLong }

// Cost returns what the call cost, by an answer that is complete and has not failed. known is false if it does not say what it used, or
// if that has no price: then the hold is its price.
func (m *Meter) Cost() (cost money.MicroUSD, known bool) {
	a := m.Answer()
	if !a.Known || !a.Complete || a.Failed {
		return 0, false
	}
	cost, err := m.call.cost(a.Model, a.Tier, a.Usage)
	return cost, err == nil
}

func (c *Call) cost(model, tier string, u prices.Usage) (money.MicroUSD, error) {
	priced := c.Priced
	if c.options.AnswersModel && model != "" {
		if name := c.options.priced(model); c.table.Has(name) {
			priced = name
		}
	}
	return c.table.CostIn(priced, c.Asked.Tier, tier, u)
}

// Most returns the most that a stream can have cost that broke off here. A token is at least a byte, except of reasoning, which need
// not be sent.
func (m *Meter) Most() (money.MicroUSD, error) {
	c := m.call
	hold, err := c.Worst()
	if err != nil {
		return 0, err
	}
	output := min(m.size, c.MostOutput)
	if c.Reasons || m.isOpaque {
		output = c.MostOutput
	}
	cost, isPriced := m.most(output)
	if !isPriced {
		cost = hold
	}
	return min(cost, hold), nil
}

func (m *Meter) most(output int64) (cost money.MicroUSD, isPriced bool) {
	c, p := m.call, &m.progress
	if !p.inputKnown {
		cost, err := c.worst(output)
		return cost, err == nil
	}
	asOutput := c.split(p.input, p.answer.cacheTimesUnknown)
	asReasoning := asOutput
	asOutput.Output, asReasoning.Reasoning = output, output
	cost, err := c.cost(p.answer.model, p.answer.tier, asOutput)
	other, errOther := c.cost(p.answer.model, p.answer.tier, asReasoning)
	return max(cost, other), err == nil && errOther == nil
}
