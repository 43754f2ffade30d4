package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
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
	return callAndShow(c, factsOfAgent, func(ctx context.Context, o *client.Organization) (client.AgentInfo, error) {
		return o.SuspendAgent(ctx, c.ID, c.Reason)
	})
}

type resumeAgent struct {
	showAgent
	reason
}

// Run resumes the agent and shows it.
func (c *resumeAgent) Run() error {
	return callAndShow(c, factsOfAgent, func(ctx context.Context, o *client.Organization) (client.AgentInfo, error) {
		return o.ResumeAgent(ctx, c.ID, c.Reason)
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
	return callAndShow(c, factsOfSession, func(ctx context.Context, o *client.Organization) (client.SessionInfo, error) {
		return o.SuspendSession(ctx, c.ID, c.Reason)
	})
}

type resumeSession struct {
	oneSession
	reason
}

// Run resumes the session and shows it.
func (c *resumeSession) Run() error {
	return callAndShow(c, factsOfSession, func(ctx context.Context, o *client.Organization) (client.SessionInfo, error) {
		return o.ResumeSession(ctx, c.ID, c.Reason)
	})
}

// allAgents are the flags of commands that change all agents.
type allAgents struct {
	asOrganization
	Yes bool `env:"-" help:"Skip the confirmation, which asks for the organization's name."`
}

// callConfirmed is call with a confirmation before it, for which a person may take longer than callTime.
func (a *allAgents) callConfirmed(what string, operation func(context.Context, *client.Organization) error) error {
	key, err := a.APIKey.read()
	if err != nil {
		return err
	}
	a.APIKey = credential(key) // standard input is read once
	if key == "" {
		return errNoKey
	}
	remit, err := a.client(client.Options{})
	if err != nil {
		return err
	}
	if err := a.confirm(context.Background(), remit.Organization(key), what); err != nil {
		return a.explain(err)
	}
	return a.call(operation)
}

// confirm asks for the organization's name at a terminal, so that the wrong API key changes nothing. Without a terminal it requires
// --yes.
func (a *allAgents) confirm(ctx context.Context, o *client.Organization, what string) error {
	if a.Yes {
		return nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return errors.New(what + " all agents without a terminal needs --yes; nothing was changed")
	}
	organization, err := organizationOf(ctx, o)
	if err != nil || organization.ID == "" {
		return err
	}
	return AskForName(fmt.Sprintf("This %s all agents of %q.", what, organization.Name), organization.Name)
}

// AskForName tells a person at a terminal what a command does, and asks for the name of what it does that to.
func AskForName(what, name string) error {
	fmt.Fprint(os.Stderr, what+" Type its name to continue: ")
	typed, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if strings.TrimRight(typed, "\r\n") != name {
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
	allAgents
	reason
}

// Run suspends all agents and prints how many are suspended.
func (c *suspendAll) Run() error {
	return c.callConfirmed("suspends", func(ctx context.Context, o *client.Organization) error {
		n, err := o.SuspendAllAgents(ctx, c.Reason)
		if err != nil {
			return err
		}
		return c.Show(struct {
			Suspended int64 `json:"suspended"`
		}{n}, []Fact{{"SUSPENDED", fmt.Sprint(n)}})
	})
}

type resumeAll struct{ allAgents }

// Run resumes all agents and prints how many are not suspended.
func (c *resumeAll) Run() error {
	return c.callConfirmed("resumes", func(ctx context.Context, o *client.Organization) error {
		n, err := o.ResumeAllAgents(ctx)
		if err != nil {
			return err
		}
		return c.Show(struct {
			Resumed int64 `json:"resumed"`
		}{n}, []Fact{{"RESUMED", fmt.Sprint(n)}})
	})
}
