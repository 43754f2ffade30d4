package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"remit/client"
)

type events struct {
	asEither
	Of     string `arg:"" optional:"" name:"agent-id" help:"The agent's id; not needed with an agent's own credential."`
	After  string `env:"-" placeholder:"ID" help:"Start after the event with this id. By default with the oldest that is kept."`
	Follow bool   `env:"-" short:"f" help:"Go on with the events to come, until it is interrupted."`
}

// Help is shown with the command's own.
func (c *events) Help() string {
	return "It prints a line for each event of the agent's audit trail, oldest first. With --json it prints one JSON array, or with " +
		"--follow a JSON document for each event."
}

var (
	errNoAgent    = errors.New("give the agent's id: an API key is good for all agents of its organization")
	errOtherAgent = errors.New("an agent can read its own events only")
)

// Run prints the agent's audit trail.
func (c *events) Run() error {
	if c.Follow {
		return c.follow()
	}
	return c.call(func(ctx context.Context, s sessions) error {
		found, err := s.events(ctx, c.Of, c.After, false)
		if err != nil {
			return err
		}
		return list(c.output, found, "OCCURRED\tTYPE\tACTOR\tSESSION\tDATA", cellsOfEvent)
	})
}

// follow prints events until somebody interrupts it. It has no other end, so no bound of time.
func (c *events) follow() error {
	of, err := c.sessions()
	if err != nil {
		return err
	}
	remit, err := c.client(client.Options{})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	found, err := of(remit).events(ctx, c.Of, c.After, true)
	if err != nil {
		return err
	}
	for event, err := range found {
		if ctx.Err() != nil {
			return errInterrupted
		}
		if err != nil {
			return c.explain(err)
		}
		if err := c.print(event); err != nil {
			return err
		}
	}
	return nil
}

func (c *events) print(event client.Event) error {
	if c.JSON {
		return writeJSON(os.Stdout, event)
	}
	cells := cellsOfEvent(event)
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	return writeTable(os.Stdout, [][]string{cells})
}

func cellsOfEvent(e client.Event) []string {
	return []string{moment(e.OccurredAt), e.Type, e.Actor.Type, e.SessionID, string(e.Data)}
}
