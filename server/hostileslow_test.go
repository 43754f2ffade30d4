package server_test

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"remit/server"
	"remit/test/suite"
)

// shortRead stands for the read timeout of 10 s. It is long beside the pauses of slow clients, even on a busy machine.
const shortRead = 2 * time.Second

func impatient(s *server.Server) { s.SetTimeouts(shortRead, shortRead, 2*shortRead) }

// newPreparedTarget returns a second instance with what prepare sets; the first has had all the time to set up.
func newPreparedTarget(t *testing.T, prepare func(*server.Server)) target {
	t.Helper()
	on := newTarget(t, nil)
	with := on.on.setup
	with.prepare = prepare
	on.client = run(t, &instance{setup: with, keyring: on.on.keyring})
	return on
}

// The time is for the whole request: a client that sends a byte now and then does not win more of it.
// In the long run this waits for the read timeout that the server ships with, 10 s.
func TestARequestThatArrivesByteByByteTimesOut(t *testing.T) {
	t.Parallel()
	on := newPreparedTarget(t, impatient)
	if suite.Long {
		on = newTarget(t, nil)
	}
	before := on.on.mini.Dump()
	head := "POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n"
	slowly := strings.Repeat("x", 100_000)
	for name, test := range map[string]struct{ atOnce, slowly string }{
		"the request line":           {"", "GET /" + slowly},
		"a header":                   {head, "X-Other: " + slowly},
		"many headers":               {head, strings.Repeat("A: b\r\n", 10_000)},
		"a body with a length":       {head + "Content-Length: 100000\r\n\r\n", slowly},
		"a chunk":                    {head + "Transfer-Encoding: chunked\r\n\r\nffff\r\n", slowly},
		"many chunks":                {head + "Transfer-Encoding: chunked\r\n\r\n", strings.Repeat("1\r\n \r\n", 10_000)},
		"a chunk's extension":        {head + "Transfer-Encoding: chunked\r\n\r\n1;", slowly},
		"a trailer":                  {head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Other: ", slowly},
		"a body behind 100":          {head + "Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n", slowly},
		"nothing behind 100":         {head + "Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n", ""},
		"nothing behind the headers": {head + "Content-Length: 1\r\n\r\n", ""},
		"nothing behind one byte":    {"G", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := on.connect(t)
			defer conn.Close()
			var feeding sync.WaitGroup
			ended := make(chan struct{})
			must(io.WriteString(conn, on.credentials.Fill(test.atOnce)))(t)
			feeding.Go(func() { feed(conn, test.slowly, ended) })
			var text bytes.Buffer
			answers := answersTo(t, false, io.TeeReader(conn, &text))
			close(ended)
			feeding.Wait()
			wantStatuses(t, answers, text.String(), 408)
			answers[0].in(t).refused(408, "request_timeout")
		})
	}
	t.Cleanup(func() {
		if on.on.mini.Dump() != before {
			t.Error("one of them was carried out")
		}
		on.wantSilentLog(t)
	})
}

// feed writes a byte every few milliseconds until the connection or the test ends.
func feed(conn io.Writer, text string, ended <-chan struct{}) {
	tick := time.NewTicker(shortRead / 70)
	defer tick.Stop()
	for i := range text {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		if _, err := io.WriteString(conn, text[i:i+1]); err != nil {
			return
		}
	}
}

// Between two requests the idle timeout counts, and there is nothing to answer; within the second the read timeout does.
func TestAnIdleConnectionIsClosedEventually(t *testing.T) {
	t.Parallel()
	on := newPreparedTarget(t, impatient)
	first := "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, test := range map[string]struct {
		second string
		want   []int
	}{
		"silent":                 {"", []int{200}},
		"with an empty line":     {"\r\n", []int{200}},
		"within a request line":  {"GET /hea", []int{200, 408}},
		"within a header":        {"GET /healthz HTTP/1.1\r\nHost: ", []int{200, 408}},
		"within a body":          {"POST /v1/agents HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{", []int{200, 408}},
		"with TLS in the middle": {"\x16\x03\x01\x02\x00\x01", []int{200, 408}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, through := range []target{on, on.overTLS(t)} {
				conn := through.connect(t)
				defer conn.Close()
				must(io.WriteString(conn, first+test.second))(t)
				var text bytes.Buffer
				wantStatuses(t, answersTo(t, false, io.TeeReader(conn, &text)), text.String(), test.want...)
			}
		})
	}
}

// The time to write an answer in begins with the answer, however long ago the one before was.
func TestAnIdleConnectionIsAnsweredAfterALongTime(t *testing.T) {
	t.Parallel()
	on := newPreparedTarget(t, func(s *server.Server) { s.SetTimeouts(0, 2*time.Second, 0) })
	head := "POST /sessions/{session}/actions HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n"
	for name, test := range map[string]struct {
		second string
		status int
	}{
		"what cannot be read":      {"GET / HTTP/7\r\n\r\n", 400},
		"too long a header":        {"GET / HTTP/1.1\r\nX-Other: " + long(20<<10) + "\r\n\r\n", 431},
		"too long a body":          {head + "Content-Length: 300000\r\n\r\n", 413},
		"100-continue":             {head + "Connection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}", 200},
		"100-continue of too much": {head + "Expect: 100-continue\r\nContent-Length: 300000\r\n\r\n", 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, through := range []target{on, on.overTLS(t)} {
				conn := through.connect(t)
				defer conn.Close()
				must(io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
				must(io.ReadFull(conn, make([]byte, 1)))(t) // it is answered: the time for that answer runs
				time.Sleep(2500 * time.Millisecond)
				must(io.WriteString(conn, on.credentials.Fill(test.second)))(t)
				answers := answersTo(t, false, io.MultiReader(strings.NewReader("H"), conn))
				wantStatuses(t, answers, "", 200, test.status)
			}
		})
	}
}

// A client that asks and never reads its answers fills the system's buffers; then the server waits to write, for no
// longer than the write timeout, and holds no more of the requests than its buffer. It is the memory of the whole process
// that is measured, so nothing else runs meanwhile, and what the process keeps after such answers that are read does not count.
func TestAConnectionOfAClientThatNeverReadsIsAbortedAndCostsLittle(t *testing.T) {
	const clients, agents = 4, 30
	on := newPreparedTarget(t, impatient)
	for range agents { // so that an answer has half a megabyte: it takes few to fill the system's buffers
		on.post("/v1/agents", fields{"name": "large", "scopes": []string{}, "metadata": fields{"text": long(15 << 10)}}, asKey(on.key)).is(201)
	}
	for range clients {
		on.get("/v1/agents", asKey(on.key)).is(200)
	}
	before := liveHeap()
	asked := strings.Repeat("GET /v1/agents HTTP/1.1\r\nHost: x\r\nX-API-Key: "+on.credentials.Key+"\r\n\r\n", 1000)
	var writing sync.WaitGroup
	for range clients {
		conn := on.connect(t).(*net.TCPConn)
		defer conn.Close()
		must(0, conn.SetReadBuffer(4<<10))(t)
		must(0, conn.SetDeadline(time.Now().Add(2*time.Minute)))(t)
		writing.Go(func() {
			for { // until the server closes
				if _, err := io.WriteString(conn, asked); err != nil {
					return
				}
			}
		})
	}
	highest := int64(0)
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	for ended := false; !ended; {
		highest = max(highest, liveHeap())
		on.get("/healthz").is(200) // others are served meanwhile
		select {
		case <-done:
			ended = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	eventually(t, "every connection is given up", func() bool { return on.on.server.OpenConnections() <= 1 })
	if grown := highest - before; grown > clients*8<<20 {
		t.Errorf("%d clients that do not read cost %d KiB each", clients, grown>>10/clients)
	}
}

// liveHeap returns how many bytes a garbage collection finds live. What is allocated during it, which it calls live without
// a look, and what is allocated after it do not count.
func liveHeap() int64 {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	before := samples[0].Value.Uint64()
	runtime.GC()
	metrics.Read(samples)
	meanwhile := samples[0].Value.Uint64() - before
	return int64(samples[1].Value.Uint64()) - int64(meanwhile)
}
