package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"remit/client"
)

// askFor is how long watch waits for one answer. It asks again soon, and must say so when none comes.
const askFor = 3 * time.Second

type watchSession struct {
	asEither
	ID       string        `arg:"" help:"The session's id."`
	Interval time.Duration `default:"500ms" env:"-" help:"How often to look, 100ms or more."`
}

// Validate is called by the flag parser.
func (c *watchSession) Validate() error {
	if c.Interval < 100*time.Millisecond {
		return errors.New("--interval must be at least 100ms")
	}
	return nil
}

// Help is shown with the command's own.
func (c *watchSession) Help() string {
	return "In a terminal it draws bars, and draws them anew in their place. Elsewhere it prints a line for each change, and with " +
		"--json a JSON document for each. It ends by itself once the session is no longer active. While the service is away it " +
		"says so and goes on."
}

// Run shows the session until it has ended.
func (c *watchSession) Run() error {
	of, err := c.sessions()
	if err != nil {
		return err
	}
	remit, err := c.client(client.Options{MaxAttempts: 1}) // it asks again by itself, and shows that it does
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	d := c.display()
	defer d.close()
	return c.explain(c.follow(ctx, of(remit), d))
}

// display shows views one after the other.
type display interface {
	show(view) error
	close()
}

func (c *watchSession) display() display {
	switch {
	case c.JSON:
		return &changes{out: os.Stdout, err: os.Stderr, write: writeChange}
	case isTerminal(os.Stdout):
		return newScreen(os.Stdout)
	}
	return &changes{out: os.Stdout, err: os.Stderr, write: writeLine}
}

// follow asks for the session every interval and shows it, until it has ended. What may pass by itself ends it only before
// the first answer, when the address is as likely to be wrong.
func (c *watchSession) follow(ctx context.Context, s sessions, d display) error {
	ticks := time.NewTicker(c.Interval)
	defer ticks.Stop()
	var v view
	for {
		info, err := ask(ctx, s, c.ID)
		v.now = time.Now()
		switch {
		case ctx.Err() != nil:
			return errInterrupted
		case err == nil:
			v.session, v.away = info, ""
		case v.session.ID == "" || !isTransient(err):
			return err
		case v.away == "":
			v.away = fmt.Sprintf("since %s: %s", v.now.Format(time.TimeOnly), c.explain(err))
		}
		if err := d.show(v); err != nil {
			return err
		}
		if err == nil && info.Status != "active" {
			return nil
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return errInterrupted
		}
	}
}

func ask(ctx context.Context, s sessions, id string) (client.SessionInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	return s.get(ctx, id)
}

// changes is a display that is no terminal: it writes what has changed, and tells on err that the service is away.
type changes struct {
	out, err io.Writer
	write    func(io.Writer, view) error
	last     client.SessionInfo
	away     bool
}

func (c *changes) show(v view) error {
	if away := v.away != ""; away != c.away {
		c.away = away
		if away {
			fmt.Fprintln(c.err, "remit: "+v.away)
		} else {
			fmt.Fprintln(c.err, "remit: the service answers again")
		}
	}
	if reflect.DeepEqual(v.session, c.last) {
		return nil
	}
	c.last = v.session
	return c.write(c.out, v)
}

func (c *changes) close() {}

// writeChange writes the session as JSON.
func writeChange(to io.Writer, v view) error { return writeJSON(to, v.session) }

// writeLine writes the session in a line for people.
func writeLine(to io.Writer, v view) error {
	s := v.session
	text := fmt.Sprintf("%s  %s  actions %d/%d  value %s", moment(v.now), printable(s.Status), s.ActionCount, s.MaxActions, s.ValueUsed)
	if s.ValueHeld > 0 {
		text += fmt.Sprintf("+%s held", s.ValueHeld)
	}
	text += fmt.Sprintf("/%s USD", s.MaxValue)
	if s.ValueOverage > 0 {
		text += fmt.Sprintf("  %s USD beyond", s.ValueOverage)
	}
	_, err := fmt.Fprintf(to, "%s  expires %s\n", text, moment(s.ExpiresAt))
	return err
}
