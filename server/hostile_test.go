package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"remit/server"
	"remit/test/hostile"
)

// codes are those that a status alone stands for.
var codes = map[int]string{
	400: "invalid_request", 404: "not_found", 405: "method_not_allowed", 408: "request_timeout", 413: "body_too_large",
	417: "expectation_failed", 431: "headers_too_large",
}

// target is a service that hostile requests are sent to, and the honest tenant whose credentials they carry.
type target struct {
	tenant
	credentials hostile.Credentials
	log         *syncBuffer
	secure      *tls.Config // of a client; nil for plain HTTP
}

func newTarget(t *testing.T, prepare func(*server.Server)) target {
	t.Helper()
	log := &syncBuffer{}
	w := onMiniredis(t, setup{log: log, prepare: prepare}).newTenant()
	return target{w, hostile.Credentials{
		Key: w.key, Access: w.exchange().access, Session: w.newSession(fields{"max_actions": 100_000}), Agent: w.agent.id,
	}, log, nil}
}

// overTLS returns the same behind a second instance, which speaks TLS.
func (on target) overTLS(t *testing.T) target {
	t.Helper()
	known := httptest.NewTLSServer(nil) // for its certificate
	known.Close()
	with := on.on.setup
	with.tls = &tls.Config{Certificates: known.TLS.Certificates}
	on.client = run(t, &instance{setup: with, keyring: on.on.keyring})
	on.secure = known.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	on.secure.ServerName = "127.0.0.1"
	return on
}

// connect returns a connection that hangs for no longer than a test may.
func (on target) connect(t *testing.T) net.Conn {
	t.Helper()
	dialer := &net.Dialer{}
	conn := must(dialer.DialContext(t.Context(), "tcp", on.on.address))(t)
	if on.secure != nil {
		conn = tls.Client(conn, on.secure)
		must(0, conn.(*tls.Conn).HandshakeContext(context.Background()))(t)
	}
	must(0, conn.SetDeadline(time.Now().Add(30*time.Second)))(t)
	return conn
}

// Each request of the table is followed by another, whose response shows that the connection stayed open.
func TestEachHostileRequestHasItsOneAnswer(t *testing.T) {
	t.Parallel()
	for _, group := range hostile.Groups() {
		t.Run(group.Name, func(t *testing.T) {
			t.Parallel()
			plain := newTarget(t, nil)
			secure := plain.overTLS(t)
			for _, request := range group.Requests {
				t.Run(request.Name, func(t *testing.T) { plain.send(t, request) })
				t.Run(request.Name+", over TLS", func(t *testing.T) { secure.send(t, request) })
			}
			plain.wantSilentLog(t)
		})
	}
}

// send holds the service to what the table says of one request.
func (on target) send(t *testing.T, request hostile.Request) {
	t.Helper()
	before := on.on.mini.Dump()
	answers, text := on.exchange(t, on.credentials.Fill(request.Raw), request.Fate == hostile.Cut)
	want := []int{}
	if request.Status != hostile.NoAnswer {
		want = append(want, request.Status)
	}
	if request.Fate == hostile.Kept {
		want = append(want, 200)
	}
	wantStatuses(t, answers, text, want...)
	if request.Fate == hostile.Kept && answers[1].header.Get("X-Request-Id") != "follower" {
		t.Errorf("the second answer is not its follower's:\n%s", text)
	}
	if len(answers) > 0 {
		if closes := answers[0].header.Get("Connection") == "close"; closes != (request.Fate != hostile.Kept) {
			t.Errorf("Connection: %q", answers[0].header.Get("Connection"))
		}
	}
	if request.Status >= 400 {
		code := request.Code
		if code == "" {
			code = codes[request.Status]
		}
		answers[0].in(t).refused(request.Status, code)
	}
	if (request.Status >= 400 || len(answers) == 0) && on.on.mini.Dump() != before {
		t.Error("it was refused, and changed what is stored")
	}
	if strings.Contains(strings.ToLower(text), hostile.Marker) {
		t.Errorf("it quotes the request:\n%s", text)
	}
	on.wantNoCredential(t, "the answer", text)
	wantNoVainContinue(t, request, text)
}

// wantNoVainContinue fails the test if a client was asked to send a body that is refused anyway, or one that does not know
// such an answer.
func wantNoVainContinue(t *testing.T, request hostile.Request, text string) {
	t.Helper()
	line, _, _ := strings.Cut(request.Raw, "\r\n")
	if continued := strings.HasPrefix(text, "HTTP/1.1 100 "); continued && (request.Status >= 400 || strings.HasSuffix(line, "HTTP/1.0")) {
		t.Errorf("it is told to go on:\n%s", text)
	}
}

func wantStatuses(t *testing.T, answers []*response, text string, want ...int) {
	t.Helper()
	got := []int{}
	for _, r := range answers {
		got = append(got, r.status)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("answered %v, want %v:\n%s", got, want, text)
	}
}

const lastFollower = "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: follower\r\nConnection: close\r\n\r\n"

// exchange sends a request and its follower, and returns what comes back until the server closes: as answers, and as text.
// With cut nothing follows, and the client's side ends.
func (on target) exchange(t *testing.T, raw string, cut bool) ([]*response, string) {
	t.Helper()
	conn := on.connect(t)
	defer conn.Close()
	written := make(chan struct{})
	go func() { // beside the reading: the server may refuse before it has read all, and close
		defer close(written)
		if cut {
			_, _ = io.WriteString(conn, raw)
			_ = conn.(interface{ CloseWrite() error }).CloseWrite()
			return
		}
		_, _ = io.WriteString(conn, raw+lastFollower)
	}()
	var text strings.Builder
	answers := answersTo(t, strings.HasPrefix(raw, "HEAD ") && !cut, io.TeeReader(conn, &text))
	conn.Close()
	<-written
	return answers, text.String()
}

// exchangeRaw sends bytes as they are, closes its side and returns every answer that comes back until the server closes its own. So the
// number of the answers tells what the server took for a request.
func (c *client) exchangeRaw(text string) []*response {
	c.t.Helper()
	conn := must(net.Dial("tcp", c.on.address))(c.t)
	defer conn.Close()
	must(0, conn.SetDeadline(time.Now().Add(10*time.Second)))(c.t)
	must(io.WriteString(conn, text))(c.t)
	must(0, conn.(*net.TCPConn).CloseWrite())(c.t)
	return answersTo(c.t, false, conn)
}

// answersTo reads answers until the server closes the connection, and holds each to the common rules. The first may be to a HEAD. A reset
// ends what has no answer.
func answersTo(t *testing.T, head bool, from io.Reader) []*response {
	t.Helper()
	var answers []*response
	stream := bufio.NewReader(from)
	for {
		_, err := stream.Peek(1)
		if errors.Is(err, io.EOF) || len(answers) == 0 && errors.Is(err, syscall.ECONNRESET) {
			return answers
		} else if err != nil {
			t.Fatalf("after %d answers: %v", len(answers), err)
		}
		request := &http.Request{Method: http.MethodGet}
		if head && len(answers) == 0 {
			request.Method = http.MethodHead
		}
		answered, err := http.ReadResponse(stream, request)
		if err != nil {
			t.Fatalf("after %d answers: %v", len(answers), err)
		}
		if answered.StatusCode == http.StatusContinue {
			continue
		}
		r := &response{t: t, what: "raw", status: answered.StatusCode, header: answered.Header}
		r.body = must(io.ReadAll(answered.Body))(t)
		if answered.Close {
			r.header.Set("Connection", "close") // ReadResponse takes it out
		}
		if err := r.checkCommonRules(request.Method); err != nil {
			t.Error(err)
		}
		answers = append(answers, r)
	}
}

func (on target) wantSilentLog(t *testing.T) {
	t.Helper()
	logged := on.log.String()
	on.wantNoCredential(t, "the log", logged)
	if strings.Contains(strings.ToLower(logged), hostile.Marker) {
		t.Errorf("the log quotes a request: %s", logged)
	}
}

// wantNoCredential searches for both ends of each, in case it is truncated.
func (on target) wantNoCredential(t *testing.T, where, text string) {
	t.Helper()
	for _, credential := range []string{on.credentials.Key, on.credentials.Access, on.agent.secret} {
		if strings.Contains(text, credential[:20]) || strings.Contains(text, credential[len(credential)-20:]) {
			t.Errorf("%s has the credential %s", where, credential)
		}
	}
}
