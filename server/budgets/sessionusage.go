package budgets

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// mostTypeLine is about how many bytes one action type takes in a response.
const mostTypeLine = 6*maxActionTypeLength + 128

// getSessionUsage returns what a session has used, by action type.
func (h *Handlers) getSessionUsage(ctx *fasthttp.RequestCtx, caller access.Caller, id uuid.UUID) error {
	if err := h.Front.ReserveAnswer(ctx, (maxTypesOfActions+2)*mostTypeLine); err != nil {
		return err
	}
	used, err := h.Store.SessionUsage(web.RequestContext(ctx), caller.Caller, id)
	if err != nil {
		return err
	}
	return web.AnswerList(ctx, used, appendTypeUsage)
}

func appendTypeUsage(o web.Object, t redisstore.TypeUsage) (web.Object, error) {
	o, err := o.TextOrNull(`{"action_type":`, t.ActionType)
	o = o.Number(`,"action_count":`, t.ActionCount)
	o = o.Amount(`,"value_usd":`, t.Value)
	return append(o, '}'), err
}
