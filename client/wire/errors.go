package wire

import (
	"errors"
	"strconv"

	"remit/client/prices"
)

// UsageMissing: a complete answer does not say what it used, and what was held is its price; or a request asks for a stream that would
// not say, and was not sent.
type UsageMissing struct {
	Model  string
	Reason string
}

// Error says what is missing and what to do.
func (e *UsageMissing) Error() string {
	return "call of model " + strconv.Quote(e.Model) + ": " + e.Reason + ": use an endpoint that reports usage"
}

// UnboundedCall: nothing bounds what the call can cost. It was not sent.
type UnboundedCall struct {
	Model  string // empty: not known
	Member string // of the request, that is at fault; empty: the request as a whole is
	Reason string
}

// Error says what is missing and what to do.
func (e *UnboundedCall) Error() string {
	model := ""
	if e.Model != "" {
		model = " of model " + strconv.Quote(e.Model)
	}
	return "unbounded call" + model + ": " + e.Reason + "; it was not sent"
}

// Member returns the name of the member of the request by which Read refused it. Empty: the request as a whole is refused.
func Member(err error) string {
	var unbounded *UnboundedCall
	switch {
	case errors.As(err, &unbounded):
		return unbounded.Member
	case errors.As(err, new(*UsageMissing)):
		return "stream_options.include_usage"
	case errors.As(err, new(*prices.UnknownModel)):
		return "model"
	}
	return ""
}
