package fakeprovider

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// writer sends an answer as X-Fake says.
type writer struct {
	to     http.ResponseWriter
	ctx    context.Context // of the request: it ends when the client hangs up
	fake   behaviour
	random *rand.Rand
	rest   []byte // with chunks=odd: what goes out with what comes next
}

// stream sends the events. It returns what was generated until the end, and whether that is all.
func (w *writer) stream(a answer) (Usage, bool) {
	w.to.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.to.Header().Set("Cache-Control", "no-cache")
	usage := a.usage
	usage.Output = 0
	generated := func(tokens int64) { usage.Output = min(usage.Output+tokens, a.usage.Output) }
	for i, e := range a.events {
		isFirst, half := i == 0, i == len(a.events)/2
		if half && w.fake.failure == "midway" || isFirst && w.fake.failure == "first" {
			w.event(a.broken)
			w.flush()
			return usage, false
		}
		if half && w.fake.cut {
			w.flush()
			return usage, false
		}
		if half && w.fake.hang == "midway" || isFirst && w.fake.hang == "first" {
			w.flush()
			<-w.ctx.Done()
			return usage, false
		}
		if half && w.fake.endless {
			return w.repeat(a, usage), false
		}
		if !w.wait(w.fake.pace) {
			return usage, false
		}
		generated(e.tokens)
		if !w.event(e) {
			return usage, false
		}
	}
	return usage, w.flush()
}

// repeat sends an event with tokens of output until the client hangs up, and returns what was generated.
func (w *writer) repeat(a answer, usage Usage) Usage {
	i := slices.IndexFunc(a.events, func(e event) bool { return e.tokens > 0 })
	for w.wait(w.fake.pace) && w.event(a.events[i]) {
		usage.Output += a.events[i].tokens
	}
	return usage
}

// whole sends the answer that is not streamed. All of it is generated before its first byte goes out.
func (w *writer) whole(a answer) (Usage, bool) {
	if !w.wait(w.fake.pace * time.Duration(a.usage.total())) {
		return a.usage, false
	}
	body := encoded(a.whole)
	w.to.Header().Set("Content-Type", "application/json")
	w.to.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if w.fake.cut {
		w.write(body[:len(body)/2])
		w.flush()
		return a.usage, false
	}
	if w.fake.hang == "midway" {
		w.write(body[:len(body)/2])
		w.flush()
	}
	if w.fake.hang != "" {
		<-w.ctx.Done()
		return a.usage, false
	}
	return a.usage, w.write(body) && w.flush()
}

func (w *writer) wait(pace time.Duration) bool {
	if pace > 0 {
		timer := time.NewTimer(pace)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-w.ctx.Done():
		}
	}
	return w.ctx.Err() == nil
}

func (w *writer) event(e event) bool {
	end := "\n"
	if w.fake.odd {
		end = "\r\n"
	}
	var text bytes.Buffer
	if e.name != "" {
		text.WriteString("event: " + e.name + end)
	}
	data, isText := e.data.(string)
	if !isText {
		data = string(encoded(e.data))
	}
	text.WriteString("data: " + data + end + end)
	return w.write(text.Bytes())
}

// write sends text: as it is, or in pieces that end anywhere and of which the last goes out later.
func (w *writer) write(text []byte) bool {
	if !w.fake.odd {
		return w.send(text)
	}
	w.rest = append(w.rest, text...)
	for {
		size := 1 + w.random.IntN(97)
		if size > len(w.rest) {
			return true
		}
		piece := w.rest[:size]
		w.rest = w.rest[size:]
		if !w.send(piece) {
			return false
		}
	}
}

// flush sends what is left.
func (w *writer) flush() bool {
	rest := w.rest
	w.rest = nil
	return len(rest) == 0 || w.send(rest)
}

func (w *writer) send(text []byte) bool {
	if w.ctx.Err() != nil {
		return false
	}
	if _, err := w.to.Write(text); err != nil {
		return false
	}
	return http.NewResponseController(w.to).Flush() == nil
}

func encoded(value any) []byte {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err) // objects of texts and numbers can always be encoded
	}
	return bytes.TrimRight(text.Bytes(), "\n")
}
