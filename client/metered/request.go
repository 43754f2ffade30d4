package metered

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"remit/client/prices"
	"remit/money"
)

// maxBody bounds the bodies of requests, and of answers that are not streamed.
const maxBody = 64 << 20

// call is a request for a completion.
type call struct {
	format format
	model  string // as sent
	priced string // its name in the price table
	body   []byte // to be sent

	mostInput, mostOutput int64 // tokens
}

// formatOf returns the format of a request that is metered, and whether the request passes as it is.
func formatOf(r *http.Request) (f format, passes bool) {
	path := strings.TrimRight(r.URL.Path, "/")
	for suffix, f := range formats {
		if strings.HasSuffix(path, suffix) {
			return f, r.Method != http.MethodPost
		}
	}
	return nil, r.Method != http.MethodPost || strings.HasSuffix(path, "/messages/count_tokens") ||
		strings.HasSuffix(path, "/responses/input_tokens") || strings.HasSuffix(path, "/cancel")
}

// request returns the request to send.
func (q *call) request(ctx context.Context, r *http.Request) *http.Request {
	sent := r.Clone(ctx)
	sent.Body = io.NopCloser(bytes.NewReader(q.body))
	sent.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(q.body)), nil }
	sent.ContentLength = int64(len(q.body))
	sent.Header.Del("Content-Length")
	sent.Header.Del("Accept-Encoding") // http.Transport then decompresses what it has to read
	return sent
}

// wireRequest has the members of all formats that matter here. Counts are exact texts.
type wireRequest struct {
	Model               string                     `json:"model"`
	Stream              bool                       `json:"stream"`
	StreamOptions       map[string]json.RawMessage `json:"stream_options"`
	N                   json.Number                `json:"n"`
	MaxTokens           json.Number                `json:"max_tokens"`
	MaxCompletionTokens json.Number                `json:"max_completion_tokens"`
	MaxOutputTokens     json.Number                `json:"max_output_tokens"`
	Background          bool                       `json:"background"`
}

// read reads a request and bounds its tokens. It closes the request's body.
func (t *Transport) read(r *http.Request, f format) (*call, error) {
	text, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, &UnboundedCall{Reason: "the price of POST " + r.URL.Path + " is not known; send it by a client that is not metered"}
	}
	if r.Header.Get("Content-Encoding") != "" {
		return nil, &UnboundedCall{Reason: "its body is compressed"}
	}
	var request wireRequest
	var all any
	if json.Unmarshal(text, &request) != nil || json.Unmarshal(text, &all) != nil {
		return nil, &UnboundedCall{Reason: "its body is no request in JSON"}
	}
	q := &call{format: f, model: request.Model, priced: request.Model, body: text}
	if priced, has := t.Models[request.Model]; has {
		q.priced = priced
	}
	if t.Prices == nil {
		return nil, errors.New("metered: Transport.Prices is nil")
	}
	limits, err := t.Prices.Limits(q.priced)
	if err != nil {
		return nil, err
	}
	if request.Background {
		return nil, &UnboundedCall{q.model, "it runs in the background, where its usage is not seen"}
	}
	if err := q.bound(request, all, limits); err != nil {
		return nil, err
	}
	return q, q.askForUsage(request)
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
func (q *call) bound(request wireRequest, all any, limits prices.Limits) error {
	q.mostInput = int64(len(q.body)) // a token is at least a byte
	if limits.MaxInputTokens > 0 {
		q.mostInput = min(q.mostInput, limits.MaxInputTokens)
	}
	if refersElsewhere(all) {
		if q.mostInput = limits.MaxInputTokens; q.mostInput == 0 {
			return &UnboundedCall{q.model, "it refers to content elsewhere: give the model max_input_tokens in the price table"}
		}
	}
	n, err := count(cmp.Or(request.N, "1"))
	if err != nil {
		return &UnboundedCall{q.model, "n " + err.Error()}
	}
	most := limits.MaxOutputTokens
	if given := cmp.Or(request.MaxOutputTokens, request.MaxCompletionTokens, request.MaxTokens); given != "" {
		if most, err = count(given); err != nil {
			return &UnboundedCall{q.model, "the maximum of its output " + err.Error()}
		}
	}
	if most == 0 {
		return &UnboundedCall{q.model, "set " + q.format.maximum() + " in the request, or max_output_tokens in the price table"}
	}
	if most > prices.MaxTokens/n {
		return &UnboundedCall{q.model, "its output has no bound that can be priced"}
	}
	q.mostOutput = most * n
	return nil
}

func count(text json.Number) (int64, error) {
	n, err := text.Int64()
	if err != nil || n < 1 || n > prices.MaxTokens {
		return 0, errors.New("must be an integer from 1")
	}
	return n, nil
}

// worst returns the most that the call can cost.
func (t *Transport) worst(q *call) (money.MicroUSD, error) {
	worst, err := t.Prices.Worst(q.priced, q.mostInput, q.mostOutput)
	if errors.Is(err, prices.ErrUsage) {
		return 0, &UnboundedCall{q.model, "its output has no bound that can be priced"}
	}
	return worst, err
}

// askForUsage has a stream of chat completions report its usage, which it does only when asked.
func (q *call) askForUsage(request wireRequest) error {
	if _, isChat := q.format.(chat); !isChat || !request.Stream {
		return nil
	}
	switch include := string(request.StreamOptions["include_usage"]); include {
	case "true":
		return nil
	case "", "null":
	default:
		return &UsageMissing{q.model, "stream_options.include_usage is " + include}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(q.body, &members); err != nil {
		return err
	}
	options := map[string]json.RawMessage{"include_usage": json.RawMessage("true")}
	for name, value := range request.StreamOptions {
		if name != "include_usage" {
			options[name] = value
		}
	}
	var err error
	if members["stream_options"], err = json.Marshal(options); err != nil {
		return err
	}
	q.body, err = marshal(members)
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
