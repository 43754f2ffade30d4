package server

import (
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// fasthttp makes room for a whole body as soon as it has read how long it is to be. A client that announces 256 KiB and sends
// ten bytes would so take 256 KiB for as long as a request may take to arrive, on each of its connections. So what is
// announced and has not arrived is bounded, over all connections; a larger body than that is refused unread.
const (
	smallBody   = 4 << 10   // bytes; these are not counted: nearly all requests are smaller, and must not wait for a lock
	maxArriving = 256 << 20 // bytes of all others
)

// bodies are those that are arriving.
type bodies struct {
	most int // maxArriving, but for tests

	mu       sync.Mutex
	arriving map[*fasthttp.RequestHeader]arrival // by the header in front of it, which is its request's until it has ended
	sum      int                                 // of their sizes
	swept    time.Time
}

type arrival struct {
	size    int // 0 when it was refused
	since   time.Time
	refused bool
}

// admit says whether there is room for the body behind the header. Whoever is admitted, or not, is to be ended.
func (b *bodies) admit(header *fasthttp.RequestHeader, now time.Time) bool {
	size := header.ContentLength()
	if size <= smallBody || size > maxBody { // larger ones are refused unread for being so
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(header)
	if b.sum+size > b.most {
		b.sweep(now)
	}
	if b.sum+size > b.most {
		b.arriving[header] = arrival{since: now, refused: true}
		return false
	}
	b.arriving[header] = arrival{size: size, since: now}
	b.sum += size
	return true
}

// hasRefused says whether the body behind the header was not admitted.
func (b *bodies) hasRefused(header *fasthttp.RequestHeader) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.arriving[header].refused
}

// arrived is called when the whole request has.
func (b *bodies) arrived(header *fasthttp.RequestHeader) {
	if header.ContentLength() > smallBody {
		b.end(header)
	}
}

// end is called when a body will not arrive any more, and says whether it was refused. The header may be empty by now.
func (b *bodies) end(header *fasthttp.RequestHeader) (refused bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.forget(header)
}

func (b *bodies) forget(header *fasthttp.RequestHeader) (refused bool) {
	was := b.arriving[header]
	b.sum -= was.size
	delete(b.arriving, header)
	return was.refused
}

// sweep forgets those that cannot be arriving any more: fasthttp does not tell of a connection that ends in silence.
func (b *bodies) sweep(now time.Time) {
	if now.Sub(b.swept) < time.Second {
		return
	}
	b.swept = now
	for header, one := range b.arriving {
		if now.Sub(one.since) > readTimeout+time.Second {
			b.forget(header)
		}
	}
}
