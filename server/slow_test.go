package server_test

import (
	"io"
	"net"
	"testing"
	"time"

	"remit/test/suite"
)

// A client that never ends its request must not hold a connection for ever. In the long run this waits for the read timeout
// that the server ships with, 10 s.
func TestARequestThatDoesNotArriveTimesOut(t *testing.T) {
	t.Parallel()
	with := setup{prepare: impatient}
	if suite.Long {
		with = setup{}
	}
	api := onMiniredis(t, with)
	var conns []net.Conn
	for _, part := range []string{
		"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Ha",
		"POST /v1/organizations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"na",
	} {
		conn := must(net.Dial("tcp", api.on.address))(t)
		defer conn.Close()
		must(0, conn.SetDeadline(time.Now().Add(15*time.Second)))(t)
		must(io.WriteString(conn, part))(t)
		conns = append(conns, conn)
	}
	for i, conn := range conns {
		answers := readAnswers(t, conn)
		if len(answers) != 1 {
			t.Fatalf("request %d: %d answers, want 1", i, len(answers))
		}
		answers[0].refused(408, "request_timeout")
	}
}
