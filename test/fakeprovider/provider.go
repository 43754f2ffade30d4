// Package fakeprovider is a provider of language models that generates nonsense, for tests of what stands before a provider. It
// speaks the formats that OpenAI and Anthropic document: POST /v1/chat/completions, /v1/responses and /v1/messages, streamed
// or not, and /v1/embeddings. What costs nothing is not counted: GET /v1/models, and POST /v1/messages/count_tokens and
// /v1/responses/input_tokens. Only tests import it, and serve below it, which runs it for the pages.
//
// The header X-Fake of a request says how the provider behaves, as key=value pairs with commas between them:
//
//	seed=N           chooses counts of tokens and where writes are cut; 0 unless given
//	chunks=odd       writes are cut anywhere, also within a character and between CR and LF
//	usage=missing    the answer has no usage; also null, empty and zero; usage=negative: one that cannot be
//	usage=choices    a stream of chat completions has its usage beside choices, in their last chunk
//	tier=NAME        the answer says that it was served in this service tier
//	model=NAME       the answer says that this model has made it
//	error=midway     the stream ends with an error event; not streamed: 500
//	error=first      the same before anything else
//	error=429        refuses so; also 400, 401, 403, 404, 500, 503, 504 and 529
//	retry=N          refuses with Retry-After: N seconds; otherwise clients may repeat the call at once
//	cut=midway       the connection ends in the middle of the answer
//	hang=midway      the rest of the answer does not come, until the client hangs up; hang=first: nothing comes
//	endless=1        a stream does not end until the client hangs up; it generates more than the request allows
//	tools=1          answers with a call of a tool
//	pace=N           N milliseconds pass before each event; not streamed: before the answer, for each token
//	reasoning=1      some of the output is reasoning
//	cached=1         some of the input comes from a cache, and with Anthropic's format some goes there
//	cached=hour      the same, and some of what goes there stays for an hour
//
// It generates no more than the request allows, each token is at least one byte of the answer's text, and no request has more
// input tokens than bytes, without the escapes of its JSON.
//
// GET /ledger is what it has counted: an array of Record, in the order in which calls ended, 100,000 at most. DELETE /ledger
// empties it.
package fakeprovider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
)

const (
	maxBody    = 16 << 20
	maxRecords = 100_000
)

// Record is what the provider has counted for one call.
type Record struct {
	ID     string `json:"id"` // X-Call of the request
	Model  string `json:"model"`
	Path   string `json:"path"`
	Ended  bool   `json:"ended"` // the whole answer was written
	Status int    `json:"status"`
	Usage  Usage  `json:"usage"` // also of what was generated for a client that hung up; nothing for an error status
}

// Usage counts tokens. Each token counts in one field only.
type Usage struct {
	Input                  int64 `json:"input"`
	CachedInput            int64 `json:"cached_input"`
	CacheCreationInput     int64 `json:"cache_creation_input"`
	HourCacheCreationInput int64 `json:"hour_cache_creation_input"`
	Output                 int64 `json:"output"` // without reasoning
	Reasoning              int64 `json:"reasoning"`
}

// Provider is the handler. The zero value works.
type Provider struct {
	// Tools are tools with the arguments to call them with. A request that offers one of them, and has no result of a call yet, is answered
	// with a call of it, as agents expect it.
	Tools map[string]string

	mu      sync.Mutex
	records []Record
}

// Ledger returns what was counted so far.
func (p *Provider) Ledger() []Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Record{}, p.records...)
}

func (p *Provider) record(r Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.records) < maxRecords {
		p.records = append(p.records, r)
	}
}

func (p *Provider) isFull() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.records) >= maxRecords
}

func (p *Provider) empty() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.records = nil
}

// ServeHTTP answers a call, or a request for the ledger.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/ledger" && r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.Ledger()) // fails only when the client is gone
	case r.URL.Path == "/ledger" && r.Method == http.MethodDelete:
		p.empty()
		w.WriteHeader(http.StatusNoContent)
	case formats[r.URL.Path] != nil && r.Method == http.MethodPost:
		p.serveCall(w, r)
	case isFree(r):
		p.serveFree(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (p *Provider) serveCall(w http.ResponseWriter, r *http.Request) {
	format := formats[r.URL.Path]
	record := Record{ID: r.Header.Get("X-Call"), Path: r.URL.Path, Status: http.StatusOK}
	cut := false
	defer func() {
		p.record(record)
		if cut {
			panic(http.ErrAbortHandler)
		}
	}()
	if p.isFull() {
		record.Status = refuse(w, format, http.StatusInsufficientStorage, "the ledger is full: DELETE /ledger")
		record.Ended = true
		return
	}
	c, problem := p.readCall(r)
	record.Model = c.request.Model
	if problem != "" {
		record.Status, record.Ended = refuse(w, format, http.StatusBadRequest, problem), true
		return
	}
	if status := c.fake.refusal(c.request.Stream); status != 0 {
		if c.fake.retry != "" {
			w.Header().Set("Retry-After", c.fake.retry)
		}
		record.Status, record.Ended = refuse(w, format, status, "as X-Fake says"), true
		return
	}
	a := format.answer(c, generate(c))
	out := &writer{to: w, ctx: r.Context(), fake: c.fake, random: c.random}
	if c.request.Stream {
		record.Usage, record.Ended = out.stream(a)
	} else {
		record.Usage, record.Ended = out.whole(a)
	}
	cut = !record.Ended && c.fake.cut
}

// refuse answers with an error and returns its status. Clients may repeat the call at once, unless it says when.
func refuse(w http.ResponseWriter, f format, status int, problem string) int {
	w.Header().Set("Content-Type", "application/json")
	if w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After-Ms", "1")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(f.problem(status, problem)) // fails only when the client is gone
	return status
}

// callIDs are those of the calls of tools. A request that has one has the result.
var callIDs = [][]byte{[]byte(`"call_fake"`), []byte(`"toolu_fake"`)}

func (p *Provider) readCall(r *http.Request) (c call, problem string) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil || len(body) > maxBody {
		return c, "the body is too large, or did not come"
	}
	if c.fake, err = readBehaviour(r.Header.Get("X-Fake")); err != nil {
		return c, "X-Fake: " + err.Error()
	}
	if err := json.Unmarshal(body, &c.request); err != nil {
		return c, "the body is no request: " + err.Error()
	}
	c.size = max(1, int64(len(body))-escapes(body)-c.request.manner())
	if called, is := c.request.offered(r.URL.Path, p.Tools); is && !slices.ContainsFunc(callIDs, func(id []byte) bool { return bytes.Contains(body, id) }) {
		c.fake.tools, c.tool = true, called
	}
	c.tool.name = cmp.Or(c.tool.name, "lookup")
	c.answering = cmp.Or(c.fake.model, c.request.Model)
	c.path = r.URL.Path
	c.random = c.fake.random()
	return c, c.request.problem(r.URL.Path)
}
