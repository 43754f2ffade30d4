package server_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// exchangeRaw sends bytes as they are, closes its side and returns every answer that comes back until the server closes
// its own. So the number of the answers tells what the server took for a request.
func (c *client) exchangeRaw(text string) []*response {
	c.t.Helper()
	conn := must(net.Dial("tcp", c.on.address))(c.t)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		c.t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
	return readAnswers(c.t, conn)
}

// readAnswers reads answers until the server closes the connection, and holds each to the common rules.
func readAnswers(t *testing.T, conn io.Reader) []*response {
	t.Helper()
	var answers []*response
	stream := bufio.NewReader(conn)
	for {
		if _, err := stream.Peek(1); errors.Is(err, io.EOF) {
			return answers
		}
		answered, err := http.ReadResponse(stream, nil)
		if err != nil {
			t.Fatalf("after %d answers: %v", len(answers), err)
		}
		if answered.StatusCode == http.StatusContinue {
			continue
		}
		r := &response{t: t, what: "raw", status: answered.StatusCode, header: answered.Header}
		if r.body, err = io.ReadAll(answered.Body); err != nil {
			t.Fatal(err)
		}
		if answered.Close {
			r.header.Set("Connection", "close") // ReadResponse takes it out
		}
		if err := r.checkCommonRules(http.MethodGet); err != nil {
			t.Error(err)
		}
		answers = append(answers, r)
	}
}
