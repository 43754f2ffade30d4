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

// pollTime bounds a poll of a session after the first response. It is short, so that watch soon reports that the service is away.
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
	return watch(&c.asEither, c.Interval, drawSession, writeLine, func(ctx context.Context, s sessions) (client.SessionInfo, bool, error) {
		info, err := s.get(ctx, c.ID)
		return info, info.Status != "active", err
	})
}

// watch shows what read returns, until that is over or a signal ends it.
func watch[T any](
	e *asEither, interval time.Duration, draw func(seen[T], style) []line, write func(io.Writer, seen[T]) error,
	read func(context.Context, sessions) (value T, over bool, err error),
) error {
	once := client.Options{MaxAttempts: 1} // because follow retries, and shows that it does
	return e.callUntil(once, func(ctx context.Context, s sessions) error {
		show, end := display(e.Output, draw, write)
		defer end()
		return follow(ctx, interval, func(ctx context.Context) (T, bool, error) { return read(ctx, s) }, e.explain, show)
	}, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
}

// callUntil is call until one of the signals ends it, and so has no deadline.
func (e *asEither) callUntil(options client.Options, operation func(context.Context, sessions) error, signals ...os.Signal) error {
	remit, err := e.client(options)
	if err != nil {
		return err
	}
	s, err := e.sessions(remit)
	if err != nil {
		return e.explain(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	err = operation(ctx, s)
	if ctx.Err() != nil {
		return errInterrupted
	}
	return e.explain(err)
}

// display returns a function that shows what was seen, and one that ends it: in a terminal it draws, otherwise it writes changes and
// reports on standard error that the service is away.
func display[T any](o Output, draw func(seen[T], style) []line, write func(io.Writer, seen[T]) error) (show func(seen[T]) error, end func()) {
	switch {
	case o.JSON:
		write = func(to io.Writer, v seen[T]) error { return writeJSON(to, v.value) }
	case isTerminal(os.Stdout):
		s := newScreen(os.Stdout)
		return func(v seen[T]) error { return s.draw(func(style style) []line { return draw(v, style) }) }, s.close
	}
	var away outage
	var last T
	return func(v seen[T]) error {
		away.note(os.Stderr, v.away)
		if reflect.DeepEqual(v.value, last) {
			return nil
		}
		last = v.value
		return write(os.Stdout, v)
	}, func() {}
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
	ctx context.Context, interval time.Duration, read func(context.Context) (value T, over bool, err error), explain func(error) error,
	show func(seen[T]) error,
) error {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	var v seen[T]
	bound := callTime // as for every other command
	for known := false; ; {
		value, over, err := poll(ctx, bound, read)
		v.now = time.Now()
		switch {
		case ctx.Err() != nil:
			return errInterrupted
		case err == nil:
			v.value, v.away, known, bound = value, "", true, pollTime
		case !known || !isTransient(err):
			return err
		case v.away == "":
			v.away = fmt.Sprintf("since %s: %s", v.now.Format(time.TimeOnly), explain(err))
		}
		if failed := show(v); failed != nil || err == nil && over {
			return failed
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return errInterrupted
		}
	}
}

func poll[T any](ctx context.Context, bound time.Duration, read func(context.Context) (T, bool, error)) (T, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
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

// writeLine writes the session as a line of text.
func writeLine(to io.Writer, v seen[client.SessionInfo]) error {
	s := v.value
	text := fmt.Sprintf("%s  %s  actions %d/%d  value %s", moment(v.now), printable(statusOf(s)), s.ActionCount, s.MaxActions, valueOf(s))
	if s.ValueOverage > 0 {
		text += fmt.Sprintf("  %s USD beyond", s.ValueOverage)
	}
	_, err := fmt.Fprintf(to, "%s  expires %s\n", text, moment(s.ExpiresAt))
	return err
}
