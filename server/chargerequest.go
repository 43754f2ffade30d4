package server

import (
	"unicode/utf8"

	"remit/money"
	"remit/redisstore"
)

const (
	maxCount            = 1000
	maxActionTypeLength = 200 // characters

	notAnActionType = "must have 1 to 200 characters"
)

type chargeRequest struct {
	ActionType optional[string]         `json:"action_type"` // for reports of usage; no rule depends on it
	Value      optional[money.MicroUSD] `json:"value_usd"`   // of all the actions together
	Count      optional[int64]          `json:"count"`
	Scope      optional[string]         `json:"scope"`
	DryRun     optional[bool]           `json:"dry_run"`
}

func (r *chargeRequest) charge() (redisstore.Charge, error) {
	var v validation
	c := r.check(&v)
	return c, v.err()
}

func (r *chargeRequest) check(v *validation) redisstore.Charge {
	c := redisstore.Charge{Count: r.Count.or(1), Value: r.Value.value, Scope: r.Scope.value, ActionType: r.ActionType.value, DryRun: r.DryRun.value}
	v.within("count", c.Count, 1, maxCount)
	checkActionType(v, r.ActionType)
	if r.Scope.given {
		v.require(isScope(c.Scope), "scope", "must be one scope")
	}
	return c
}

func checkActionType(v *validation, given optional[string]) {
	v.require(!given.given || isActionType(given.value), "action_type", notAnActionType)
}

func isActionType(name string) bool {
	length := utf8.RuneCountInString(name)
	return length >= 1 && length <= maxActionTypeLength
}

// decodeFast reads the body of a charge in its usual form. It returns false for any other body; see fastReader.
func decodeFast(body []byte, request *chargeRequest) bool {
	rest := fastReader(body)
	return rest.object(func(name []byte) bool { return request.fastField(string(name), &rest) })
}

// fastField reads one field. It returns false when the field was given before.
func (r *chargeRequest) fastField(name string, rest *fastReader) bool {
	switch name {
	case "action_type":
		return rest.textField(&r.ActionType)
	case "scope":
		return rest.textField(&r.Scope)
	case "value_usd":
		amount, err := money.Parse(rest.number())
		ok := err == nil && !r.Value.given
		r.Value = optional[money.MicroUSD]{amount, true}
		return ok
	case "count":
		count, ok := rest.count()
		ok = ok && !r.Count.given
		r.Count = optional[int64]{count, true}
		return ok
	}
	return false
}
