package cli

import (
	"context"
	"iter"
	"slices"

	"github.com/alecthomas/kong"
	"remit/client"
)

// asEither is the flags of commands that accept an organization's API key or an agent's secret. The command line takes
// precedence over the environment, and in the environment the API key over the agent.
type asEither struct {
	asOrganization
	agentFlags
	keyInLine, agentInLine bool
}

// AfterApply is called by the flag parser. Only here is it known which flags the command line sets.
func (e *asEither) AfterApply(parsed *kong.Context) error {
	inLine := flagsInLine(parsed)
	e.keyInLine = inLine["api-key"]
	e.agentInLine = inLine["agent"] || slices.ContainsFunc(credentialFlags, func(name string) bool { return inLine[name] })
	return e.agentFlags.AfterApply(parsed)
}

// sessions is what organizations and agents can both do with sessions.
type sessions struct {
	get  func(ctx context.Context, id string) (client.SessionInfo, error)
	list func(ctx context.Context, f client.SessionFilter) iter.Seq2[client.SessionSummary, error]
	end  func(ctx context.Context, id string) error
	tree func(ctx context.Context, id string) (client.SessionTree, error)

	usage    func(ctx context.Context, id string) ([]client.UsageLine, error)
	requests func(ctx context.Context, id string, f client.MoreFilter) ([]client.MoreRequest, error)

	charge       func(ctx context.Context, id string, one client.Charge) (client.Usage, error)
	transaction  func(id string) *client.Transaction
	transactions func(ctx context.Context, f client.TransactionFilter) iter.Seq2[client.TransactionInfo, error]
	// everything has the events of the whole organization; nil for an agent.
	everything *client.Organization
	// events are those of an agent, which an agent itself need not name.
	events func(ctx context.Context, agent, after string, follow bool) iter.Seq2[client.Event, error]
}

func sessionsOfOrganization(o *client.Organization) sessions {
	return sessions{
		get: o.GetSession, list: o.Sessions, end: o.EndSession, tree: o.SessionTree, usage: o.SessionUsage, requests: o.Requests,
		charge: func(ctx context.Context, id string, one client.Charge) (client.Usage, error) {
			results, err := o.ChargeMany(ctx, []client.SessionCharge{{SessionID: id, Charge: one}}, client.BatchOptions{IdempotencyKey: one.IdempotencyKey})
			if err != nil {
				return client.Usage{}, err
			}
			return results[0].Usage, results[0].Err
		},
		transaction: o.Transaction, transactions: o.Transactions, everything: o,
		events: func(ctx context.Context, agent, after string, follow bool) iter.Seq2[client.Event, error] {
			if follow {
				return o.Events(ctx, agent, after)
			}
			return o.ListEvents(ctx, agent, after)
		},
	}
}

func sessionsOfAgent(a *client.Agent) sessions {
	return sessions{
		get:   func(ctx context.Context, id string) (client.SessionInfo, error) { return a.Session(id).Get(ctx) },
		list:  a.Sessions,
		end:   func(ctx context.Context, id string) error { return a.Session(id).End(ctx) },
		tree:  func(ctx context.Context, id string) (client.SessionTree, error) { return a.Session(id).Tree(ctx) },
		usage: func(ctx context.Context, id string) ([]client.UsageLine, error) { return a.Session(id).Usage(ctx) },
		requests: func(ctx context.Context, id string, f client.MoreFilter) ([]client.MoreRequest, error) {
			return a.Session(id).Requests(ctx, f)
		},
		charge: func(ctx context.Context, id string, one client.Charge) (client.Usage, error) {
			return a.Session(id).Charge(ctx, one)
		},
		transaction: a.Transaction, transactions: a.Transactions,
		events: func(ctx context.Context, agent, after string, follow bool) iter.Seq2[client.Event, error] {
			switch {
			case agent != "" && agent != a.ID():
				return each[client.Event](nil, errOtherAgent)
			case follow:
				return a.Events(ctx, after)
			}
			return a.ListEvents(ctx, after)
		},
	}
}

func (e *asEither) call(operation func(context.Context, sessions) error) error {
	return e.service.call(func(ctx context.Context, remit *client.Client) error {
		s, err := e.sessions(remit)
		if err != nil {
			return err
		}
		return operation(ctx, s)
	})
}

// sessions reads the credential and binds it to the Client.
func (e *asEither) sessions(remit *client.Client) (sessions, error) {
	key, err := e.key()
	if err != nil {
		return sessions{}, err
	}
	if key != "" {
		return sessionsOfOrganization(remit.Organization(key)), nil
	}
	missing := errNoCaller
	if e.agentInLine {
		missing = errNoSecret
	}
	agent, err := e.agentOf(remit, missing)
	if err != nil {
		return sessions{}, err
	}
	return sessionsOfAgent(agent), nil
}

// key returns the API key, or "" when the command line names an agent.
func (e *asEither) key() (string, error) {
	switch {
	case e.keyInLine && e.agentInLine:
		return "", errBoth
	case e.agentInLine:
		return "", nil
	}
	return e.APIKey.read()
}
