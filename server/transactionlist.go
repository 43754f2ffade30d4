package server

import (
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

func (s *Server) listTransactions(ctx *fasthttp.RequestCtx) error {
	caller, err := s.eitherCaller(ctx)
	if err != nil {
		return err
	}
	query, err := readQuery(ctx, []redisstore.Status{
		redisstore.Pending, redisstore.Committed, redisstore.RolledBack, redisstore.Expired,
	}, "agent_id", "session_id")
	if err != nil {
		return err
	}
	if query, err = caller.withinReach(query); err != nil {
		return err
	}
	if err := s.reserveAnswer(ctx, query.Limit*summaryBytes); err != nil {
		return err
	}
	page, err := s.store.Transactions(requestContext(ctx), caller.Caller, query)
	if err != nil {
		return err
	}
	announceNext(ctx, page.Next)
	return answerList(ctx, page.Items, func(o object, t redisstore.Transaction) (object, error) {
		return summaryOf(t).appendSummary(o)
	})
}
