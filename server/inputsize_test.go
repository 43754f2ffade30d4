package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const maxBody = 256 << 10

// padded returns the body with white space to a size.
func padded(body any, size int) raw {
	text := string(mustEncode(body))
	return raw(text + strings.Repeat(" ", size-len(text)))
}

func TestABodyOf256KiBIsAcceptedAndOneByteMoreIsNot(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	w := api.newTenant()
	id := w.newSession(nil)
	for _, chunked := range []bool{false, true} {
		c := w.client.in(t)
		post := func(path string, body any, size int, as option) *response {
			t.Helper()
			if chunked {
				as = both(as, unsized)
			}
			return c.post(path, padded(body, size), as)
		}
		t.Run(fmt.Sprintf("chunked %t", chunked), func(t *testing.T) {
			post("/v1/organizations", fields{"name": "full"}, maxBody, anonymous).is(201)
			post("/sessions/"+id+"/actions", fields{}, maxBody, asKey(w.key)).is(200)
			wantNothingWritten(t, api, func() {
				post("/v1/organizations", fields{"name": "over"}, maxBody+1, anonymous).refused(413, "body_too_large")
				post("/sessions/"+id+"/actions", fields{}, maxBody+1, asKey(w.key)).refused(413, "body_too_large")
			})
		})
	}
}

// both sets two headers. unsized asks the client to send the body chunked.
func both(a, b option) option { return func(h http.Header) { a(h); b(h) } }

func unsized(h http.Header) { h.Set(sendChunked, "yes") }

// A client that sends everything before it reads must still get the response: the rest of its body must not reset the
// connection.
func TestTheAnswerToABodyThatIsTooLargeReachesAClientThatSendsAllOfIt(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	body := bytes.Repeat([]byte(" "), 2<<20)
	for name, text := range map[string]string{
		"sized":   fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body),
		"chunked": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body),
	} {
		t.Run(name, func(t *testing.T) {
			conn := must(net.Dial("tcp", api.on.address))(t)
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.WriteString(conn, "POST /v1/organizations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+text); err != nil {
				t.Fatalf("the connection was closed while the body was sent: %v", err)
			}
			answers := readAnswers(t, conn)
			if len(answers) != 1 {
				t.Fatalf("%d answers, want 1", len(answers))
			}
			answers[0].refused(413, "body_too_large")
			if got := answers[0].header.Get("Connection"); got != "close" {
				t.Errorf("Connection %q, want close", got)
			}
		})
	}
}

func TestTheRequestIDOfABodyThatIsTooLargeIsKept(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{})
	r := api.post("/v1/organizations", padded(fields{}, maxBody+1), header("X-Request-Id", "mine")).refused(413, "body_too_large")
	if got := r.header.Get("X-Request-Id"); got != "mine" {
		t.Errorf("X-Request-Id %q, want mine", got)
	}
}
