package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"remit/client"
	"remit/test/suite"
)

// aCall returns the text of a call over HTTP/1.1 by the agent, with more lines of header, as a client writes it that closes afterwards.
func (a agent) aCall(first, lines, body string) string {
	return first + "\r\nHost: gateway\r\nAuthorization: Bearer " + a.token + "\r\nX-Remit-Session: " + a.session +
		"\r\nContent-Type: application/json\r\nConnection: close\r\n" + lines + "\r\n" + body
}

// dial returns a connection to the gateway, whose reads end after some seconds.
func (w *world) dial() net.Conn {
	w.t.Helper()
	c := must(net.Dial("tcp", strings.TrimPrefix(w.url, "http://")))(w.t)
	w.t.Cleanup(func() { _ = c.Close() })
	suite.NoError(w.t, c.SetDeadline(time.Now().Add(10*time.Second)))
	return c
}

// statusesOn returns those of all answers on the connection, until it ends.
func statusesOn(c net.Conn) (all []int, err error) {
	for from := bufio.NewReader(c); ; {
		got, err := http.ReadResponse(from, nil)
		if err != nil {
			if _, ends := from.Peek(1); ends == io.EOF {
				err = nil
			}
			return all, err
		}
		_, _ = io.Copy(io.Discard, got.Body)
		all = append(all, got.StatusCode)
	}
}

// begun sends the beginning of a call with a body of so many bytes, and nothing of that.
func (a agent) begun(bytes int) net.Conn {
	a.t.Helper()
	c := a.dial()
	_, _ = io.WriteString(c, a.aCall("POST "+chatPath+" HTTP/1.1", fmt.Sprintf("Content-Length: %d\r\n", bytes), ""))
	return c
}

// A stranger's request ends soon, also one whose body never comes: net/http reads on before it answers.
func TestAStrangerHoldsNoConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	for what, text := range map[string]string{
		"no credential, no body": "POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
		"no upstream, no chunk":  "POST /unknown/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
		"its own route, no body": "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
		"a forged key, a byte":   "POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nX-Api-Key: rmsk_x\r\nContent-Length: 100\r\n\r\n{",
	} {
		c := w.dial()
		_, _ = io.WriteString(c, text)
		if got, err := statusesOn(c); len(got) != 1 || got[0] < 400 || err != nil {
			t.Errorf("%s: %v %v", what, got, err)
		}
	}
}

// Connections without requests keep no client out: the one that has waited longest goes first.
func TestConnectionsThatWaitGiveWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	a := w.rich()
	w.gateway.waiting.setMost(4)
	var idle []net.Conn
	for range 6 {
		idle = append(idle, w.dial())
		eventually(t, "it is counted", func() bool {
			w.gateway.waiting.mu.Lock()
			defer w.gateway.waiting.mu.Unlock()
			return len(w.gateway.waiting.all) == min(len(idle), 4)
		})
	}
	if got := a.post(chatPath, bodyFor(chatPath, "")); got.StatusCode != 200 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	for i, c := range idle {
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		_, err := c.Read(make([]byte, 1))
		if isClosed := err == io.EOF; isClosed != (i < 3) {
			t.Errorf("connection %d: %v", i, err)
		}
	}
	eventually(t, "no connection is counted that has gone", func() bool {
		for _, c := range idle {
			_ = c.Close()
		}
		w.gateway.waiting.mu.Lock()
		defer w.gateway.waiting.mu.Unlock()
		return len(w.gateway.waiting.all) == 0 && w.gateway.waiting.order.Len() == 0
	})
}

// Bodies that do not come take no place from others of the organization, and few of their own agent's.
func TestBodiesThatNeverComeKeepOutOnlyTheirAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "max_streams: 16", nil)
	slow, other := w.rich(), w.rich()
	for range 2 {
		slow.begun(100)
	}
	eventually(t, "they are read", func() bool { return w.gateway.arriving.len() == 2 })
	if got := slow.post(chatPath, bodyFor(chatPath, "")); got.StatusCode != 429 || got.Header.Get("X-Should-Retry") != "true" {
		t.Errorf("one more of the agent: %d %s", got.StatusCode, got.body)
	}
	if got := other.post(chatPath, bodyFor(chatPath, "")); got.StatusCode != 200 || w.gateway.places.len() != 0 {
		t.Errorf("another agent: %d %s, %d places", got.StatusCode, got.body, w.gateway.places.len())
	}
}

// Who announces large bodies and sends none gives way to who holds less. One whose credential has ended is not read at all.
func TestBodiesThatNeverComeKeepNoMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	slow := w.rich()
	key := slow.key()
	w.gateway.bodies.SetMost(100_000)
	c := slow.begun(50_000)
	eventually(t, "it is read", func() bool { return w.gateway.bodies.Reserved() == 50_000 })
	made := must(w.api.CreateOrganization(t.Context(), client.OrganizationParams{Name: "other"}))(t)
	another := *w
	another.admin, another.org = w.api.Organization(string(made.APIKey)), made.ID
	w.gateway.bodies.SetMost(60_000)
	a := another.rich()
	if got := a.post(chatPath, bodyFor(chatPath, `,"user":"`+strings.Repeat("x", 20_000)+`"`)); got.StatusCode != 200 {
		t.Errorf("another organization: %d %s", got.StatusCode, got.body)
	}
	if got, err := statusesOn(c); fmt.Sprint(got) != "[503]" || err != nil {
		t.Errorf("the slow one: %v %v", got, err)
	}
	w.gateway.bodies.SetMost(bodiesMemory)
	suite.NoError(t, w.admin.EndSession(t.Context(), slow.session))
	r := slow.request("POST", chatPath, "", "Authorization", "Bearer "+key)
	body, end := io.Pipe()
	defer end.Close()
	r.Body, r.ContentLength = body, 2<<20
	if got := slow.do(r); got.StatusCode != http.StatusForbidden && got.StatusCode != http.StatusUnauthorized {
		t.Errorf("of a session that is over: %d %s", got.StatusCode, got.body)
	}
}
