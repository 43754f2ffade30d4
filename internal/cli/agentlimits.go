package cli

import (
	"errors"
	"fmt"
	"strconv"

	"remit/client"
	"remit/money"
)

// none is what people type to remove a limit.
const none = "none"

// valueLimit is a flag: an amount, or none.
type valueLimit money.MicroUSD

// UnmarshalText is called by the flag parser.
func (l *valueLimit) UnmarshalText(text []byte) error {
	if string(text) == none {
		*l = client.NoLimit
		return nil
	}
	return (*money.MicroUSD)(l).UnmarshalText(text)
}

// countLimit is a flag: a number, or none.
type countLimit int64

// UnmarshalText is called by the flag parser.
func (l *countLimit) UnmarshalText(text []byte) error {
	if string(text) == none {
		*l = client.NoLimit
		return nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 0 {
		return errors.New("must be a number or none")
	}
	*l = countLimit(n)
	return nil
}

// agentLimits are the flags of an agent's limits.
type agentLimits struct {
	MaxValuePerDay      *valueLimit `name:"max-value-usd-per-day" env:"-" placeholder:"USD" help:"Maximum value in USD in a UTC day over all of the agent's sessions, or none."`
	MaxActionsPerMinute *countLimit `env:"-" placeholder:"N" help:"Maximum number of actions in a minute over all of the agent's sessions, or none."`
	MaxOpenSessions     *countLimit `env:"-" placeholder:"N" help:"Maximum number of open sessions, or none."`
}

func (l agentLimits) sent() client.AgentLimits {
	return client.AgentLimits{
		MaxValuePerDay: (*money.MicroUSD)(l.MaxValuePerDay), MaxActionsPerMinute: (*int64)(l.MaxActionsPerMinute),
		MaxOpenSessions: (*int64)(l.MaxOpenSessions),
	}
}

// listOrNone returns the values of a flag; nil: it is not given. The one empty value that --scopes= gives means none.
func listOrNone[T ~string](given []T) *[]T {
	switch {
	case given == nil:
		return nil
	case len(given) == 1 && given[0] == "":
		return new([]T)
	}
	return &given
}

// factsOfLimits are the limits that an agent has, with what is used of them.
func factsOfLimits(a client.AgentInfo) []Fact {
	if a.Limits == nil {
		return nil
	}
	var day, minute, open string
	if most := a.Limits.MaxValuePerDay; most != nil {
		day = usd(*most)
		if a.Usage != nil && a.Usage.ValueUsedToday != nil && a.Usage.ResetsAt != nil {
			day = fmt.Sprintf("%s of %s until %s", a.Usage.ValueUsedToday, usd(*most), moment(*a.Usage.ResetsAt))
		}
	}
	if most := a.Limits.MaxActionsPerMinute; most != nil {
		minute = fmt.Sprintf("%d actions", *most)
	}
	if most := a.Limits.MaxOpenSessions; most != nil {
		open = fmt.Sprint(*most)
		if a.Usage != nil && a.Usage.OpenSessions != nil {
			open = fmt.Sprintf("%d of %d", *a.Usage.OpenSessions, *most)
		}
	}
	return []Fact{{"PER DAY", day}, {"PER MINUTE", minute}, {"OPEN SESSIONS", open}}
}
