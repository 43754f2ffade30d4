package server

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"remit/server/conn"
	"remit/server/internal/web"
)

const jsonHead = "POST /v1/organizations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"

// announced are the ways to say that 250,000 bytes will come, with ten of them.
var announced = map[string]string{
	"a length": jsonHead + "Content-Length: 250000\r\n\r\n" + `{"name":"a`,
	"a chunk":  jsonHead + "Transfer-Encoding: chunked\r\n\r\n3d090\r\n" + `{"name":"a`,
}

// sendFrom sends a text from a local address; "" leaves that to the system.
func sendFrom(t *testing.T, source, to, text string) net.Conn {
	t.Helper()
	dialer := &net.Dialer{}
	if source != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(source)}
	}
	conn := must(dialer.Dial("tcp", to))(t)
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	must(io.WriteString(conn, text))(t)
	return conn
}

func wantStatus(t *testing.T, conn net.Conn, want int) {
	t.Helper()
	answer := must(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	if answer.StatusCode != want || want == 503 && answer.Header.Get("Retry-After") == "" {
		t.Errorf("answered %d %v, want %d", answer.StatusCode, answer.Header, want)
	}
}

func awaitReserved(t *testing.T, p *conn.Pool, want int) {
	t.Helper()
	await(t, fmt.Sprintf("%d bytes are reserved", want), func() bool { return p.Reserved() == want })
}

func organizationOfSize(size int) string {
	return fmt.Sprintf(`{"name":"large","metadata":{"m":%q}}`, strings.Repeat("m", size))
}

func TestAnnouncedBodiesReserveMemoryBeforeTheyArrive(t *testing.T) {
	t.Parallel()
	for name, text := range announced {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runServer(t, "", Config{Limits: Limits{Off: true}})
			pool := r.front.Bodies.Unverified
			each := 256 << 10
			if name == "a chunk" {
				each = 512 << 10
			}
			pool.SetMost(4 * each) // so two for an address
			held := []net.Conn{sendFrom(t, "", r.address, text), sendFrom(t, "", r.address, text)}
			awaitReserved(t, pool, 2*each)

			wantStatus(t, sendFrom(t, "", r.address, announced["a length"]), 503)
			wantStatus(t, sendFrom(t, "", r.address, announced["a chunk"]), 503)
			wantStatus(t, sendFrom(t, "", r.address, jsonHead+"Expect: 100-continue\r\nContent-Length: 5000\r\n\r\n"), 503)
			small := `{"name":"small"}`
			r.post(t, from(t, ""), "/v1/organizations", small).is(t, 201, "")
			wantStatus(t, sendFrom(t, "", r.address,
				jsonHead+"Transfer-Encoding: chunked\r\n\r\n10\r\n"+small+"\r\n0\r\n\r\n"), 201)

			for _, conn := range held {
				_ = conn.Close() // in silence
			}
			awaitReserved(t, pool, 0)
			r.post(t, from(t, ""), "/v1/organizations", organizationOfSize(10_000)).is(t, 201, "")
			awaitReserved(t, pool, 0)
		})
	}
}

// A caller whose credential this instance can verify does not compete with strangers for memory.
func TestStrangersLeaveLargeBodiesOfVerifiedCallersAlone(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{Limits: Limits{Off: true}})
	client := from(t, "")
	key := r.post(t, client, "/v1/organizations", `{"name":"acme"}`).is(t, 201, "").text(t, "api_key")
	agent := r.post(t, client, "/v1/agents", `{"name":"scout","scopes":["read"]}`, "X-API-Key", key).is(t, 201, "")
	token := r.exchange(t, client, agent.text(t, "id"), agent.text(t, "secret")).is(t, 200, "").text(t, "access_token")
	r.front.Bodies.Unverified.SetMost(512 << 10)
	held := sendFrom(t, "", r.address, announced["a length"])
	defer held.Close()
	awaitReserved(t, r.front.Bodies.Unverified, 256<<10)

	large := fmt.Sprintf(`{"name":"large","scopes":["read"],"metadata":{"m":%q}}`, strings.Repeat("m", 10_000))
	r.post(t, client, "/v1/organizations", large).is(t, 503, "unavailable")
	r.post(t, client, "/v1/agents", large, "X-API-Key", strings.Repeat("k", 75)).is(t, 503, "unavailable")
	r.post(t, client, "/v1/agents", large, "X-API-Key", key).is(t, 201, "")
	begin := fmt.Sprintf(`{"action_type":"order","pre_state":{"m":%q}}`, strings.Repeat("m", 10_000))
	r.post(t, client, "/v1/transactions", begin, "Authorization", "Bearer "+token).is(t, 201, "")
	awaitReserved(t, r.front.Bodies.Verified, 0)
}

// A place lasts until the answer is written: the body stays in memory for as long.
func TestABodyKeepsItsPlaceWhileItsRequestIsAnswered(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{Limits: Limits{Off: true}})
	inside := make(chan int, 1)
	handle := r.front.HTTP.Handler
	r.front.HTTP.Handler = func(ctx *fasthttp.RequestCtx) {
		handle(ctx)
		inside <- r.front.Bodies.Unverified.Reserved()
	}
	r.post(t, from(t, ""), "/v1/organizations", organizationOfSize(10_000)).is(t, 201, "")
	wantEqual(t, "bytes are reserved behind the handler", <-inside, 16<<10)
	awaitReserved(t, r.front.Bodies.Unverified, 0)
}

// ContextOf relies on where fasthttp keeps a header.
func TestAHeaderLeadsToItsContext(t *testing.T) {
	t.Parallel()
	r := runServer(t, "", Config{})
	seen, handled := make(chan *fasthttp.RequestCtx, 1), make(chan *fasthttp.RequestCtx, 1)
	receive, handle := r.front.HTTP.HeaderReceived, r.front.HTTP.Handler
	r.front.HTTP.HeaderReceived = func(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
		seen <- web.ContextOf(header)
		return receive(header)
	}
	r.front.HTTP.Handler = func(ctx *fasthttp.RequestCtx) {
		handled <- ctx
		handle(ctx)
	}
	wantStatus(t, sendFrom(t, "", r.address, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), 200)
	if <-seen != <-handled {
		t.Error("the header belongs to another context")
	}
}

func TestTheConnectionBelowTLSIsFound(t *testing.T) {
	t.Parallel()
	c := &conn.Served{}
	if conn.Of(c) != c || conn.Of(tls.Server(c, &tls.Config{})) != c || conn.Of(nil) != nil {
		t.Error("another connection is found")
	}
}
