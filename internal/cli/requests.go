package cli

import (
	"context"
	"errors"
	"fmt"

	"remit/client"
	"remit/money"
)

type listRequests struct {
	asEither
	ID     string `arg:"" help:"The session's id."`
	Status string `env:"-" enum:"pending,approved,denied,ended,all" default:"all" help:"List only requests in this status: pending, approved, denied, ended or all. The default is all."`
}

// Run lists the requests for more.
func (c *listRequests) Run() error {
	return c.call(func(ctx context.Context, s sessions) error {
		found := each(s.requests(ctx, c.ID, client.MoreFilter{Status: unlessAll(c.Status)}))
		return list(c.Output, found, "ID\tSTATUS\tACTIONS\tVALUE\tCREATED\tREASON", func(r client.MoreRequest) []string {
			return []string{r.ID, r.Status, fmt.Sprintf("+%d", r.AddActions), "+" + usd(r.AddValue), moment(r.CreatedAt), r.Reason}
		})
	})
}

// oneRequest is a request for more, and who decides it.
type oneRequest struct {
	asOrganization
	Session string `arg:"" name:"session-id" help:"The session's id."`
	ID      string `arg:"" name:"request-id" help:"The request's id."`
	Comment string `env:"-" help:"Comment for the agent."`
}

type approveRequest struct {
	oneRequest
	AddActions *int64          `env:"-" placeholder:"N" help:"Actions to grant. The default is as many as were asked for."`
	AddValue   *money.MicroUSD `name:"add-value-usd" env:"-" placeholder:"USD" help:"Value in USD to grant. The default is as much as was asked for."`
}

// Validate is called by the flag parser.
func (c *approveRequest) Validate() error {
	if c.AddActions != nil && *c.AddActions < 0 {
		return errors.New("--add-actions cannot be negative")
	}
	return nil
}

// Run approves the request and shows it.
func (c *approveRequest) Run() error {
	return callAndShow(c, factsOfRequest, func(ctx context.Context, o *client.Organization) (client.MoreRequest, error) {
		granted := client.ApprovalParams{AddActions: c.AddActions, AddValue: c.AddValue, Comment: c.Comment}
		return o.ApproveRequest(ctx, c.Session, c.ID, granted)
	})
}

type denyRequest struct{ oneRequest }

// Run denies the request and shows it.
func (c *denyRequest) Run() error {
	return callAndShow(c, factsOfRequest, func(ctx context.Context, o *client.Organization) (client.MoreRequest, error) {
		return o.DenyRequest(ctx, c.Session, c.ID, c.Comment)
	})
}

func factsOfRequest(r client.MoreRequest) []Fact {
	granted := ""
	if r.Status == "approved" {
		granted = fmt.Sprintf("%d actions, %s", r.GrantedActions, usd(r.GrantedValue))
	}
	return []Fact{
		{"ID", r.ID}, {"SESSION", r.SessionID}, {"AGENT", r.AgentID}, {"STATUS", r.Status},
		{"ASKED", fmt.Sprintf("%d actions, %s", r.AddActions, usd(r.AddValue))}, {"GRANTED", granted}, {"REASON", r.Reason},
		{"COMMENT", r.Comment}, {"CREATED", moment(r.CreatedAt)}, {"DECIDED", moment(r.DecidedAt)},
	}
}
