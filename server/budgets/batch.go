package budgets

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) batchRoutes(r *web.Routes) {
	r.Post("/v1/actions", redisstore.Operator, h.Guard.ByEither(h.chargeBatch))
}

const maxBatch = 500

type batchRequest struct {
	Actions web.Optional[[]jsontext.Value] `json:"actions"`
}

type batchItem struct {
	Session web.Optional[string] `json:"session_id"`
	chargeRequest
}

// BatchResult is the status and body that an item would have had on its own.
type BatchResult struct {
	Status int `json:"status"`
	Body   any `json:"body"`
}

// chargeBatch makes many charges in one call. A refused charge does not affect the others.
func (h *Handlers) chargeBatch(ctx *fasthttp.RequestCtx, caller access.Caller) error {
	var request batchRequest
	if err := web.Decode(ctx, &request); err != nil {
		return err
	}
	if n := len(request.Actions.Value); n < 1 || n > maxBatch {
		return web.Invalid("actions", "must have 1 to "+strconv.Itoa(maxBatch)+" items")
	}
	refused, wanted := batchOf(caller, request.Actions.Value)
	whole, err := web.IdempotencyOf(ctx, "charge batch"+refusedIndexes(refused), uuid.Nil)
	if err != nil {
		return err
	}
	outcomes, err := h.Store.ChargeBatch(web.RequestContext(ctx), caller.Caller, wanted, whole)
	if err != nil {
		return err
	}
	h.counted.batch(refused, wanted, outcomes, whole)
	return web.Answer(ctx, h.batchResults(ctx, refused, wanted, outcomes))
}

// batchOf reads each item as if it came alone. refused holds an error for each item that is not to be charged, and nil for
// the others, which are in wanted in the same order.
func batchOf(c access.Caller, items []jsontext.Value) (refused []error, wanted []redisstore.BatchCharge) {
	refused = make([]error, len(items))
	for i, raw := range items {
		charge, err := batchItemOf(c, raw)
		if err != nil {
			refused[i] = err
			continue
		}
		wanted = append(wanted, charge)
	}
	return refused, wanted
}

// refusedIndexes lists the items that are refused before they are charged. The list is part of the fingerprint: the same
// items with a token of other scopes are another request, whose outcomes belong to other items.
func refusedIndexes(refused []error) string {
	var indexes []byte
	for i, err := range refused {
		if err != nil {
			indexes = strconv.AppendInt(append(indexes, ' '), int64(i), 10)
		}
	}
	return string(indexes)
}

func batchItemOf(c access.Caller, raw jsontext.Value) (redisstore.BatchCharge, error) {
	if raw.Kind() != '{' {
		return redisstore.BatchCharge{}, web.Invalid("", "the item must be a JSON object")
	}
	var item batchItem
	if err := json.Unmarshal(raw, &item, json.RejectUnknownMembers(true)); err != nil {
		return redisstore.BatchCharge{}, web.Explain(err, raw)
	}
	var v web.Validation
	session := v.ID("session_id", item.Session)
	wanted := redisstore.BatchCharge{Session: session, Charge: item.check(&v)}
	v.Require(!item.DryRun.Given, "dry_run", "cannot be given in a batch")
	if err := v.Err(); err != nil {
		return redisstore.BatchCharge{}, err
	}
	if err := c.MayActIn(session); err != nil {
		return redisstore.BatchCharge{}, err
	}
	return wanted, c.MayUse(wanted.Scope)
}

// batchResults merges the outcomes of the charges with the refusals before them.
func (h *Handlers) batchResults(ctx *fasthttp.RequestCtx, refused []error, wanted []redisstore.BatchCharge,
	outcomes []redisstore.ChargeOutcome) []BatchResult {
	results := make([]BatchResult, len(refused))
	next, trouble := 0, error(nil)
	for i, err := range refused {
		if err == nil {
			outcome := outcomes[next]
			results[i] = BatchResult{fasthttp.StatusOK, ChargeAnswer{wanted[next].Session, web.UsageOf(outcome.Usage), outcome.Usage.WouldRefuse}}
			err = redisstore.Needing(outcome.Err, wanted[next].Count, wanted[next].Value)
			next++
		}
		if err == nil {
			continue
		}
		p := h.Front.Hooks.ProblemOf(err)
		p.RequestID = web.AnsweredID(ctx)
		if p.Status >= fasthttp.StatusInternalServerError { // concerns this request, not a replayed one
			p.RequestID, trouble = web.RequestID(ctx), err
		}
		results[i] = BatchResult{p.Status, p}
	}
	if trouble != nil {
		h.Front.ReportFailure(ctx, trouble, h.Front.Hooks.ProblemOf(trouble))
	}
	return results
}
