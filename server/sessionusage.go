package server

import (
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// mostTypeLine is about how many bytes one action type takes in a response.
const mostTypeLine = 6*maxActionTypeLength + 128

// getSessionUsage returns what a session has used, by action type.
func (s *Server) getSessionUsage(ctx *fasthttp.RequestCtx) error {
	caller, id, err := s.callerAndID(ctx)
	if err != nil {
		return err
	}
	if err := s.reserveAnswer(ctx, (maxTypesOfActions+2)*mostTypeLine); err != nil {
		return err
	}
	used, err := s.store.SessionUsage(requestContext(ctx), caller.Caller, id)
	if err != nil {
		return err
	}
	return answerList(ctx, used, appendTypeUsage)
}

func appendTypeUsage(o object, t redisstore.TypeUsage) (object, error) {
	o, err := o.textOrNull(`{"action_type":`, t.ActionType)
	o = o.number(`,"action_count":`, t.ActionCount)
	o = o.amount(`,"value_usd":`, t.Value)
	return append(o, '}'), err
}
