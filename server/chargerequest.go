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
	v.actionType(r.ActionType)
	if r.Scope.given {
		v.require(isScope(c.Scope), "scope", "must be one scope")
	}
	return c
}

func (v *validation) actionType(given optional[string]) {
	v.require(!given.given || isActionType(given.value), "action_type", notAnActionType)
}

func isActionType(name string) bool {
	length := utf8.RuneCountInString(name)
	return length >= 1 && length <= maxActionTypeLength
}
