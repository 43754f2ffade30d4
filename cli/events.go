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
	Of     string `arg:"" optional:"" name:"agent-id" help:"The agent's id. Not needed with the agent's own credential."`
	After  string `env:"-" placeholder:"ID" help:"Start after the event with this id. The default is the oldest event kept."`
	Follow bool   `env:"-" short:"f" help:"Wait for new events until interrupted."`
}

// Help is appended to the command's help.
func (c *events) Help() string {
	return "Prints one line per event of the agent's audit trail, oldest first. With --json it prints one JSON array, or with " +
		"--follow one JSON document per event."
}

var (
	errNoAgent    = errors.New("name the agent: an API key gives access to all agents of its organization")
	errOtherAgent = errors.New("an agent can read only its own events")
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

// follow prints events until a signal interrupts it, and so has no deadline.
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
