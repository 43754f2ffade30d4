package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"remit/client/wire"
	"remit/server/conn"
)

// relay passes an answer on as it comes, and settles the call before the last of it.
type relay struct {
	*exchange
	attempt *attempt
	answer  *http.Response
	meter   *wire.Meter // nil: the answer is no success, or the request costs nothing
	hold    *hold       // nil: nothing is held
	isLost  bool        // writing to the client has failed
	last    []byte
	key     mask              // of an answer without a meter
	kept    *conn.Reservation // by the meter
}

// piece is how much is read of an answer at once. Streams come in smaller ones, and go on for long.
const piece, pieceOfStream = 16 << 10, 4 << 10

var pieces = sync.Pool{New: func() any { return new([piece]byte) }}

// relay passes the answer on. It answers itself only in place of one that is none.
func (e *exchange) relay(a *attempt, answer *http.Response, call *wire.Call, h *hold) *refusal {
	r := &relay{exchange: e, attempt: a, answer: answer, hold: h, key: newMask(e.target.upstream.key())}
	defer func() { r.kept.Release() }()
	if refused := r.refuseOther(); refused != nil {
		return refused
	}
	if call != nil && answer.StatusCode/100 == 2 {
		r.meter = call.Meter(answer.Header)
		if r.meter.IsOpaque() {
			r.settleByHold() // whatever follows
		}
	}
	defer r.cutWrites()()
	if r.isStreamed() {
		r.writeHeader(true)
		return r.passOn(make([]byte, pieceOfStream))
	}
	whole := pieces.Get().(*[piece]byte)
	defer pieces.Put(whole)
	return r.passOn(whole[:])
}

// passOn passes on what is read of the answer, until its end. The header of an answer that is not streamed goes out with what is read
// first: in one write, if that is all.
func (r *relay) passOn(buffer []byte) *refusal {
	for {
		n, err := r.read(buffer)
		if r.report.status == 0 {
			if n == 0 && err != nil && err != io.EOF {
				return r.unanswered(r.hold, false, cause(r.attempt.ctx, err))
			}
			r.writeHeader(err != io.EOF)
		}
		r.pass(r.next(buffer[:n]))
		if err != nil {
			r.end(err)
			return nil
		}
	}
}

// redirectsOnward are the redirections by which a server has another do what it was asked: it has done nothing itself. After others, such
// as 303, the call may have been done.
var redirectsOnward = []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}

// refuseOther refuses what is neither an answer nor an error of the provider.
func (r *relay) refuseOther() *refusal {
	status := r.answer.StatusCode
	switch {
	case slices.Contains(redirectsOnward, status):
		r.settleBy(settlement{how: rolledBack, reason: "the provider's address redirects"})
	case status/100 <= 3 && status/100 != 2:
		r.settleByHold()
	default:
		return nil
	}
	if status/100 == 3 {
		return refuse(http.StatusBadGateway, "upstream_redirects", "the provider's address redirects, and no redirect is followed: correct base_url")
	}
	return refuse(http.StatusBadGateway, "upstream_unanswered", "the provider changed the protocol, which no request had asked for")
}

// cutWrites has a write to the client end with the attempt. Call what it returns before the handler ends.
func (r *relay) cutWrites() (release func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(r.attempt.ctx, func() {
		defer close(done)
		_ = r.control.SetWriteDeadline(time.Now()) // a writer without deadlines is a test's
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

// writeHeader begins the answer to the client, at once if more of it is to come: a client that sees an answer cut takes the call for made;
// one that sees nothing may make it again.
func (r *relay) writeHeader(atOnce bool) {
	to := r.writer.Header()
	shownHeader(to, r.answer.Header, r.key)
	if r.remaining != nil {
		to.Set(headerRemaining, r.remaining.String())
	}
	if r.wantsTrailer() {
		to.Set("Trailer", headerRemaining)
	}
	if r.wantsTrailer() || r.meter != nil && r.meter.Shortens() {
		to.Del("Content-Length")
	}
	r.report.status = r.answer.StatusCode
	r.writer.WriteHeader(r.answer.StatusCode)
	if atOnce {
		r.write(nil, true)
	}
}

func (r *relay) isStreamed() bool {
	return strings.HasPrefix(strings.ToLower(r.answer.Header.Get("Content-Type")), "text/event-stream")
}

func (r *relay) wantsTrailer() bool {
	return r.hold != nil && slices.ContainsFunc(r.request.Header.Values("Te"), func(value string) bool {
		return strings.Contains(strings.ToLower(value), "trailers")
	})
}

// read reads what comes next. Only while it waits does the provider's silence count.
func (r *relay) read(buffer []byte) (int, error) {
	r.attempt.idle.Reset(r.settings.Idle)
	n, err := r.answer.Body.Read(buffer)
	r.attempt.idle.Stop()
	return n, err
}

// next returns what may pass of what has come. The last of an answer is held back until the call is settled.
func (r *relay) next(text []byte) []byte {
	if r.meter == nil {
		return r.heldBack(r.key.next(text))
	}
	passes := r.meter.Next(text)
	r.reserve()
	if r.meter.Ended() {
		r.settleByMeter()
	}
	return passes
}

// reserve accounts for what the meter keeps of a large answer. Without room the meter lets go of it: the call then costs what was held.
func (r *relay) reserve() {
	size, now := r.meter.Kept(), time.Now()
	var err error
	switch {
	case r.kept != nil:
		err = r.kept.Resize(size, now)
	case size > smallAnswer:
		r.kept, err = r.gateway.answers.Reserve(size, now, func() {}, conn.Tenant{Organization: r.caller.Organization})
	}
	if err != nil {
		r.meter.Forget()
	}
}

// heldBack passes all but the last byte: the settlement of an error comes before that.
func (r *relay) heldBack(text []byte) []byte {
	if r.hold == nil || len(text) == 0 {
		return text
	}
	passes := slices.Concat(r.last, text[:len(text)-1])
	r.last = []byte{text[len(text)-1]}
	return passes
}

// end settles the call at the end of its answer, and ends that of the client: cut, if it is not whole.
func (r *relay) end(err error) {
	whole := err == io.EOF
	rest := slices.Concat(r.last, r.key.rest)
	if r.meter != nil {
		rest = r.meter.End(whole)
		r.settleByMeter()
	} else {
		r.settleError(whole)
	}
	if !whole {
		r.report.cause = cause(r.attempt.ctx, err)
		if errors.Is(r.report.cause, errDrained) {
			r.report.hungUp = true // also where nothing came that could not be written
		} else {
			r.gateway.metrics.cut.Inc()
		}
		panic(http.ErrAbortHandler)
	}
	r.pass(rest)
	if r.isLost {
		panic(http.ErrAbortHandler)
	}
	if r.wantsTrailer() {
		if read, refused := r.readSession(); refused == nil {
			r.writer.Header().Set(headerRemaining, read.left().String())
		}
	}
}

// settleByMeter settles by the usage that the answer says, if it is complete and does so.
func (r *relay) settleByMeter() {
	if cost, known := r.meter.Cost(); known {
		r.settleBy(settlement{how: byUsage, cost: cost})
		return
	}
	r.settleByHold()
}

// inDoubt are the statuses with which a server says that it does not know what became of a call.
var inDoubt = []int{504, 520, 521, 522, 523, 524}

// settleError settles a call that was answered with an error.
func (r *relay) settleError(whole bool) {
	if whole && r.answer.StatusCode >= 400 && !slices.Contains(inDoubt, r.answer.StatusCode) {
		r.settleBy(settlement{how: rolledBack, reason: "the provider answered " + http.StatusText(r.answer.StatusCode)})
		return
	}
	r.settleByHold()
}

func (r *relay) settleByHold() { r.settleBy(settlement{how: byHold}) }

func (r *relay) settleBy(s settlement) { r.settle(r.hold, s) }

// pass passes a part of the answer on. One that cannot be written is lost; the answer is then read on, so that its usage is known.
func (r *relay) pass(text []byte) {
	if len(text) > 0 {
		r.write(text, r.isStreamed())
	}
}

// write writes to the client, and has it have all that was written if it is to. A client that does not read for idle_seconds has hung up.
func (r *relay) write(text []byte, atOnce bool) {
	if r.isLost {
		return
	}
	err := r.writing(func() error {
		if err := r.attempt.ctx.Err(); err != nil { // from now on nothing would cut the write
			return err
		}
		_, err := r.writer.Write(text)
		if err == nil && atOnce {
			if err = r.control.Flush(); errors.Is(err, http.ErrNotSupported) {
				return nil
			}
		}
		return err
	})
	if err != nil {
		r.isLost, r.report.hungUp = true, r.attempt.ctx.Err() == nil
		r.attempt.drain()
	}
}
