package server

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

func (s *Server) batchRoutes(r *routes) {
	r.post("/v1/actions", s.chargeBatch)
}

const maxBatch = 500

type batchRequest struct {
	Actions optional[[]jsontext.Value] `json:"actions"`
}

type batchItem struct {
	Session optional[string] `json:"session_id"`
	chargeRequest
}

// batchResult is the status and body that an item would have had alone.
type batchResult struct {
	Status int `json:"status"`
	Body   any `json:"body"`
}

// chargeBatch charges sessions many times in one call. What is refused does not hinder the rest.
func (s *Server) chargeBatch(ctx *fasthttp.RequestCtx) error {
	caller, err := s.eitherCaller(ctx)
	if err != nil {
		return err
	}
	var request batchRequest
	if err := decode(ctx, &request); err != nil {
		return err
	}
	if n := len(request.Actions.value); n < 1 || n > maxBatch {
		return invalid("actions", "must have 1 to "+strconv.Itoa(maxBatch)+" items")
	}
	refused, wanted := caller.batch(request.Actions.value)
	whole, err := idempotencyOf(ctx, "charge batch"+places(refused), uuid.Nil)
	if err != nil {
		return err
	}
	outcomes, err := s.store.ChargeBatch(requestContext(ctx), caller.Caller, wanted, whole)
	s.reportReplay(ctx, whole)
	if err != nil {
		return err
	}
	s.metrics.batch(refused, wanted, outcomes, whole)
	return answer(ctx, s.batchResults(ctx, refused, wanted, outcomes))
}

// batch reads each item as if it came alone. refused has an error for each item that is not to be charged and nil for
// the others, which are wanted, in order.
func (c caller) batch(items []jsontext.Value) (refused []error, wanted []redisstore.BatchCharge) {
	refused = make([]error, len(items))
	for i, raw := range items {
		charge, err := c.batchItem(raw)
		if err != nil {
			refused[i] = err
			continue
		}
		wanted = append(wanted, charge)
	}
	return refused, wanted
}

// places says which items are refused before they are charged. It is a part of what is asked: the same items by a token
// with other scopes are another request, whose outcomes would stand in other places.
func places(refused []error) string {
	var places []byte
	for i, err := range refused {
		if err != nil {
			places = strconv.AppendInt(append(places, ' '), int64(i), 10)
		}
	}
	return string(places)
}

func (c caller) batchItem(raw jsontext.Value) (redisstore.BatchCharge, error) {
	if raw.Kind() != '{' {
		return redisstore.BatchCharge{}, invalid("", "the item must be a JSON object")
	}
	var item batchItem
	if err := json.Unmarshal(raw, &item, json.RejectUnknownMembers(true)); err != nil {
		return redisstore.BatchCharge{}, explain(err, raw)
	}
	var v validation
	session := v.id("session_id", item.Session)
	wanted := redisstore.BatchCharge{Session: session, Charge: item.check(&v)}
	if err := v.err(); err != nil {
		return redisstore.BatchCharge{}, err
	}
	return wanted, c.mayUse(wanted.Scope)
}

// batchResults puts the outcomes of what was wanted between what was refused before.
func (s *Server) batchResults(ctx *fasthttp.RequestCtx, refused []error, wanted []redisstore.BatchCharge,
	outcomes []redisstore.ChargeOutcome) []batchResult {
	results := make([]batchResult, len(refused))
	next, trouble := 0, error(nil)
	for i, err := range refused {
		if err == nil {
			outcome := outcomes[next]
			results[i] = batchResult{fasthttp.StatusOK, chargeAnswer{wanted[next].Session, usageOf(outcome.Usage)}}
			next, err = next+1, outcome.Err
		}
		if err == nil {
			continue
		}
		p := problemOf(err)
		p.RequestID = answeredID(ctx)
		if p.Status >= fasthttp.StatusInternalServerError { // which is of this request alone
			p.RequestID, trouble = requestID(ctx), err
		}
		results[i] = batchResult{p.Status, p}
	}
	if trouble != nil {
		s.reportFailure(ctx, trouble, problemOf(trouble))
	}
	return results
}
