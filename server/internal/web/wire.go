package web

import (
	"remit/money"
	"remit/redisstore"
)

// QuotaUsage names the quota that an organization has reached, and its usage.
type QuotaUsage struct {
	Quota string `json:"quota"`
	Used  int64  `json:"used"`
	Max   int64  `json:"max"`
}

// LimitUsage is what a session has used and what remains.
type LimitUsage struct {
	ActionCount      int64          `json:"action_count"`
	MaxActions       int64          `json:"max_actions"`
	ValueUsed        money.MicroUSD `json:"value_used_usd"`
	MaxValue         money.MicroUSD `json:"max_value_usd"`
	ValueHeld        money.MicroUSD `json:"value_held_usd"`
	RemainingActions int64          `json:"remaining_actions"`
	RemainingValue   money.MicroUSD `json:"remaining_value_usd"`
	Expires          Timestamp      `json:"expires_at"`
}

func UsageOf(u redisstore.Usage) LimitUsage {
	return LimitUsage{
		ActionCount: u.ActionCount, MaxActions: u.MaxActions,
		ValueUsed: u.ValueUsed, MaxValue: u.MaxValue, ValueHeld: u.ValueHeld,
		RemainingActions: u.RemainingActions(),
		RemainingValue:   u.RemainingValue(),
		Expires:          Timestamp(u.Expires),
	}
}
