package pages

import (
	"net"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/server/conn"
	"remit/server/internal/web"
)

// Call is a request of the API that a page makes for who looks at it, or the gateway for its caller.
type Call struct {
	APIKey         string
	Token          string    // an access token or a session key, in place of an API key; "" for none
	Organization   uuid.UUID // of Token, if it is known: the call's memory counts for it
	Method         string
	Path           string // with its query
	Body           []byte // JSON; nil for none
	IdempotencyKey string // "" for none
	RequestID      string // of the page for which it goes on without the page, or of the gateway's request; "" for none
	TraceParent    string // the span that it belongs to; "" for none
}

// Reply is the answer to a Call.
type Reply struct {
	Status     int
	Body       []byte // valid until the function that reads it returns
	Type       string // of the body
	Link       string // of the next page of a list; "" for none
	RetryAfter string // "" for none
}

// Call carries out a request of the API as if the client of the page had sent it: with the same checks, limits, reservations of
// memory, metrics and logs. It returns what read returns of the reply. Without a page (nil) what follows an organization's events
// for its viewers calls, or what goes on when a viewer leaves: no client waits, so it counts for no address.
func (h *Host) Call(page *fasthttp.RequestCtx, c Call, read func(Reply) error) error {
	return h.callInside(page, c, h.api, read)
}

// callInside is Call for one handler.
func (h *Host) callInside(page *fasthttp.RequestCtx, c Call, answer fasthttp.RequestHandler, read func(Reply) error) error {
	ctx := new(fasthttp.RequestCtx)
	if page == nil {
		return h.callAlone(ctx, c, aloneBytes, answer, read)
	}
	own := h.enter(ctx, page.Conn(), page.RemoteAddr())
	defer own.Release()
	c.write(&ctx.Request)
	copyOrigin(&ctx.Request.Header, page)
	answer(ctx)
	if key, err := token.APIKeyOrganization(c.APIKey); err == nil && h.guard.HasVerified(key, c.APIKey) {
		web.IdentifyCaller(page, key, uuid.Nil) // the page's own memory counts for its organization
	}
	return read(replyOf(ctx))
}

// aloneBytes is how much memory a call reserves for which no client waits: that of a usual answer.
const aloneBytes = 1 << 20

// callAlone is callInside for no client. It reserves so many bytes.
func (h *Host) callAlone(ctx *fasthttp.RequestCtx, c Call, bytes int, answer fasthttp.RequestHandler, read func(Reply) error) error {
	ctx.Init(&fasthttp.Request{}, nowhere{}, web.Silent{})
	c.write(&ctx.Request)
	organization := c.Organization
	if c.APIKey != "" {
		organization, _ = token.APIKeyOrganization(c.APIKey) // the handler refuses a malformed one
	}
	held, err := h.front.Unwritten.Reserve(bytes, time.Now(), func() {}, conn.Tenant{Organization: organization})
	if err != nil {
		return read(Reply{Status: h.front.Hooks.ProblemOf(err).Status})
	}
	held.Pin()
	defer held.Release()
	answer(ctx)
	return read(replyOf(ctx))
}

// Recover keeps a panic in what pages do in the background from ending the process. It counts and logs it. Defer it.
func (h *Host) Recover(what string) {
	if cause := recover(); cause != nil {
		h.front.Metrics.Panics.Inc()
		h.front.Log.Error("the console panicked", "in", what, "cause", cause, "stack", string(debug.Stack()))
	}
}

// nowhere is the address of a caller inside the process: no limit of a client address counts it.
type nowhere struct{}

func (nowhere) Network() string { return "inside" }
func (nowhere) String() string  { return "inside" }

func replyOf(ctx *fasthttp.RequestCtx) Reply {
	header := &ctx.Response.Header
	return Reply{
		Status: ctx.Response.StatusCode(), Body: ctx.Response.Body(), Type: string(header.ContentType()),
		Link: string(header.Peek(fasthttp.HeaderLink)), RetryAfter: string(header.Peek(fasthttp.HeaderRetryAfter)),
	}
}

// enter gives a request inside the process the client's connection, with reservations of its own.
func (h *Host) enter(ctx *fasthttp.RequestCtx, served net.Conn, peer net.Addr) *conn.Served {
	outer := conn.Of(served)
	if outer == nil { // a test called the handler directly
		ctx.Init(&fasthttp.Request{}, peer, web.Silent{})
		return nil
	}
	own := outer.Within()
	ctx.Init2(own, web.Silent{}, false)
	return own
}

func (c Call) write(r *fasthttp.Request) {
	r.Header.SetMethod(c.Method)
	r.Header.SetRequestURI(c.Path)
	if c.Token == "" {
		r.Header.SetCanonical(web.CanonicalAPIKey, []byte(c.APIKey))
	} else {
		r.Header.SetCanonical(web.CanonicalAuthorization, []byte("Bearer "+c.Token))
	}
	if c.Body != nil {
		r.Header.SetContentType("application/json")
		r.SetBody(c.Body)
	}
	if c.RequestID != "" {
		r.Header.SetCanonical(web.CanonicalRequestID, []byte(c.RequestID))
	}
	if c.IdempotencyKey != "" {
		r.Header.Set(web.HeaderIdempotencyKey, c.IdempotencyKey)
	}
	if c.TraceParent != "" {
		r.Header.Set(web.HeaderTraceParent, c.TraceParent)
	}
}

// ClientAddress returns the address that a page's visitor counts for in limits, an invalid one for a trusted proxy that did not name
// its client.
func (h *Host) ClientAddress(page *fasthttp.RequestCtx) netip.Addr {
	return h.front.WaiterAddress(page)
}

// copyOrigin copies what says whose request it is, in limits and in logs.
func copyOrigin(to *fasthttp.RequestHeader, page *fasthttp.RequestCtx) {
	to.SetHostBytes(page.Host())
	to.SetCanonical(web.CanonicalRequestID, page.Response.Header.PeekCanonical(web.CanonicalRequestID))
	for _, line := range page.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor) {
		to.AddBytesV(fasthttp.HeaderXForwardedFor, line)
	}
	if span := string(page.Response.Header.Peek(web.HeaderTraceResponse)); span != "" && strings.Count(span, "-") == 3 {
		to.Set(web.HeaderTraceParent, span)
	}
}
