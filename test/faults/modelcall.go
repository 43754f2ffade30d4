package faults

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// modelCall is one attempt of an agent to call a model, and what became of it for the agent.
type modelCall struct {
	id      string // agent-attempt; the provider and the record have it too
	fake    string // how the provider misbehaves; "": it does not
	gateway *Gateway
	hungUp  bool // the agent has, before the end
	fitted  bool

	status int  // 0: no answer
	ended  bool // the answer has come to its end
	err    string
}

func (c modelCall) String() string {
	return fmt.Sprintf("%q at a gateway that was %q: status %d, ended %v, hung up %v, %q", c.fake, c.gateway.fate, c.status, c.ended, c.hungUp, c.err)
}

// format is how a model is called.
type format struct {
	path, body string
	ends       []string // the last event of a stream has one of these
}

var modelFormats = []format{
	{"/openai-%d/chat/completions", `{"model":"m-%s","messages":[{"role":"user","content":"%s"}]%s}`, []string{"data: [DONE]\n"}},
	{"/openai-%d/v1/responses", `{"model":"m-%s","input":"%s"%s}`, []string{`"type":"response.completed"}`, `"type":"response.incomplete"}`}},
	{"/anthropic-%d/v1/messages", `{"model":"m-%s","messages":[{"role":"user","content":"%s"}]%s}`, []string{`"type":"message_stop"}`}},
}

// outputLimits name the members that limit the output, by format.
var outputLimits = []string{"max_completion_tokens", "max_output_tokens", "max_tokens"}

// misbehaviours are how a provider answers some calls otherwise than it should.
var misbehaviours = []string{"error=429", "error=500", "error=504", "error=midway", "cut=midway", "usage=missing"}

// uncounted are those whose answer does not say what the call used.
var uncounted = []string{"error=midway", "cut=midway", "usage=missing", hangs}

// variations change what an answer says and not whether it can be priced.
var variations = []string{"", "", "tools=1", "reasoning=1", "cached=1", "usage=choices"}

// hangs is a stream that does not end.
const hangs = "hang=midway"

// plan is how an agent is going to make a call.
type plan struct {
	format   int
	streamed bool
	limit    int // of the output; 0: none
	fake     string
	more     string // for the provider
	gateway  int
	hangUp   time.Duration // after this long, if the answer is not streamed
	bytes    int           // the agent hangs up, of a stream after so many bytes; 0: never
	padding  int
}

func drawPlan(r *rand.Rand, slow bool) plan {
	p := plan{format: r.IntN(len(modelFormats)), streamed: r.IntN(3) > 0, gateway: r.IntN(2), padding: r.IntN(40)}
	p.more = fmt.Sprintf("seed=%d,pace=%d", r.Uint32(), r.IntN(4))
	if !p.streamed {
		p.more = fmt.Sprintf("seed=%d,pace=%d", r.Uint32(), r.IntN(2)) // for each token
	}
	if variation := variations[r.IntN(len(variations))]; variation != "" {
		p.more += "," + variation
	}
	if r.IntN(3) > 0 || p.format == 2 { // the third format requires it
		p.limit = 20 + r.IntN(180)
	}
	if slow && p.streamed && r.IntN(200) == 0 {
		p.more = "seed=1,pace=250" // so that its hold is renewed
	}
	switch r.IntN(8) {
	case 0:
		p.fake = misbehaviours[r.IntN(len(misbehaviours))]
	case 1:
		p.hangUp, p.bytes = time.Duration(r.IntN(60))*time.Millisecond, 1+r.IntN(2000)
	}
	return p
}

// callUntilTaken makes a call, again while no gateway takes it.
func (m *Metering) callUntilTaken(ctx context.Context, a *meteredAgent, r *rand.Rand) {
	for pause := retryPause; ctx.Err() == nil; pause = min(2*pause, time.Second) {
		p := drawPlan(r, m.setup.Slow)
		call := m.newCall(a, p)
		m.make(ctx, call, a, p, nil)
		if call.status != http.StatusServiceUnavailable && !strings.Contains(call.err, codeUnreachable) {
			m.done.Add(1)
			return
		}
		m.refused.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// newCall returns a call that is about to be made.
func (m *Metering) newCall(a *meteredAgent, p plan) *modelCall {
	return &modelCall{id: fmt.Sprintf("%d-%d", a.number, a.attempts.Add(1)-1), fake: p.fake, gateway: m.at(p.gateway)}
}

// hang makes a call that hangs, and returns when its answer has begun.
func (m *Metering) hang(g *Gateway) {
	m.s.t.Helper()
	a, p := m.agents[0], plan{streamed: true, limit: 50, fake: hangs, more: "seed=1"}
	for deadline := time.Now().Add(workPatience); time.Now().Before(deadline); time.Sleep(retryPause) {
		call, began, ended := m.newCall(a, p), make(chan struct{}), make(chan struct{})
		call.gateway = g
		m.calling.Go(func() {
			defer close(ended)
			m.make(context.Background(), call, a, p, began)
		})
		select {
		case <-began:
			return
		case <-ended: // refused: Redis has been away
		}
	}
	m.s.t.Fatal("no call that was to hang has begun")
}

// make makes a call and notes what became of it. began, if there is one, is closed when its answer has begun.
func (m *Metering) make(ctx context.Context, call *modelCall, a *meteredAgent, p plan, began chan<- struct{}) {
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.calls = append(m.calls, *call)
	}()
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	if p.bytes > 0 && !p.streamed {
		defer time.AfterFunc(p.hangUp, hangUp).Stop()
	}
	answer, err := m.wire.RoundTrip(a.request(ctx, call, p))
	if err != nil {
		if _, code := outcomeOf(err); code != "" {
			err = fmt.Errorf("%s: %w", code, err)
		}
		call.err, call.hungUp = err.Error(), ctx.Err() != nil
		return
	}
	defer answer.Body.Close()
	call.status, call.fitted = answer.StatusCode, answer.Header.Get("X-Remit-Max-Tokens") != ""
	if began != nil && answer.StatusCode == http.StatusOK {
		close(began)
	}
	call.read(answer, p)
}

// read reads an answer to its end, or to where the agent hangs up.
func (c *modelCall) read(answer *http.Response, p plan) {
	body := io.Reader(answer.Body)
	if p.bytes > 0 && p.streamed {
		body = io.LimitReader(body, int64(p.bytes))
	}
	text, err := io.ReadAll(body)
	c.ended = err == nil
	if p.streamed && c.status == http.StatusOK {
		c.ended = slices.ContainsFunc(modelFormats[p.format].ends, func(end string) bool { return strings.Contains(string(text), end) })
	}
	c.hungUp = !c.ended && p.bytes > 0
	if err != nil {
		c.err = err.Error()
	} else if c.status != http.StatusOK {
		c.err = string(text)
	}
}

// request returns the request of a call. Its prompt has the call's id.
func (a *meteredAgent) request(ctx context.Context, call *modelCall, p plan) *http.Request {
	f, more := modelFormats[p.format], ""
	if p.streamed {
		more += `,"stream":true`
	}
	if p.limit > 0 {
		more += fmt.Sprintf(`,%q:%d`, outputLimits[p.format], p.limit)
	}
	_, attempt, _ := strings.Cut(call.id, "-")
	body := fmt.Sprintf(f.body, attempt, call.id+strings.Repeat(" and on", p.padding), more)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, call.gateway.URL+fmt.Sprintf(f.path, a.number%2), strings.NewReader(body))
	if err != nil {
		panic(err) // the address is one
	}
	r.GetBody = nil // or net/http might send it twice
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Call", call.id)
	r.Header.Set("X-Fake", strings.Trim(p.more+","+p.fake, ","))
	if strings.HasPrefix(f.path, "/anthropic") {
		r.Header.Set("X-Api-Key", a.token)
	} else {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	if !a.isKey {
		r.Header.Set("X-Remit-Session", a.session)
	}
	return r
}
