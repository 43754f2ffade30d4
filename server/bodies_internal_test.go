package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// announceBody sends the head of a request whose body is to have so many bytes, and ten of them.
func announceBody(t *testing.T, address string, size int, more string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	body := `{"name":"a`
	if more != "" {
		body = ""
	}
	if _, err := fmt.Fprintf(conn, "POST /v1/organizations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		more, size, body); err != nil {
		t.Fatal(err)
	}
	return conn
}

func (b *bodies) announced() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum
}

func awaitAnnounced(t *testing.T, r runningServer, want int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); r.bodies.announced() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are announced, want %d", r.bodies.announced(), want)
		}
	}
}

// Who announces large bodies and does not send them keeps other large ones out, and nothing else; and only for as long.
func TestWhatIsAnnouncedAndNotSentTakesBoundedMemory(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{Limits: Limits{Off: true}})
	r.bodies.most = 500_000
	held := []net.Conn{announceBody(t, r.address, 250_000, ""), announceBody(t, r.address, 250_000, "")}
	awaitAnnounced(t, r, 500_000)

	for name, expectation := range map[string]string{"at once": "", "before it is sent": "Expect: 100-continue\r\n"} {
		answer, err := http.ReadResponse(bufio.NewReader(announceBody(t, r.address, 5000, expectation)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" {
			t.Errorf("a large body more, refused %s: %d %v", name, answer.StatusCode, answer.Header)
		}
	}
	client := from(t, "")
	r.post(t, client, "/v1/organizations", `{"name":"small"}`).is(t, 201, "")

	for _, conn := range held {
		_ = conn.Close()
	}
	awaitAnnounced(t, r, 0)
	large := fmt.Sprintf(`{"name":"large","metadata":{"m":%q}}`, strings.Repeat("m", 10_000))
	r.post(t, client, "/v1/organizations", large).is(t, 201, "")
	awaitAnnounced(t, r, 0)
}

// A connection that ends in silence leaves nothing behind for longer than a request may take.
func TestABodyThatNeverEndsIsForgotten(t *testing.T) {
	t.Parallel()
	b := bodies{most: 20_000, arriving: map[*fasthttp.RequestHeader]arrival{}}
	header := func() *fasthttp.RequestHeader {
		var h fasthttp.RequestHeader
		h.SetContentLength(15_000)
		return &h
	}
	began := time.Unix(1_800_000_000, 0)
	for _, step := range []struct {
		after    time.Duration
		admitted bool
	}{{0, true}, {time.Second, false}, {readTimeout, false}, {readTimeout + 2*time.Second, true}} {
		if got := b.admit(header(), began.Add(step.after)); got != step.admitted {
			t.Errorf("after %v: admitted: %v", step.after, got)
		}
	}
}
