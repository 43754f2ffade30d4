package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
	"remit/client"
)

// reason is the flag of commands whose reason events show.
type reason struct {
	Reason string `env:"-" help:"Reason, for people and the audit trail, at most 500 characters."`
}

type suspendAgent struct {
	showAgent
	reason
}

// Run suspends the agent and shows it.
func (c *suspendAgent) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		info, err := o.SuspendAgent(ctx, c.ID, c.Reason)
		if err != nil {
			return err
		}
		return c.show(info, factsOfAgent(info))
	})
}

type resumeAgent struct {
	showAgent
	reason
}

// Run resumes the agent and shows it.
func (c *resumeAgent) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		info, err := o.ResumeAgent(ctx, c.ID, c.Reason)
		if err != nil {
			return err
		}
		return c.show(info, factsOfAgent(info))
	})
}

// oneSession is a session of the organization.
type oneSession struct {
	asOrganization
	ID string `arg:"" help:"The session's id."`
}

type suspendSession struct {
	oneSession
	reason
}

// Run suspends the session and shows it.
func (c *suspendSession) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		info, err := o.SuspendSession(ctx, c.ID, c.Reason)
		if err != nil {
			return err
		}
		return c.show(info, factsOfSession(info))
	})
}

type resumeSession struct {
	oneSession
	reason
}

// Run resumes the session and shows it.
func (c *resumeSession) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		info, err := o.ResumeSession(ctx, c.ID, c.Reason)
		if err != nil {
			return err
		}
		return c.show(info, factsOfSession(info))
	})
}

// confirmed is the flag of commands that change all agents.
type confirmed struct {
	Yes bool `env:"-" help:"Skip the confirmation, which asks for the organization's name."`
}

// confirm asks for the organization's name at a terminal, so that the wrong API key changes nothing. Without a terminal it requires
// --yes.
func (c confirmed) confirm(ctx context.Context, o *client.Organization, what string) error {
	if c.Yes {
		return nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return errors.New(what + " all agents without a terminal needs --yes; nothing was changed")
	}
	organization, err := organizationOf(ctx, o)
	if err != nil || organization.ID == "" {
		return err
	}
	fmt.Fprintf(os.Stderr, "This %s all agents of %s. Type its name to continue: ", what, strconv.Quote(organization.Name))
	typed, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if strings.TrimRight(typed, "\r\n") != organization.Name {
		return errors.New("the name does not match; nothing was changed")
	}
	return nil
}

// organizationOf returns the organization of the API key, which its agents name. It is empty when there is no agent.
func organizationOf(ctx context.Context, o *client.Organization) (client.OrganizationInfo, error) {
	for agent, err := range o.Agents(ctx, client.AgentFilter{}) {
		if err != nil {
			return client.OrganizationInfo{}, err
		}
		return o.Info(ctx, agent.OrganizationID)
	}
	return client.OrganizationInfo{}, nil
}

type suspendAll struct {
	asOrganization
	confirmed
	reason
}

// Run suspends all agents and prints how many are suspended.
func (c *suspendAll) Run() error {
	return c.callAtLeisure(func(ctx context.Context, o *client.Organization) error {
		return c.confirm(ctx, o, "suspends")
	}, func(ctx context.Context, o *client.Organization) error {
		n, err := o.SuspendAllAgents(ctx, c.Reason)
		if err != nil {
			return err
		}
		return c.show(struct {
			Suspended int64 `json:"suspended"`
		}{n}, []fact{{"SUSPENDED", fmt.Sprint(n)}})
	})
}

type resumeAll struct {
	asOrganization
	confirmed
}

// Run resumes all agents and prints how many are not suspended.
func (c *resumeAll) Run() error {
	return c.callAtLeisure(func(ctx context.Context, o *client.Organization) error {
		return c.confirm(ctx, o, "resumes")
	}, func(ctx context.Context, o *client.Organization) error {
		n, err := o.ResumeAllAgents(ctx)
		if err != nil {
			return err
		}
		return c.show(struct {
			Resumed int64 `json:"resumed"`
		}{n}, []fact{{"RESUMED", fmt.Sprint(n)}})
	})
}
