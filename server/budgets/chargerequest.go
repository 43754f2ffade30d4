package budgets

import (
	"unicode/utf8"

	"remit/money"
	"remit/redisstore"
	"remit/server/internal/web"
)

const (
	maxCount            = 1000
	maxActionTypeLength = 200 // characters

	notAnActionType = "must have 1 to 200 characters"
)

// chargeRequest is the body of a charge, and of an item of a batch.
type chargeRequest struct {
	ActionType web.Optional[string]         `json:"action_type"` // for reports of usage; no rule depends on it
	Value      web.Optional[money.MicroUSD] `json:"value_usd"`   // of all the actions together
	Count      web.Optional[int64]          `json:"count"`
	Scope      web.Optional[string]         `json:"scope"`
	DryRun     web.Optional[bool]           `json:"dry_run"`
}

func (r *chargeRequest) charge() (redisstore.Charge, error) {
	var v web.Validation
	c := r.check(&v)
	return c, v.Err()
}

func (r *chargeRequest) check(v *web.Validation) redisstore.Charge {
	c := redisstore.Charge{Count: r.Count.Or(1), Value: r.Value.Value, Scope: r.Scope.Value, ActionType: r.ActionType.Value, DryRun: r.DryRun.Value}
	v.Within("count", c.Count, 1, maxCount)
	checkActionType(v, r.ActionType)
	if r.Scope.Given {
		v.Require(web.IsScope(c.Scope), "scope", "must be one scope")
	}
	return c
}

func checkActionType(v *web.Validation, given web.Optional[string]) {
	v.Require(!given.Given || isActionType(given.Value), "action_type", notAnActionType)
}

func isActionType(name string) bool {
	length := utf8.RuneCountInString(name)
	return length >= 1 && length <= maxActionTypeLength
}

// decodeFast reads the body of a charge in its usual form. It returns false for any other body; see web.FastReader.
func decodeFast(body []byte, request *chargeRequest) bool {
	rest := web.FastReader(body)
	return rest.Object(func(name []byte) bool { return request.fastField(string(name), &rest) })
}

// fastField reads one field. It returns false when the field was given before.
func (r *chargeRequest) fastField(name string, rest *web.FastReader) bool {
	switch name {
	case "action_type":
		return rest.TextField(&r.ActionType)
	case "scope":
		return rest.TextField(&r.Scope)
	case "value_usd":
		amount, err := money.Parse(rest.Number())
		ok := err == nil && !r.Value.Given
		r.Value = web.Optional[money.MicroUSD]{Value: amount, Given: true}
		return ok
	case "count":
		count, ok := rest.Count()
		ok = ok && !r.Count.Given
		r.Count = web.Optional[int64]{Value: count, Given: true}
		return ok
	}
	return false
}
