package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"remit/client/prices"
	"remit/client/wire"
)

// servePriced holds for a call, sends it and passes the answer on.
func (e *exchange) servePriced(body []byte) *refusal {
	call, refused := e.readCall(body)
	if refused != nil {
		return refused
	}
	e.report.model = call.Priced
	h, fitted, refused := e.hold(call)
	if refused != nil {
		return refused
	}
	defer e.settle(h, settlement{how: byHold}) // after a panic; otherwise it is settled
	e.report.held, e.remaining = h.value, &h.sessionLeft
	if h.wouldRefuse != "" {
		e.writer.Header().Set(headerWouldRefuse, h.wouldRefuse)
	}
	if fitted > 0 {
		e.writer.Header().Set(headerMaxTokens, fmt.Sprint(fitted))
		e.gateway.metrics.fitted.Inc()
	}
	return e.send(call.Body, call, h)
}

// maxModel bounds a model's name, in characters: the type of the action has it.
const maxModel = 194

// readCall bounds what the call can cost.
func (e *exchange) readCall(body []byte) (*wire.Call, *refusal) {
	u := e.target.upstream
	defer e.gateway.parsing.begin(len(body))()
	options := wire.Options{OutputLimit: e.outputLimit(), AnswersModel: true, PlainNames: true}
	call, err := wire.Read(e.target.route.format, body, e.settings.table, options)
	if err != nil {
		return nil, unreadable(err)
	}
	switch {
	case utf8.RuneCountInString(call.Model) > maxModel:
		return nil, longModel()
	case len(call.Hosted) > 0:
		return nil, invalid(call.HostedBy, call.Hosted[0]+" is run by the provider, and its price is not known")
	}
	if refused := e.checkObjects(call.Objects); refused != nil {
		return nil, refused
	}
	if u.isShared() && e.keeps(call) {
		if err := call.Set("store", false); err != nil {
			return nil, internalError(err)
		}
	}
	return call, nil
}

// outputLimit returns the member that limits the output of a chat completion, if the config names it.
func (e *exchange) outputLimit() string {
	if e.target.route.format != wire.ChatCompletions {
		return ""
	}
	return e.target.upstream.OutputField
}

// keeps reports whether the provider would keep the answer.
func (e *exchange) keeps(call *wire.Call) bool {
	format := e.target.route.format
	return format == wire.Responses || format == wire.ChatCompletions && call.Has("store")
}

// mostFits is how often a call is lowered to what is left: meanwhile other calls take of it.
const mostFits = 4

// hold begins the hold of a call, and lowers the limit of its output to what is left if need be: to fitted, which is 0 otherwise.
func (e *exchange) hold(call *wire.Call) (h *hold, fitted int64, refused *refusal) {
	for range mostFits {
		worst, err := call.Worst()
		if err != nil {
			return nil, 0, unreadable(err)
		}
		var room left
		if h, refused, room = e.gateway.begin(e, call.Model, worst); refused == nil {
			return h, fitted, nil
		}
		if refused.status != http.StatusPaymentRequired || !room.known || room.value >= worst {
			return nil, 0, refused
		}
		output, fits := call.Fit(room.value, e.settings.MinOutput)
		if !fits {
			refused.detail += fmt.Sprintf("; the call may cost up to %s USD, with %d tokens of output", worst, call.MostOutput)
			return nil, 0, refused
		}
		fitted = output
	}
	return nil, 0, refused
}

// unreadable refuses a request by what wire says of it.
func unreadable(err error) *refusal {
	r := invalid(wire.Member(err), strings.TrimSuffix(err.Error(), "; it was not sent"))
	var unknown *prices.UnknownModel
	switch {
	case !errors.As(err, &unknown):
	case unknown.Model == "":
		r.detail = "the request names no model"
	case utf8.RuneCountInString(unknown.Model) > maxModel:
		return longModel()
	default:
		r.status, r.code = http.StatusNotFound, "unknown_model"
	}
	return r
}

func longModel() *refusal {
	return invalid("model", fmt.Sprintf("the model's name has more than %d characters", maxModel))
}
