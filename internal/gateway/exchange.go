package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"
	"remit/client/wire"
	"remit/money"
	"remit/server/conn"
	"remit/server/pages"
)

// exchange is one request and its answer.
type exchange struct {
	gateway  *Gateway
	settings *settings
	request  *http.Request
	writer   http.ResponseWriter
	control  *http.ResponseController
	id       string
	began    time.Time

	target     target
	caller     caller
	memory     *conn.Reservation // of the body
	hasArrived bool              // it is read
	span       trace.Span        // nil without tracing

	remaining *money.MicroUSD // what the session has left, with the hold taken; nil: it is not known
	report    report
}

// report is what metrics, the access log and the trace tell of an exchange. It holds nothing of a prompt, an answer or a credential.
type report struct {
	status    int
	code      string // of a refusal
	model     string // a name that the price table has
	outcome   string // how the call was settled; "" for a call that was not held for
	held      money.MicroUSD
	firstByte time.Duration // until the provider's answer began
	hungUp    bool
	cause     error // of a failure, for the log
}

// ServeHTTP answers a request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := &exchange{
		gateway: g, settings: g.source.current.Load(), request: r, writer: w, control: http.NewResponseController(w),
		id: uuid.NewString(), began: time.Now(),
	}
	_ = e.control.SetWriteDeadline(time.Time{})                                        // of the request before, on the same connection
	defer func() { _ = e.control.SetWriteDeadline(time.Now().Add(e.settings.Idle)) }() // for what is still buffered
	_ = e.control.SetReadDeadline(time.Now().Add(bodyTime))                            // of the request; see arrived
	if g.isStopping() {
		w.Header().Set("Connection", "close") // the next request of this client goes to another gateway
	}
	if g.serveOwn(e) {
		return
	}
	e.startTrace()
	defer e.finish()
	w.Header().Set(headerRequestID, e.id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if refused := e.serve(); refused != nil {
		e.refuse(refused)
	}
}

// writing bounds a write to the client. Between two of them nothing is bounded: a deadline of HTTP/1 outlives its request on the
// connection, and one of HTTP/2 ends the stream when it passes, whether anything is being written or not.
func (e *exchange) writing(write func() error) error {
	_ = e.control.SetWriteDeadline(time.Now().Add(e.settings.Idle)) // a writer without deadlines is a test's
	defer func() { _ = e.control.SetWriteDeadline(time.Time{}) }()
	return write()
}

// finish reports the exchange, after a panic too. What was held for the call is then spent; see servePriced.
func (e *exchange) finish() {
	cause := recover()
	if cause != nil && cause != http.ErrAbortHandler {
		e.gateway.metrics.panics.Inc()
		e.gateway.log.Error("a request panicked", "request_id", e.id, "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
		e.report.status = http.StatusInternalServerError
		cause = http.ErrAbortHandler
	}
	e.memory.Release()
	if e.request.Context().Err() != nil && e.gateway.calls.Err() == nil {
		e.report.hungUp = true
	}
	e.gateway.metrics.answered(e)
	e.endTrace()
	e.gateway.access.write(e)
	if cause != nil {
		panic(cause) // net/http cuts the connection, so the client sees that the answer is not whole
	}
}

func (e *exchange) refuse(r *refusal) {
	e.report.status, e.report.code, e.report.cause = r.statusFor(e.request.Header), r.code, r.cause
	protocol := openAI
	if e.target.upstream != nil {
		protocol = e.target.upstream.Protocol
	}
	if r.status == http.StatusUpgradeRequired {
		e.writer.Header().Set("Upgrade", "HTTP/1.1")
	}
	if e.report.held > 0 && r.remaining == nil {
		r.remaining = e.remaining
	}
	if !e.hasArrived {
		_ = e.control.SetReadDeadline(time.Now().Add(refusedTime))
	}
	_ = e.writing(func() error {
		r.write(e.writer, e.report.status, protocol, e.id)
		return nil
	})
}

// serve admits a request and answers it, or says why not.
func (e *exchange) serve() *refusal {
	refused := e.admit()
	if refused != nil {
		return refused
	}
	g, s := e.gateway, e.settings
	body, refused := e.receive()
	if refused != nil {
		return refused
	}
	if err := g.places.acquire(e.caller.Organization, s.MaxStreams, s.MaxStreamsPerOrganization); err != nil {
		return noPlace(err)
	}
	defer g.busy.begin()()
	defer g.places.release(e.caller.Organization)
	if e.target.route.kind == priced {
		return e.servePriced(body)
	}
	return e.serveFree(body)
}

// receive reads the body of a request, nil if it has none. It takes no place of its organization, because the credential may be revoked:
// who has one could keep all others of the organization out with bodies that never come.
func (e *exchange) receive() (body []byte, refused *refusal) {
	if e.request.Method != http.MethodPost {
		if e.request.ContentLength != 0 {
			return nil, refuse(http.StatusBadRequest, "invalid_request", "a "+e.request.Method+" must have no body")
		}
		e.arrived()
		return nil, nil
	}
	most := e.settings.MaxStreams
	if e.gateway.arriving.acquire(e.caller.Agent, most, max(most/8, 1)) != nil {
		return nil, noPlace(errArriving)
	}
	defer e.gateway.arriving.release(e.caller.Agent)
	return e.readBody()
}

// admit finds out where the request goes and who calls.
func (e *exchange) admit() *refusal {
	r := e.request
	found, nowhere := e.settings.find(r.Method, r.URL.EscapedPath(), r.URL.RawQuery)
	e.target = found
	switch {
	case r.Header.Get("Upgrade") != "":
		return refuse(http.StatusUpgradeRequired, "upgrade_refused", "the gateway speaks HTTP only: a connection of another protocol has no bound")
	case isDisguised(r.Header):
		return refuse(http.StatusBadRequest, "invalid_request", "a header gives the request another method: send that method")
	case e.gateway.isStopping():
		return refuse(http.StatusServiceUnavailable, "unavailable", "this gateway is stopping; nothing was sent").retryAfter(1)
	}
	who, refused := e.gateway.identify(r, e.id)
	if refused != nil {
		return refused
	}
	e.caller = who
	if found.upstream != nil && !found.upstream.serves(who.Organization) { // as if it did not exist
		e.target = target{}
		return noUpstream()
	}
	return nowhere
}

// isDisguised reports whether a server may take a request for another than its method says.
func isDisguised(h http.Header) bool {
	for name := range h {
		if isAmong(name, nil, []string{"X-Http-Method", "X-Method-Override"}) {
			return true
		}
	}
	return false
}

// call returns a call of the API as the caller.
func (e *exchange) call(method, path string) pages.Call {
	return pages.Call{
		Token: e.caller.credential, Organization: e.caller.Organization, Method: method, Path: path, RequestID: e.id, TraceParent: e.traceParent(),
	}
}

// session is what the gateway reads of a session.
type session struct {
	Status    string         `json:"status"`
	MaxValue  money.MicroUSD `json:"max_value_usd"`
	Used      money.MicroUSD `json:"value_used_usd"`
	Held      money.MicroUSD `json:"value_held_usd"`
	Delegated money.MicroUSD `json:"value_delegated_usd"` // to children
	Suspended string         `json:"suspended_at"`
}

func (s *session) left() money.MicroUSD { return max(s.MaxValue-s.Used-s.Held-s.Delegated, 0) }

// readSession reads the caller's session as the caller.
func (e *exchange) readSession() (read session, refused *refusal) {
	err := e.gateway.host.CallAlone(e.call(http.MethodGet, "/v1/sessions/"+e.caller.session.String()), func(reply pages.Reply) error {
		if refused = refusalOf(reply); refused != nil {
			return nil
		}
		return json.Unmarshal(reply.Body, &read)
	})
	if err != nil {
		refused = internalError(err)
	}
	return read, refused
}

// readActive reads the caller's session, and refuses one in which nothing can be done.
func (e *exchange) readActive() (session, *refusal) {
	read, refused := e.readSession()
	switch {
	case refused != nil:
	case read.Status != "active":
		refused = refuse(http.StatusForbidden, "session_not_active", "the session is "+read.Status)
	case read.Suspended != "":
		refused = refuse(http.StatusForbidden, "session_suspended", "the session is suspended")
	}
	return read, refused
}

// serveFree passes a request on that costs nothing, for a caller whose session is active.
func (e *exchange) serveFree(body []byte) *refusal {
	read, refused := e.readActive()
	if refused != nil {
		return refused
	}
	if e.request.Method == http.MethodPost {
		if refused := e.checkFree(body); refused != nil {
			return refused
		}
	}
	e.remaining = new(read.left())
	return e.send(body, nil, nil)
}

// checkFree refuses what reaches further than it says.
func (e *exchange) checkFree(body []byte) *refusal {
	if len(body) == 0 {
		return nil
	}
	defer e.gateway.parsing.begin(len(body))()
	objects, err := wire.Objects(e.target.route.format, body)
	if err != nil {
		return unreadable(err)
	}
	return e.checkObjects(objects)
}

// checkObjects refuses what a request refers to at the provider, where organizations share that.
func (e *exchange) checkObjects(objects []string) *refusal {
	if len(objects) == 0 || !e.target.upstream.isShared() {
		return nil
	}
	return invalid(objects[0], objects[0]+" is refused: "+kept)
}

func invalid(member, detail string) *refusal {
	r := refuse(http.StatusBadRequest, "invalid_request", detail)
	r.param = member
	return r
}

func noUpstream() *refusal {
	return refuse(http.StatusNotFound, "not_found", "there is no upstream of this name: the path begins with one, as /NAME/…")
}
