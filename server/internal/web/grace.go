package web

import (
	"time"

	"github.com/valyala/fasthttp"
)

// Rotation is the body of a request that rotates a credential.
type Rotation struct {
	Grace Optional[int64] `json:"grace_seconds"`
}

// DecodeGrace returns how long the previous credential stays valid: usual seconds unless the request says otherwise.
func DecodeGrace(ctx *fasthttp.RequestCtx, usual int64) (time.Duration, error) {
	var request Rotation
	if err := Decode(ctx, &request); err != nil {
		return 0, err
	}
	return request.Duration(usual)
}

// Duration is DecodeGrace for a request that is decoded already.
func (r Rotation) Duration(usual int64) (time.Duration, error) {
	var v Validation
	grace := r.Grace.Or(usual)
	v.Within("grace_seconds", grace, 0, MaxGrace)
	return time.Duration(grace) * time.Second, v.Err()
}
