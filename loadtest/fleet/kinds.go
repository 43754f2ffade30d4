package fleet

import (
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/valyala/fasthttp"
)

// maxKinds bounds how many kinds of answers are distinguished.
const maxKinds = 100

// kind is why an operation was not acknowledged.
type kind struct {
	Op    operation
	What  string
	Fault bool // of the service or the network; otherwise a refusal
}

// kinds counts answers that were not acknowledgements. It is safe for concurrent use.
type kinds struct {
	mu     sync.Mutex
	counts map[kind]int64
}

func (k *kinds) add(op operation, r reply) {
	key := kind{op, kindOf(r), r.outcome() == unknown}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.counts == nil {
		k.counts = map[kind]int64{}
	}
	if _, known := k.counts[key]; !known && len(k.counts) >= maxKinds {
		key.What = "other"
	}
	k.counts[key]++
}

// counted is a kind and how often it occurred.
type counted struct {
	kind
	Count int64
}

// sorted returns the kinds, faults first, then by falling count.
func (k *kinds) sorted() []counted {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := make([]counted, 0, len(k.counts))
	for kind, n := range k.counts {
		list = append(list, counted{kind, n})
	}
	slices.SortFunc(list, func(a, b counted) int {
		if a.Fault != b.Fault {
			return map[bool]int{true: -1, false: 1}[a.Fault]
		}
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Op, b.Op), cmp.Compare(a.What, b.What))
	})
	return list
}

// connectionRefused is how kindOf describes that nothing was sent.
const connectionRefused = "connection refused"

// kindOf describes a reply without variable details such as a port.
func kindOf(r reply) string {
	var timeout interface{ Timeout() bool }
	switch {
	case r.status != 0:
		return r.String()
	case errors.As(r.err, &timeout) && timeout.Timeout(), errors.Is(r.err, os.ErrDeadlineExceeded):
		return "no answer in time"
	case errors.Is(r.err, syscall.ECONNREFUSED):
		return connectionRefused
	case errors.Is(r.err, io.EOF), errors.Is(r.err, io.ErrUnexpectedEOF), errors.Is(r.err, syscall.ECONNRESET),
		errors.Is(r.err, syscall.EPIPE), errors.Is(r.err, fasthttp.ErrConnectionClosed):
		return "connection closed"
	case errors.Is(r.err, fasthttp.ErrNoFreeConns):
		return "no connection free"
	}
	return "no answer"
}
