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
	return checkInterval(c.Interval)
}

func checkInterval(interval time.Duration) error {
	if interval < 100*time.Millisecond {
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
	return c.live(func(ctx context.Context, s sessions) error {
		d := c.display()
		defer d.close()
		read := func(ctx context.Context) (client.SessionInfo, error) { return s.get(ctx, c.ID) }
		return follow(ctx, c.Interval, read, c.explain, func(v seen[client.SessionInfo]) (bool, error) {
			return v.value.Status != "active", d.show(view{v.value, v.now, v.away})
		})
	})
}

// live runs an operation until a signal ends it.
func (e *asEither) live(operation func(context.Context, sessions) error) error {
	remit, err := e.client(client.Options{MaxAttempts: 1}) // because follow retries, and shows that it does
	if err != nil {
		return err
	}
	s, err := e.sessions(remit)
	if err != nil {
		return e.explain(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	return e.explain(operation(ctx, s))
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

// seen is what was read last, and why the service does not respond since; empty: it does.
type seen[T any] struct {
	value T
	now   time.Time
	away  string
}

// follow reads every interval and shows what it read until that is over. A transient error ends it only before the first response,
// because then the address may be wrong.
func follow[T any](
	ctx context.Context, interval time.Duration, read func(context.Context) (T, error), explain func(error) error,
	show func(seen[T]) (over bool, err error),
) error {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	var v seen[T]
	for known := false; ; {
		value, err := poll(ctx, read)
		v.now = time.Now()
		switch {
		case ctx.Err() != nil:
			return errInterrupted
		case err == nil:
			v.value, v.away, known = value, "", true
		case !known || !isTransient(err):
			return err
		case v.away == "":
			v.away = fmt.Sprintf("since %s: %s", v.now.Format(time.TimeOnly), explain(err))
		}
		over, failed := show(v)
		if failed != nil || err == nil && over {
			return failed
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return errInterrupted
		}
	}
}

func poll[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTime)
	defer cancel()
	return read(ctx)
}

// outage is whether the service does not respond.
type outage bool

// note reports that the service is away, or responds again.
func (o *outage) note(to io.Writer, away string) {
	if is := outage(away != ""); is != *o {
		*o = is
		if is {
			fmt.Fprintln(to, "remit: "+away)
		} else {
			fmt.Fprintln(to, "remit: the service responds again")
		}
	}
}

// changes is a display without a terminal: it writes changes, and reports on err that the service is away.
type changes struct {
	out, err io.Writer
	write    func(io.Writer, view) error
	last     client.SessionInfo
	away     outage
}

func (c *changes) show(v view) error {
	c.away.note(c.err, v.away)
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
	text := fmt.Sprintf("%s  %s  actions %d/%d  value %s", moment(v.now), printable(statusOf(s)), s.ActionCount, s.MaxActions, s.ValueUsed)
	if s.ValueHeld > 0 {
		text += fmt.Sprintf("+%s held", s.ValueHeld)
	}
	if s.ValueDelegated > 0 {
		text += fmt.Sprintf("+%s delegated", s.ValueDelegated)
	}
	text += fmt.Sprintf("/%s USD", s.MaxValue)
	if s.ValueOverage > 0 {
		text += fmt.Sprintf("  %s USD beyond", s.ValueOverage)
	}
	_, err := fmt.Fprintf(to, "%s  expires %s\n", text, moment(s.ExpiresAt))
	return err
}
