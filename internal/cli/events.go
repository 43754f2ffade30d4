package cli

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"os"
	"strconv"
	"syscall"

	"remit/client"
)

type events struct {
	asEither
	Of     string             `arg:"" optional:"" name:"agent-id" help:"The agent's id. Without it, an API key prints the events of all agents."`
	After  string             `env:"-" placeholder:"ID" help:"Start after the event with this id, or among the events of all agents after this seq. The default is the oldest event kept."`
	Types  []client.EventType `env:"-" placeholder:"TYPE,…" help:"Only events of these types, of all agents; repeatable."`
	Follow bool               `env:"-" short:"f" help:"Wait for new events until interrupted."`
}

// Help is appended to the command's help.
func (c *events) Help() string {
	return "Prints one line per event, oldest first. With --json it prints one JSON array, or with --follow one JSON document per " +
		"event. --follow goes on after a break of the connection; after an interruption, go on with --after and the last ID or SEQ."
}

var (
	errOtherAgent = errors.New("an agent can read only its own events")
	errNotSeq     = errors.New("--after is a seq, a whole number, unless the agent is named")
	errTypes      = errors.New("--types is for the events of all agents: name no agent")
)

// Run prints events.
func (c *events) Run() error {
	if c.Follow {
		return c.callUntil(client.Options{}, c.follow, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	}
	return c.call(func(ctx context.Context, s sessions) error {
		if c.isOfAll(s) {
			after, err := c.sequence()
			if err != nil {
				return err
			}
			return list(c.Output, asWritten(s.everything.ListAllEvents(ctx, after, c.Types...)), headOfAll, cellsOfAll)
		}
		return list(c.Output, c.ofAgent(ctx, s, c.After, false), "OCCURRED\tTYPE\tACTOR\tSESSION\tDATA", cellsOfEvent)
	})
}

// isOfAll reports whether to print the events of all agents.
func (c *events) isOfAll(s sessions) bool { return c.Of == "" && s.everything != nil }

func (c *events) ofAgent(ctx context.Context, s sessions, after string, follow bool) iter.Seq2[client.Event, error] {
	if len(c.Types) > 0 {
		return each[client.Event](nil, errTypes)
	}
	return s.events(ctx, c.Of, after, follow)
}

// sequence returns the number of the event to start after.
func (c *events) sequence() (int64, error) {
	if c.After == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(c.After, 10, 64)
	if err != nil || n < 0 {
		return 0, errNotSeq
	}
	return n, nil
}

// follow prints events until a signal interrupts it.
func (c *events) follow(ctx context.Context, s sessions) error {
	if c.isOfAll(s) {
		return c.followAll(ctx, s.everything)
	}
	return c.followAgent(ctx, s)
}

// followAll prints the events so far, or fails at once, and then waits for more as long as it takes.
func (c *events) followAll(ctx context.Context, o *client.Organization) error {
	after, err := c.sequence()
	if err != nil {
		return err
	}
	last, err := printEach(c.Output, asWritten(o.ListAllEvents(ctx, after, c.Types...)), cellsOfAll)
	if err != nil {
		return err
	}
	_, err = printEach(c.Output, asWritten(o.AllEvents(ctx, max(after, last.Sequence), c.Types...)), cellsOfAll)
	return err
}

// followAgent does the same with an agent's audit trail.
func (c *events) followAgent(ctx context.Context, s sessions) error {
	last, err := printEach(c.Output, c.ofAgent(ctx, s, c.After, false), cellsOfEvent)
	if err != nil {
		return err
	}
	_, err = printEach(c.Output, c.ofAgent(ctx, s, cmp.Or(last.ID, c.After), true), cellsOfEvent)
	return err
}

// printEach prints each element when it comes, and returns the last.
func printEach[T any](o Output, elements iter.Seq2[T, error], row func(T) []string) (last T, err error) {
	for element, err := range elements {
		switch {
		case err != nil:
		case o.JSON:
			err = writeJSON(os.Stdout, element)
		default:
			err = writeTable(os.Stdout, [][]string{row(element)})
		}
		if err != nil {
			return last, err
		}
		last = element
	}
	return last, nil
}

func cellsOfEvent(e client.Event) []string {
	return []string{moment(e.OccurredAt), string(e.Type), e.Actor.Type, e.SessionID, string(e.Data)}
}

// writtenEvent is an event of the organization. As JSON it is what the service wrote, with members that the SDK does not know.
type writtenEvent struct{ client.OrganizationEvent }

// MarshalJSON implements json.Marshaler.
func (e writtenEvent) MarshalJSON() ([]byte, error) { return e.JSON, nil }

func asWritten(found iter.Seq2[client.OrganizationEvent, error]) iter.Seq2[writtenEvent, error] {
	return func(yield func(writtenEvent, error) bool) {
		for e, err := range found {
			if !yield(writtenEvent{e}, err) {
				return
			}
		}
	}
}

const headOfAll = "SEQ\tOCCURRED\tTYPE\tAGENT\tACTOR\tSESSION\tDATA"

func cellsOfAll(e writtenEvent) []string {
	return []string{
		strconv.FormatInt(e.Sequence, 10), moment(e.OccurredAt), string(e.Type), dashed(e.AgentID), e.Actor.Type, dashed(e.SessionID), string(e.Data),
	}
}
