package server_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"remit/test/hostile"
)

// What speaks another protocol seldom sends a line end, and waits. It is refused by its first byte or its first line, not
// by the read timeout.
func TestClientsOfOtherProtocolsAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	on := newTarget(t, nil)
	for _, group := range hostile.Groups() {
		if group.Name != "other protocol" {
			continue
		}
		for _, request := range group.Requests {
			t.Run(request.Name, func(t *testing.T) {
				t.Parallel()
				conn := on.connect(t)
				defer conn.Close()
				must(io.WriteString(conn, on.credentials.Fill(request.Raw)))(t)
				var text bytes.Buffer
				answers := answersTo(t, false, io.TeeReader(conn, &text))
				wantStatuses(t, answers, text.String(), 400)
				answers[0].refused(400, "invalid_request")
			})
		}
	}
}

func TestAClientThatWaitsFor100ContinueGetsIt(t *testing.T) {
	t.Parallel()
	on := newTarget(t, nil)
	for _, test := range []struct {
		headers, body string
		status        int
	}{
		{"Content-Length: 2\r\nExpect: 100-continue", "{}", 200}, {"Content-Length: 2\r\nExpect: 100-Continue", "{}", 200},
		{"Content-Length: 2\r\nExpect: 100-CONTINUE", "{}", 200}, {"Transfer-Encoding: chunked\r\nExpect: 100-continue", "2\r\n{}\r\n0\r\n\r\n", 200},
		{"Transfer-Encoding: chunked\r\nExpect: 100-continue", "2\r\n{}\r\n0\r\nX-Other: a trailer\r\n\r\n", 400},
	} {
		conn := on.connect(t)
		defer conn.Close()
		must(io.WriteString(conn, on.credentials.Fill("POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n"+
			"Content-Type: application/json\r\nConnection: close\r\n"+test.headers+"\r\n\r\n")))(t)
		told := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
		if _, err := io.ReadFull(conn, told); err != nil || string(told) != "HTTP/1.1 100 Continue\r\n\r\n" {
			t.Fatalf("%s: told %q, %v", test.headers, told, err)
		}
		must(io.WriteString(conn, test.body))(t)
		wantStatuses(t, answersTo(t, false, conn), "", test.status)
	}
}

// pipeline returns requests in a row, and the statuses of their answers in order.
func pipeline() (raw string, statuses []int) {
	for i, r := range []struct {
		request string
		status  int
	}{
		{"GET /healthz HTTP/1.1\r\nHost: x\r\n%s\r\n", 200},
		{"POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: 11\r\n%s\r\n{\"count\":1}", 200},
		{"GET /none HTTP/1.1\r\nHost: x\r\n%s\r\n", 404},
		{"POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n%s\r\nb\r\n{\"count\":1}\r\n0\r\n\r\n", 200},
		{"POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: 3\r\n%s\r\n{{}", 400},
		{"GET /v1/agents HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n%s\r\n", 200},
		{"GET /v1/agents%%2f HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n%s\r\n", 400}, // closes
		{"POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n%s\r\n", 0},
	} {
		raw += fmt.Sprintf(r.request, fmt.Sprintf("X-Request-Id: number-%d\r\n", i))
		if r.status != 0 {
			statuses = append(statuses, r.status)
		}
	}
	return raw, statuses
}

func (on target) wantPipelined(t *testing.T, answers []*response, statuses []int) {
	t.Helper()
	wantStatuses(t, answers, "", statuses...)
	for i, r := range answers {
		wantEqual(t, fmt.Sprintf("the request of answer %d", i), r.header.Get("X-Request-Id"), fmt.Sprintf("number-%d", i))
	}
}

// Fragmentation by the network must not change how requests are read.
func TestPipelinedRequestsAreAnsweredOnceEachAndInOrderHoweverTheyAreFragmented(t *testing.T) {
	t.Parallel()
	on := newTarget(t, nil)
	raw, statuses := pipeline()
	raw = on.credentials.Fill(raw)
	before := on.charged()
	for _, through := range []target{on, on.overTLS(t)} {
		answers, _ := through.exchange(t, raw, false)
		through.wantPipelined(t, answers, statuses)
	}
	const step = 7 // no divisor of anything
	tries := 2
	for at := 1; at < len(raw); at += step {
		tries++
		conn := on.connect(t)
		must(0, conn.(*net.TCPConn).SetNoDelay(true))(t)
		must(io.WriteString(conn, raw[:at]))(t)
		written := make(chan struct{})
		go func() {
			defer close(written)
			_, _ = io.WriteString(conn, raw[at:])
		}()
		on.wantPipelined(t, answersTo(t, false, conn), statuses)
		conn.Close()
		<-written
	}
	wantEqual(t, "actions charged, two by each pipeline", on.charged()-before, 2*tries)
}

// charged returns how many actions of the target's session are.
func (on target) charged() int {
	on.t.Helper()
	var count int
	text := fmt.Sprint(on.get("/sessions/"+on.credentials.Session, asKey(on.key)).is(200).object()["action_count"])
	must(fmt.Sscan(text, &count))(on.t)
	return count
}

// An incomplete request whose client goes away has no effect.
func TestARequestThatIsCutOffIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	on := newTarget(t, nil)
	head := "POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n"
	before := on.on.mini.Dump()
	for name, raw := range map[string]string{
		"with a length": head + "Content-Length: 11\r\n\r\n{\"count\":1}",
		"in chunks":     head + "Transfer-Encoding: chunked\r\n\r\nb\r\n{\"count\":1}\r\n0\r\n\r\n",
	} {
		raw = on.credentials.Fill(raw)
		for at := 1; at < len(raw); at += 5 {
			ended := on.connect(t) // an honest end of its side
			must(io.WriteString(ended, raw[:at]))(t)
			must(0, ended.(*net.TCPConn).CloseWrite())(t)
			for _, r := range answersTo(t, false, ended) {
				r.refused(400, "invalid_request")
			}
			ended.Close()
			reset := on.connect(t)
			must(io.WriteString(reset, raw[:at]))(t)
			must(0, reset.(*net.TCPConn).SetLinger(0))(t)
			reset.Close()
		}
		if on.on.mini.Dump() != before {
			t.Errorf("%s: one of them was carried out", name)
		}
	}
	eventually(t, "every connection is given up", func() bool { return on.on.server.OpenConnections() <= 1 }) // the tenant's own
}

// A client may close its side as soon as it has sent its request (RFC 9112 §9.6).
func TestAHalfClosedConnectionIsAnswered(t *testing.T) {
	t.Parallel()
	on := newTarget(t, nil)
	answers, text := on.exchange(t, strings.Repeat("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 3), true)
	wantStatuses(t, answers, text, 200, 200, 200)
}

// A refusal is read, whatever the client still sends: no reset overtakes it.
func TestARefusalArrivesThoughMoreIsSent(t *testing.T) {
	t.Parallel()
	on := newTarget(t, nil)
	more := strings.Repeat(hostile.Marker, 500_000)
	for name, raw := range map[string]string{
		"a path that is not plain": "GET /v1//agents HTTP/1.1\r\nHost: x\r\n\r\n",
		"an expectation":           "GET /v1/agents HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n",
		"an expectation, too much": "POST /v1/agents HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n",
		"two lengths":              "POST /v1/agents HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
		"too long a body":          "POST /v1/agents HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n",
		"none of HTTP":             "\x16\x03\x01",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 {
				answers, text := on.exchange(t, raw+more, false)
				if len(answers) != 1 {
					t.Fatalf("%d answers: %s", len(answers), text)
				}
			}
		})
	}
}

// A client that sends everything before it reads must still get the answer. A server that closes with the body unread resets the
// connection, and over TLS that also hides that it ended in order.
func TestTheAnswerToABodyThatIsTooLargeReachesAClientThatSendsAllOfIt(t *testing.T) {
	t.Parallel()
	on := newTarget(t, nil)
	secure := on.overTLS(t)
	older := secure
	older.secure = secure.secure.Clone()
	older.secure.MaxVersion = tls.VersionTLS12
	head := "POST /v1/organizations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Request-Id: mine\r\n"
	for name, rest := range map[string]string{
		"sized": "Content-Length: 2000000\r\n\r\n", "chunked": "Transfer-Encoding: chunked\r\n\r\n1e8480\r\n",
	} {
		for protocol, through := range map[string]target{"plain": on, "TLS 1.3": secure, "TLS 1.2": older} {
			t.Run(name+", "+protocol, func(t *testing.T) {
				t.Parallel()
				for range 20 {
					conn := through.connect(t)
					must(io.WriteString(conn, head+rest+strings.Repeat(" ", 2_000_000)))(t)
					answers := answersTo(t, false, conn)
					wantStatuses(t, answers, "", 413)
					got := answers[0].refused(413, "body_too_large").header
					if got.Get("Connection") != "close" || name == "sized" && got.Get("X-Request-Id") != "mine" {
						t.Errorf("answered with %v", got)
					}
					conn.Close()
				}
			})
		}
	}
}
