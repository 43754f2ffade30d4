package server

import (
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (s *Server) suspensionRoutes(r *web.Routes) {
	r.Post("/v1/agents/suspend", redisstore.Operator, s.suspendAgents)
	r.Post("/v1/agents/resume", redisstore.Operator, s.resumeAgents)
	r.Post("/v1/agents/{id}/suspend", redisstore.Operator, s.suspendAgent)
	r.Post("/v1/agents/{id}/resume", redisstore.Operator, s.resumeAgent)
	for _, prefix := range []string{"", "/v1"} {
		r.Post(prefix+"/sessions/{id}/suspend", redisstore.Operator, s.suspendSession)
		r.Post(prefix+"/sessions/{id}/resume", redisstore.Operator, s.resumeSession)
	}
}

const maxSuspensionReason = 500 // characters

type suspensionRequest struct {
	Reason web.Optional[string] `json:"reason"`
}

// suspension returns the key, the id and the reason of a request to suspend or resume one object.
func (s *Server) suspension(ctx *fasthttp.RequestCtx) (redisstore.APIKey, uuid.UUID, string, error) {
	key, id, err := access.KeyAndID(ctx)
	if err != nil {
		return redisstore.APIKey{}, uuid.Nil, "", err
	}
	var request suspensionRequest
	if err := web.Decode(ctx, &request); err != nil {
		return redisstore.APIKey{}, uuid.Nil, "", err
	}
	var v web.Validation
	checkSuspensionReason(&v, request.Reason.Value)
	return key, id, request.Reason.Value, v.Err()
}

func checkSuspensionReason(v *web.Validation, reason string) {
	v.Require(utf8.RuneCountInString(reason) <= maxSuspensionReason, "reason", "must have at most 500 characters")
}
