package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"remit/server/conn"
)

// writes answers with this text, byte by byte as it is, and ends the connection.
func writes(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, buffered, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = buffered.WriteString(text)
			_ = buffered.Flush()
			_ = c.Close()
		}
	}
}

// withUsage returns an answer of HTTP that says this as its usage.
func withUsage(usage string) string {
	body := `{"model":"plain","choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}],"usage":` + usage + `}`
	return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + fmt.Sprint(len(body)) + "\r\n\r\n" + body
}

// Whatever a provider answers, the call is settled, and never as if it had cost nothing.
func TestNoAnswerOfAProviderMakesACallFree(t *testing.T) {
	t.Parallel()
	var answer atomic.Value // a connection that ends without an answer orders nothing for the race detector
	w := newWorld(t, "", &recorded{answer: func(w http.ResponseWriter, r *http.Request) { writes(answer.Load().(string))(w, r) }})
	stream := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	for name, test := range map[string]struct {
		answer string
		status int
		isCut  bool
	}{
		"an endless header":                 {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: aaaaaaaaaaaaaaaa\r\n", 10_000), 502, false},
		"a header line without an end":      {"HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("a", 300_000), 502, false},
		"a flood of hints":                  {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 10_000), 502, false},
		"another protocol":                  {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", 502, false},
		"no HTTP":                           {"SSH-2.0-OpenSSH_9.9\r\n", 502, false},
		"nothing":                           {"", 502, false},
		"no content":                        {"HTTP/1.1 204 No Content\r\n\r\n", 200 + 4, false},
		"an empty answer":                   {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, false},
		"less than it says":                 {"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + wholeChat[:150], 200, true},
		"a chunk that is none":              {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 502, false},
		"gzip, unasked":                     {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + wholeChat, 200, false},
		"gzip, unsaid":                      {"HTTP/1.1 200 OK\r\n\r\n\x1f\x8b\x08\x00", 200, false},
		"usage beyond all money":            {withUsage(`{"prompt_tokens":9007199254740991,"completion_tokens":9007199254740991}`), 200, false},
		"usage with an exponent":            {withUsage(`{"prompt_tokens":1e1,"completion_tokens":2}`), 200, false},
		"a stream of one line":              {stream + "data: " + strings.Repeat("x", 3<<20), 200, false},
		"a stream of one line, then usage":  {stream + strings.Repeat(" ", 3<<20) + `data: {"usage":{"prompt_tokens":1}}`, 200, false},
		"a stream without its end":          {stream + "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":0}}\n\n", 200, false},
		"the end alone":                     {stream + "data: [DONE]\n\n", 200, false},
		"an error that is cut":              {"HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\n{", 400, true},
		"a success with the body of errors": {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"error\":{\"message\":\"no\"}}", 200, false},
	} {
		a := w.rich()
		w.gateway.transport.CloseIdleConnections() // the provider has ended that of the row before
		answer.Store(test.answer)
		got := a.post(chatPath, bodyFor(chatPath, ""))
		if got.StatusCode != test.status || (got.err != nil) != test.isCut {
			t.Errorf("%s: %d %v %.200s", name, got.StatusCode, got.err, got.body)
		}
		a.paidTheHold(name)
	}
	if w.gateway.answers.Reserved() != 0 || w.gateway.bodies.Reserved() != 0 || w.gateway.places.len() != 0 {
		t.Errorf("%d and %d bytes, %d places are left", w.gateway.answers.Reserved(), w.gateway.bodies.Reserved(), w.gateway.places.len())
	}
}

// What a provider sends after an answer is no answer to the next call, and its trailers go nowhere.
func TestAnAnswerIsOfItsOwnCall(t *testing.T) {
	t.Parallel()
	other := strings.NewReplacer("10", "1", "hi", "of another").Replace(wholeChat)
	p := &recorded{answer: func(w http.ResponseWriter, r *http.Request) {
		c, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = fmt.Fprintf(buffered, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTrailer: X-Secret\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n", len(wholeChat), wholeChat)
		_, _ = fmt.Fprintf(buffered, "X-Secret: s\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(other), other)
		_ = buffered.Flush()
		_, _ = bufio.NewReader(c).ReadByte() // until the gateway ends the connection
	}}
	w := newWorld(t, "", p)
	a := w.rich()
	for range 3 {
		got := a.post(chatPath, bodyFor(chatPath, ""))
		if got.StatusCode != 200 || got.body != wholeChat || got.Trailer.Get("X-Secret") != "" || got.Header.Get("Trailer") != "" {
			t.Errorf("%d %v %v %s", got.StatusCode, got.Header, got.Trailer, got.body)
		}
	}
	a.spent(3 * chatCost)
}

// What is kept of answers is bounded for all of them. One for which there is no room passes all the same.
func TestLargeAnswersAreKeptWithinTheGatewaysMemory(t *testing.T) {
	t.Parallel()
	const large = 1 << 20
	p := &recorded{answer: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Replace(wholeChat, "hi", strings.Repeat("x", large), 1))
	}}
	w := newWorld(t, "", p)
	for room, isKept := range map[int]bool{64 << 20: true, 100_000: false} {
		w.gateway.answers = conn.NewPool(room, errBodiesFull, errBodiesHalf)
		a := w.rich()
		got := a.post(chatPath, bodyFor(chatPath, ""))
		if got.StatusCode != 200 || len(got.body) < large {
			t.Errorf("in %d bytes: %d, %d bytes", room, got.StatusCode, len(got.body))
		}
		if isKept {
			a.spent(chatCost)
		} else {
			a.paidTheHold("an answer that is not kept")
		}
		if left := w.gateway.answers.Reserved(); left != 0 {
			t.Errorf("%d bytes are left reserved", left)
		}
	}
}

// Some servers quote the key that they refuse.
func TestAProviderThatQuotesItsKeyShowsItToNobody(t *testing.T) {
	t.Parallel()
	p := new(recorded)
	w := newWorld(t, "", p)
	a := w.rich()
	for _, status := range []int{401, 500} {
		for _, cut := range []int{1, 30, 50, 1000} {
			p.answer = func(w http.ResponseWriter, r *http.Request) {
				key := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key")
				text := strings.Repeat("-", 20) + key + key + "sk-provider-se"
				w.Header().Set("X-Debug-Authorization", key)
				w.Header().Set("Content-Length", fmt.Sprint(len(text)))
				w.WriteHeader(status)
				for len(text) > 0 {
					n := min(cut, len(text))
					_, _ = io.WriteString(w, text[:n])
					_ = http.NewResponseController(w).Flush()
					text = text[n:]
				}
			}
			for _, path := range []string{chatPath, messagesPath + "/count_tokens"} {
				got := a.post(path, bodyFor(chatPath, ""))
				if got.StatusCode != status || got.err != nil || strings.Contains(got.body, "secret") || !strings.HasSuffix(got.body, "*sk-provider-se") || got.Header.Get("X-Debug-Authorization") != "" {
					t.Errorf("%s, %d, pieces of %d: %v %v %s", path, got.StatusCode, cut, got.err, got.Header, got.body)
				}
			}
		}
	}
	a.spent(0)
}
