package gateway

import (
	"bufio"
	"io"
	"math"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"remit/test/suite"
)

// longStream answers with a stream of this many events, and waits after each tenth of it until the test lets it go on.
type longStream struct {
	events   int64
	at, goOn chan int64
}

func (s longStream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range s.events {
		_, _ = io.WriteString(w, `data: {"id":"c","object":"chat.completion.chunk","model":"plain","choices":[{"index":0,"delta":{"content":" word"}}],"usage":null}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		if sent := i + 1; sent%(s.events/10) == 0 {
			s.at <- sent
			<-s.goOn
		}
	}
	_, _ = io.WriteString(w, `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7}}`+"\n\ndata: [DONE]\n\n")
}

// A stream of four hours, at twenty events a second, takes no more at its end than at its begin. It runs alone, because it looks at the whole process.
func TestALongStreamKeepsNothing(t *testing.T) {
	s := longStream{events: 288_000, at: make(chan int64), goOn: make(chan int64)}
	a := newWorld(t, "", s).rich()
	var read atomic.Int64
	lines, ended := bufio.NewScanner(a.stream().Body), make(chan error)
	go func() {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data: ") {
				read.Add(1)
			}
		}
		ended <- lines.Err()
	}()
	taken := func() (heap, goroutines int) {
		sent := <-s.at
		eventually(t, "all events have passed", func() bool { return read.Load() == sent })
		for range 2 { // the second finds what the finalizers of the first have released
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc), runtime.NumGoroutine()
	}
	heap, goroutines := taken()
	leastHeap, leastGoroutines := math.MaxInt, math.MaxInt // in the second half: what the process itself takes now and then is not the stream's
	for tenth := 2; tenth <= 10; tenth++ {
		s.goOn <- 0
		if heapNow, goroutinesNow := taken(); tenth > 5 {
			leastHeap, leastGoroutines = min(leastHeap, heapNow), min(leastGoroutines, goroutinesNow)
		}
	}
	s.goOn <- 0
	// Between the first tenth and the sixth come 144,000 events of 132 bytes: 512 KiB are four bytes for each, and more than the process takes.
	if leastHeap > heap+512<<10 || leastGoroutines > goroutines {
		t.Errorf("%d bytes and %d goroutines after a tenth, at least %d and %d after more than half", heap, goroutines, leastHeap, leastGoroutines)
	}
	suite.NoError(t, <-ended)
	a.spent(5*2 + 7*8)
}
