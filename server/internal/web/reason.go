package web

import (
	"unicode/utf8"

	"github.com/valyala/fasthttp"
)

const maxReason = 500 // characters

type reasonRequest struct {
	Reason Optional[string] `json:"reason"`
}

// DecodeReason returns why an agent or a session is suspended or resumed, "" for no reason.
func DecodeReason(ctx *fasthttp.RequestCtx) (string, error) {
	var request reasonRequest
	if err := Decode(ctx, &request); err != nil {
		return "", err
	}
	var v Validation
	v.Reason(request.Reason.Value)
	return request.Reason.Value, v.Err()
}

// Reason checks the reason of a suspension.
func (v *Validation) Reason(reason string) {
	v.Require(utf8.RuneCountInString(reason) <= maxReason, "reason", "must have at most 500 characters")
}
