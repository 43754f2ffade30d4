package metered

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"remit/client/wire"
)

// formats are the ends of the paths that are metered.
var formats = map[string]wire.Format{
	"/chat/completions": wire.ChatCompletions, "/responses": wire.Responses, "/messages": wire.Messages,
}

// formatOf returns the format of a request that is metered, and whether the request passes as it is.
func formatOf(r *http.Request) (f wire.Format, passes bool) {
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

// request returns the request to send.
func request(once *wire.Once, r *http.Request) *http.Request {
	sent := once.Request(r.Context(), r)
	sent.Header.Del("Accept-Encoding") // http.Transport then decompresses what it has to read
	return sent
}

// read reads a request and bounds its tokens. It closes the request's body.
func (t *Transport) read(r *http.Request, f wire.Format) (*wire.Call, error) {
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
	if t.Prices == nil {
		return nil, errors.New("metered: Transport.Prices is nil")
	}
	return wire.Read(f, text, t.Prices, wire.Options{Models: t.Models})
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, wire.MaxBody+1))
	return text, err // wire.Read refuses what is longer
}
