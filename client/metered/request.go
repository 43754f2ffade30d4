package metered

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"remit/client/prices"
	"remit/money"
)

// maxBody bounds the bodies of requests, and of answers that are not streamed.
const maxBody = 64 << 20

// toolPrompt is more than the tokens of the prompt that a provider puts before a request with tools: Anthropic's has a few
// hundred, by its pages on tool use.
const toolPrompt = 1000

// call is a request for a completion.
type call struct {
	format format
	model  string // as sent
	priced string // its name in the price table
	body   []byte // to be sent

	tier       string // service_tier as sent; empty: none
	reasons    bool   // it may have output that is not sent
	hidesUsage bool   // the caller did not ask for the usage of its stream
	limitName  string // of the request's maximum of output, the highest, or of the one that it should have
	isLimited  bool   // the request has it

	mostInput, mostOutput int64 // tokens
}

// formatOf returns the format of a request that is metered, and whether the request passes as it is.
func formatOf(r *http.Request) (f format, passes bool) {
	if isDisguised(r.Header) {
		return nil, false
	}
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete:
		return nil, true
	}
	path := strings.TrimRight(r.URL.EscapedPath(), "/")
	for suffix, f := range formats {
		if strings.HasSuffix(path, suffix) {
			return f, false
		}
	}
	return nil, strings.HasSuffix(path, "/messages/count_tokens") || strings.HasSuffix(path, "/responses/input_tokens") ||
		strings.HasSuffix(path, "/cancel")
}

// isDisguised reports whether a server may take a request for another than its method and path say.
func isDisguised(h http.Header) bool {
	return slices.ContainsFunc([]string{"Upgrade", "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override"}, func(name string) bool {
		return h.Get(name) != ""
	})
}

// request returns the request to send, and whether its body has been read: before that, nothing can have been sent whole.
//
// It can be sent once. With a GetBody that always gives the body, http.Transport would send it again on another connection when a reused
// one ends: over HTTP/1 if it has an Idempotency-Key, and over HTTP/2 on a GOAWAY and some resets. The provider could then be paid twice
// for one hold. Without a GetBody it would not send it again either where it wrote nothing, as on a connection that ended while it was
// idle.
func (q *call) request(ctx context.Context, r *http.Request) (sent *http.Request, isRead *atomic.Bool) {
	isRead = new(atomic.Bool)
	sent = r.Clone(ctx)
	sent.GetBody = func() (io.ReadCloser, error) {
		if isRead.Load() {
			return nil, errSentOnce
		}
		return &requestBody{text: bytes.NewReader(q.body), isRead: isRead}, nil
	}
	sent.Body, _ = sent.GetBody()
	sent.ContentLength = int64(len(q.body))
	sent.Header.Del("Content-Length")
	sent.Header.Del("Accept-Encoding") // http.Transport then decompresses what it has to read
	return sent, isRead
}

var errSentOnce = errors.New("metered: the connection ended, and a call is sent once")

// requestBody notes that it is read. Of the bodies of a call, one can be read. http.Transport writes the header before it reads one whose
// type it does not know: until then it can have sent no call.
type requestBody struct {
	text   io.Reader
	isRead *atomic.Bool // this body, or another one
	isOne  bool         // that is read
}

func (b *requestBody) Read(p []byte) (int, error) {
	if !b.isOne && !b.isRead.CompareAndSwap(false, true) {
		return 0, errSentOnce
	}
	b.isOne = true
	return b.text.Read(p)
}

func (b *requestBody) Close() error { return nil }

// read reads a request and bounds its tokens. It closes the request's body.
func (t *Transport) read(r *http.Request, f format) (*call, error) {
	text, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, &UnboundedCall{Reason: "the price of " + r.Method + " " + r.URL.Path + " is not known; send it by a client that is not metered"}
	}
	if r.Header.Get("Content-Encoding") != "" {
		return nil, &UnboundedCall{Reason: "its body is compressed"}
	}
	request, is := readMembers(text)
	if !is {
		return nil, &UnboundedCall{Reason: "its body is no request in JSON"}
	}
	model, isText := cmp.Or[any](request["model"], "").(string)
	if !isText {
		return nil, &UnboundedCall{Reason: "its model is no text in JSON"}
	}
	q := &call{format: f, model: model, priced: model, body: text}
	if priced, has := t.Models[model]; has {
		q.priced = priced
	}
	if t.Prices == nil {
		return nil, errors.New("metered: Transport.Prices is nil")
	}
	limits, err := t.Prices.Limits(q.priced)
	if err != nil {
		return nil, err
	}
	if _, isBool := request["stream"].(bool); !isBool && request["stream"] != nil {
		return nil, &UnboundedCall{q.model, "stream must be true or false in JSON"}
	}
	if reason := cmp.Or(unpriced(request), q.readTier(request, t.Prices)); reason != "" {
		return nil, &UnboundedCall{q.model, reason}
	}
	q.reasons = canReason(request, t.Prices.Reasons(q.priced))
	if err := q.bound(request, limits); err != nil {
		return nil, err
	}
	return q, q.askForUsage(request)
}

// members are those of a JSON object. Numbers are exact texts.
type members = map[string]any

func readMembers(text []byte) (request members, is bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&request) != nil || request == nil {
		return nil, false
	}
	_, err := d.Token()
	return request, err == io.EOF
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err == nil && len(text) > maxBody {
		err = &UnboundedCall{Reason: "its body has more than 64 MiB"}
	}
	return text, err
}

// bound sets the most tokens that the call can have.
func (q *call) bound(request members, limits prices.Limits) error {
	q.mostInput = int64(len(q.body)) // a token is at least a byte
	if tools, _ := request["tools"].([]any); len(tools) > 0 {
		q.mostInput += toolPrompt
	}
	if limits.MaxInputTokens > 0 {
		q.mostInput = min(q.mostInput, limits.MaxInputTokens)
	}
	if refersElsewhere(request, q.format) {
		if q.mostInput = limits.MaxInputTokens; q.mostInput == 0 {
			return &UnboundedCall{q.model, "it refers to content elsewhere: give the model max_input_tokens in the price table"}
		}
	}
	n, _, err := q.highest(request, q.format.answers())
	if err != nil {
		return err
	}
	most, name, err := q.highest(request, q.format.maxima())
	if err != nil {
		return err
	}
	q.limitName, q.isLimited = cmp.Or(name, q.format.maxima()[0]), name != ""
	n, most = max(n, 1), cmp.Or(most, limits.MaxOutputTokens)
	if most == 0 {
		return &UnboundedCall{q.model, "set " + q.format.maxima()[0] + " in the request, or max_output_tokens in the price table"}
	}
	if most > prices.MaxTokens/n {
		return &UnboundedCall{q.model, "its output has no bound that can be priced"}
	}
	q.mostOutput = most * n
	return nil
}

// highest returns the highest of counts in the request, because servers differ in which one they heed, and its name. 0: there is none.
func (q *call) highest(request members, names []string) (most int64, of string, err error) {
	for _, name := range names {
		if request[name] == nil {
			continue
		}
		number, _ := request[name].(json.Number)
		n, err := number.Float64() // as TypeScript reads it: 1e3 and 1000.0 are integers
		if err != nil || n != math.Trunc(n) || n < 1 || n > prices.MaxTokens {
			return 0, "", &UnboundedCall{q.model, name + " must be a JSON integer from 1"}
		}
		if int64(n) > most {
			most, of = int64(n), name
		}
	}
	return most, of, nil
}

// worst returns the most that the call can cost.
func (t *Transport) worst(q *call) (money.MicroUSD, error) {
	worst, err := t.Prices.WorstIn(q.priced, q.tier, q.mostInput, q.mostOutput)
	if errors.Is(err, prices.ErrUsage) {
		return 0, &UnboundedCall{q.model, "its output has no bound that can be priced"}
	}
	return worst, err
}

// askForUsage has a stream of chat completions report its usage, which it does only when asked.
func (q *call) askForUsage(request members) error {
	if _, isChat := q.format.(chat); !isChat || request["stream"] != true {
		return nil
	}
	var body, options map[string]json.RawMessage
	if err := json.Unmarshal(q.body, &body); err != nil {
		return err
	}
	if text := body["stream_options"]; text != nil && json.Unmarshal(text, &options) != nil {
		return &UnboundedCall{q.model, "stream_options must be an object in JSON"}
	}
	switch include := string(options["include_usage"]); include {
	case "true":
		return nil
	case "", "null":
	default:
		return &UsageMissing{q.model, "stream_options.include_usage is " + include + ", so it was not sent"}
	}
	if options == nil {
		options = map[string]json.RawMessage{}
	}
	options["include_usage"] = json.RawMessage("true")
	var err error
	if body["stream_options"], err = json.Marshal(options); err != nil {
		return err
	}
	q.hidesUsage = true
	q.body, err = marshal(body)
	return err
}

// marshal keeps <, > and & as they are.
func marshal(members map[string]json.RawMessage) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(members)
	return bytes.TrimRight(text.Bytes(), "\n"), err
}
