package server

import (
	"remit/money"
	"remit/redisstore"
)

// quotaUsage tells which quota of an organization is reached, and how far.
type quotaUsage struct {
	Quota string `json:"quota"`
	Used  int64  `json:"used"`
	Max   int64  `json:"max"`
}

// limitUsage tells what of a session is used and what remains.
type limitUsage struct {
	ActionCount      int64          `json:"action_count"`
	MaxActions       int64          `json:"max_actions"`
	ValueUsed        money.MicroUSD `json:"value_used_usd"`
	MaxValue         money.MicroUSD `json:"max_value_usd"`
	ValueHeld        money.MicroUSD `json:"value_held_usd"`
	RemainingActions int64          `json:"remaining_actions"`
	RemainingValue   money.MicroUSD `json:"remaining_value_usd"`
	Expires          timestamp      `json:"expires_at"`
}

func usageOf(u redisstore.Usage) limitUsage {
	return limitUsage{
		ActionCount: u.ActionCount, MaxActions: u.MaxActions,
		ValueUsed: u.ValueUsed, MaxValue: u.MaxValue, ValueHeld: u.ValueHeld,
		RemainingActions: u.MaxActions - u.ActionCount,
		RemainingValue:   u.RemainingValue(),
		Expires:          timestamp(u.Expires),
	}
}
