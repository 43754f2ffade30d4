package server

import (
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

func (s *Server) suspensionRoutes(r *routes) {
	r.post("/v1/agents/suspend", redisstore.Operator, s.suspendAgents)
	r.post("/v1/agents/resume", redisstore.Operator, s.resumeAgents)
	r.post("/v1/agents/{id}/suspend", redisstore.Operator, s.suspendAgent)
	r.post("/v1/agents/{id}/resume", redisstore.Operator, s.resumeAgent)
	for _, prefix := range []string{"", "/v1"} {
		r.post(prefix+"/sessions/{id}/suspend", redisstore.Operator, s.suspendSession)
		r.post(prefix+"/sessions/{id}/resume", redisstore.Operator, s.resumeSession)
	}
}

const maxSuspensionReason = 500 // characters

type suspensionRequest struct {
	Reason optional[string] `json:"reason"`
}

// suspension returns the key, the id and the reason of a request to suspend or resume one object.
func (s *Server) suspension(ctx *fasthttp.RequestCtx) (redisstore.APIKey, uuid.UUID, string, error) {
	key, id, err := keyAndID(ctx)
	if err != nil {
		return redisstore.APIKey{}, uuid.Nil, "", err
	}
	var request suspensionRequest
	if err := decode(ctx, &request); err != nil {
		return redisstore.APIKey{}, uuid.Nil, "", err
	}
	var v validation
	checkSuspensionReason(&v, request.Reason.value)
	return key, id, request.Reason.value, v.err()
}

func checkSuspensionReason(v *validation, reason string) {
	v.require(utf8.RuneCountInString(reason) <= maxSuspensionReason, "reason", "must have at most 500 characters")
}
