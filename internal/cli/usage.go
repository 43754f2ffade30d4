package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"remit/client"
)

type usageCommand struct {
	asOrganization
	Of      string   `arg:"" optional:"" name:"agent-id" help:"Only this agent's usage."`
	From    string   `env:"-" placeholder:"DATE" help:"First day in UTC, such as 2026-11-01. The default is 29 days before the last."`
	To      string   `env:"-" placeholder:"DATE" help:"Last day in UTC, at most 399 days after the first. The default is today."`
	GroupBy []string `env:"-" enum:"day,agent,session,action_type" default:"day" help:"One or two of day, agent, session and action_type. The default is day."`
	CSV     bool     `name:"csv" env:"-" help:"Print a table for spreadsheets (RFC 4180)."`
}

var (
	errGroups = errors.New("--group-by takes one or two groups, each once")
	errDate   = errors.New("must be a date such as 2026-11-22")
	errFormat = errors.New("use either --csv or --json")
)

// Validate is called by the flag parser.
func (c *usageCommand) Validate() error {
	for flag, day := range map[string]string{"--from: ": c.From, "--to: ": c.To} {
		if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
			return errors.New(flag + errDate.Error())
		}
	}
	if len(c.GroupBy) > 2 || len(c.GroupBy) == 2 && c.GroupBy[0] == c.GroupBy[1] {
		return errGroups
	}
	if c.CSV && c.JSON {
		return errFormat
	}
	return nil
}

// Run prints the report.
func (c *usageCommand) Run() error {
	return c.call(func(ctx context.Context, o *client.Organization) error {
		wanted := client.UsageParams{FirstDay: c.From, LastDay: c.To, GroupBy: c.GroupBy, AgentID: c.Of}
		if c.CSV {
			table, err := o.UsageCSV(ctx, wanted)
			if err != nil {
				return err
			}
			_, err = io.WriteString(os.Stdout, table)
			return err
		}
		lines, err := o.Usage(ctx, wanted)
		if err != nil {
			return err
		}
		return showUsage(c.Output, c.GroupBy, lines)
	})
}

type sessionUsage struct {
	asEither
	ID string `arg:"" help:"The session's id."`
}

// Run prints what the session was used for.
func (c *sessionUsage) Run() error {
	return c.call(func(ctx context.Context, s sessions) error {
		lines, err := s.usage(ctx, c.ID)
		if err != nil {
			return err
		}
		return showUsage(c.Output, []string{"action_type"}, lines)
	})
}

// usageGroup is a group of a report: its member in the API, its column, and how a line shows it.
type usageGroup struct {
	member, column string
	of             func(client.UsageLine) *string // nil: null
}

var usageGroups = map[string]usageGroup{
	"day":         {"day", "DAY", func(l client.UsageLine) *string { return &l.Day }},
	"agent":       {"agent_id", "AGENT", func(l client.UsageLine) *string { return &l.AgentID }},
	"session":     {"session_id", "SESSION", func(l client.UsageLine) *string { return l.SessionID }},
	"action_type": {"action_type", "ACTION TYPE", func(l client.UsageLine) *string { return l.ActionType }},
}

// showUsage prints a report of these groups.
func showUsage(o Output, groups []string, lines []client.UsageLine) error {
	if o.JSON {
		return writeJSON(os.Stdout, usageDocuments(groups, lines))
	}
	head := make([]string, 0, len(groups)+2)
	for _, group := range groups {
		head = append(head, usageGroups[group].column)
	}
	return list(o, each(lines, nil), strings.Join(append(head, "ACTIONS", "VALUE"), "\t"), func(l client.UsageLine) []string {
		var cells []string
		for _, group := range groups {
			cells = append(cells, *cmp.Or(usageGroups[group].of(l), new("-")))
		}
		return append(cells, strconv.FormatInt(l.ActionCount, 10), usd(l.Value))
	})
}

// usageDocuments returns lines with the members that the API gives them.
func usageDocuments(groups []string, lines []client.UsageLine) []map[string]any {
	documents := make([]map[string]any, 0, len(lines))
	for _, l := range lines {
		document := map[string]any{"action_count": l.ActionCount, "value_usd": l.Value}
		for _, group := range groups {
			document[usageGroups[group].member] = usageGroups[group].of(l)
		}
		documents = append(documents, document)
	}
	return documents
}
