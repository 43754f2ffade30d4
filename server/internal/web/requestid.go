package web

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

const (
	HeaderRequestID  = "X-Request-Id"
	MaxRequestIDSize = 64
)

// requestIDs numbers the requests of one process after a random prefix, so that no two instances produce the same id.
type requestIDs struct {
	process string
	count   *atomic.Uint64
}

func NewRequestIDs() requestIDs {
	var name [6]byte
	rand.Read(name[:])
	return requestIDs{process: hex.EncodeToString(name[:]) + "-", count: new(atomic.Uint64)}
}

// Append appends the client's own id when it is well-formed, else a new one.
func (r requestIDs) Append(id []byte, ctx *fasthttp.RequestCtx) []byte {
	if given := ctx.Request.Header.PeekCanonical(CanonicalRequestID); wellFormedRequestID(given) {
		return append(id, given...)
	}
	return strconv.AppendUint(append(id, r.process...), r.count.Add(1), 36)
}

func wellFormedRequestID(id []byte) bool {
	if len(id) == 0 || len(id) > MaxRequestIDSize {
		return false
	}
	for _, c := range id {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// RequestID returns the id that startRequest gave the request.
func RequestID(ctx *fasthttp.RequestCtx) string {
	return string(ctx.Response.Header.PeekCanonical(CanonicalRequestID))
}
