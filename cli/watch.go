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

// pollTime bounds one poll of a session. It is short, so that watch soon reports that the service is away.
const pollTime = 3 * time.Second

type watchSession struct {
	asEither
	ID       string        `arg:"" help:"The session's id."`
	Interval time.Duration `default:"500ms" env:"-" help:"Time between two polls, at least 100ms."`
}

// Validate is called by the flag parser.
func (c *watchSession) Validate() error {
	if c.Interval < 100*time.Millisecond {
		return errors.New("--interval must be at least 100ms")
	}
	return nil
}

// Help is appended to the command's help.
func (c *watchSession) Help() string {
	return "In a terminal it draws bars and updates them in place. Otherwise it prints one line per change, or with --json one JSON " +
		"document per change. It ends when the session is no longer active. While the service is unavailable it says so and " +
		"continues."
}

// Run shows the session until it has ended.
func (c *watchSession) Run() error {
	of, err := c.sessions()
	if err != nil {
		return err
	}
	remit, err := c.client(client.Options{MaxAttempts: 1}) // because follow retries, and shows that it does
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	d := c.display()
	defer d.close()
	return c.explain(c.follow(ctx, of(remit), d))
}

// display shows a sequence of views.
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

// follow polls the session every interval and shows it until the session ends. A transient error ends it only before the first
// response, because then the address may be wrong.
func (c *watchSession) follow(ctx context.Context, s sessions, d display) error {
	ticks := time.NewTicker(c.Interval)
	defer ticks.Stop()
	var v view
	for {
		info, err := poll(ctx, s, c.ID)
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

func poll(ctx context.Context, s sessions, id string) (client.SessionInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	return s.get(ctx, id)
}

// changes is a display without a terminal: it writes changes, and reports on err that the service is away.
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
			fmt.Fprintln(c.err, "remit: the service responds again")
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

// writeLine writes the session as a line of text.
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
