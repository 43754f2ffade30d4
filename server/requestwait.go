package server

import (
	"context"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

const (
	maxDecisionWait = 60 // seconds
	// rereadPause is the shortest time between two reads of a request that an expiry may have ended.
	rereadPause = 100 * time.Millisecond
)

// requestQuery selects requests for more.
type requestQuery struct {
	status redisstore.Status // "" for all
	wait   time.Duration     // how long to wait for the decision
}

// readRequestQuery reads the one parameter that the endpoint has.
func readRequestQuery(ctx *fasthttp.RequestCtx, parameter string) (requestQuery, error) {
	var v validation
	var q requestQuery
	seen := map[string]bool{}
	for name, value := range ctx.QueryArgs().All() {
		field, text := string(name), string(value)
		v.require(!seen[field], shown(field), "is given twice")
		seen[field] = true
		switch {
		case field != parameter:
			v.add(shown(field), "is not a parameter of this request")
		case field == "status":
			q.status = v.status(text, []redisstore.Status{redisstore.Pending, redisstore.Approved, redisstore.Denied, redisstore.Lapsed})
		default:
			seconds, err := strconv.ParseUint(text, 10, 8)
			v.require(err == nil && seconds <= maxDecisionWait, field, "must be from 0 to "+strconv.Itoa(maxDecisionWait))
			q.wait = time.Duration(seconds) * time.Second
		}
	}
	return q, v.err()
}

// awaitDecision waits until a pending request is decided or its session ends; or until the time is over, the slot is displaced
// or the server stops: then it returns the request pending.
func (s *Server) awaitDecision(ctx *fasthttp.RequestCtx, caller caller, asked redisstore.SessionRequest, wait time.Duration) (redisstore.SessionRequest, error) {
	slot, err := s.waiters.acquire(caller.organizationID(), s.waiterAddress(ctx))
	if err != nil {
		return asked, err
	}
	defer slot.release()
	bounded, cancel := context.WithTimeout(slot.ctx, caller.patience(wait))
	defer cancel()
	for asked.Status == redisstore.Pending && bounded.Err() == nil {
		if err := s.awaitChange(bounded, asked); err != nil {
			return asked, err
		}
		if caller.hasExpired() {
			return asked, errInvalidToken
		}
		if caller.delegated != nil {
			if _, err := s.checkDelegated(readContext(ctx), caller); err != nil {
				return asked, err
			}
		}
		if asked, err = s.store.SessionRequest(requestContext(ctx), caller.Caller, asked.Session, asked.ID); err != nil {
			return asked, err
		}
	}
	return asked, nil
}

// awaitChange waits until anything happened to the request's agent, its session expires, or ctx ends. A decision, an end and a
// revocation are events of the agent; an expiry is not.
func (s *Server) awaitChange(ctx context.Context, asked redisstore.SessionRequest) error {
	return s.awaitEventFor(ctx, asked.Agent, asked.NewestEvent, max(asked.Remaining, rereadPause))
}
