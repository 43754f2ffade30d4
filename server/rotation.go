package server

import (
	"time"

	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

// rotation is the body of the two requests that rotate a credential.
type rotation struct {
	Grace web.Optional[int64] `json:"grace_seconds"`
}

// decodeGrace returns how long the previous credential stays valid: usual seconds unless the request says otherwise.
func decodeGrace(ctx *fasthttp.RequestCtx, usual int64) (time.Duration, error) {
	var request rotation
	if err := web.Decode(ctx, &request); err != nil {
		return 0, err
	}
	return request.duration(usual)
}

func (r rotation) duration(usual int64) (time.Duration, error) {
	var v web.Validation
	grace := r.Grace.Or(usual)
	v.Within("grace_seconds", grace, 0, web.MaxGrace)
	return time.Duration(grace) * time.Second, v.Err()
}
