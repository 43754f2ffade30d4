package server

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
)

// authenticate checks a credential, unless too many of its kind have failed.
func (s *Server) authenticate(ctx *fasthttp.RequestCtx, c credential, check func() error) error {
	limit := s.limits.failedAuth
	if limit == nil {
		return check()
	}
	address := s.clientAddress(ctx)
	if left := limit.left(ctx, address, c); left.remaining == 0 && !limit.knows(c) {
		s.counts.limitedTokens.Inc()
		return &rateLimited{left.reset}
	}
	err := check()
	limit.note(address, c, err)
	if isWrongCredential(err) {
		limit.left(ctx, address, c)
	}
	return err
}

// refuseCredential is authenticate for one that is wrong in itself, or was not presented well enough to be checked.
func (s *Server) refuseCredential(ctx *fasthttp.RequestCtx, agent uuid.UUID, err error) error {
	return s.authenticate(ctx, credential{agent: agent}, func() error { return err })
}
