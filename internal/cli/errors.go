package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"remit/client"
	"remit/money"
)

// errInterrupted ends a command that a signal interrupted. Report prints nothing for it.
var errInterrupted = errors.New("interrupted")

const (
	exitFailed      = 1
	exitInterrupted = 130 // 128 + SIGINT, as in a shell
)

// Report writes why a command failed, in one line, and returns the exit status: 0 for nil.
func Report(stderr io.Writer, err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	}
	fmt.Fprintln(stderr, "remit: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	return exitFailed
}

// explain rewrites an error of the SDK for people: the code, detail and request id of a response, or the address and the
// cause when there was no response.
func explain(addr string, err error) error {
	if err == nil || errors.Is(err, errInterrupted) {
		return err
	}
	var doubt string
	if errors.Is(err, client.ErrOutcomeUnknown) {
		doubt = "; it may have been done"
	}
	var p *client.Problem
	switch {
	case errors.As(err, &p):
		return errors.New(printable(describe(p, room(err)) + advice(err) + doubt))
	case doubt != "" || errors.Is(err, client.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded):
		return errors.New(printable("no response from " + addr + ": " + cause(err) + doubt))
	}
	return errors.New(printable(strings.TrimPrefix(err.Error(), "remit: ")))
}

// explainToModel is explain for a language model, which may tell anyone what it reads: it does not say where the service is.
func explainToModel(err error) error {
	var p *client.Problem
	doubt := errors.Is(err, client.ErrOutcomeUnknown)
	switch {
	case errors.As(err, &p) || !doubt && !isTransient(err):
		return explain("", err)
	case doubt:
		return errors.New("the budget cannot be reached now; it may have been done: look with get_budget before you try again")
	}
	return errors.New("the budget cannot be reached now: try again later")
}

// describe returns a problem's code, detail and what else is known of it, or the HTTP status of a response that another server sent.
func describe(p *client.Problem, more string) string {
	var text strings.Builder
	if p.Code == "" {
		fmt.Fprintf(&text, "%d %s, which is not a response of remit", p.Status, http.StatusText(p.Status))
	} else {
		text.WriteString(p.Code + ": " + p.Detail)
	}
	for _, f := range p.Fields {
		if field := strings.TrimSpace(f.Field + " " + f.Message); !strings.Contains(p.Detail, field) {
			text.WriteString("; " + field)
		}
	}
	text.WriteString(more)
	if p.RequestID != "" {
		text.WriteString(" (request " + p.RequestID + ")")
	}
	return text.String()
}

// room returns which limit refused a call, what it leaves and what the call needs; "" for any other error.
func room(err error) string {
	var limit *client.LimitReached
	var agent *client.AgentLimitReached
	var budget *client.BudgetExhausted
	switch {
	case errors.As(err, &limit):
		whose := "the session's "
		if limit.ParentSessionID != "" {
			whose = "the parent session's "
		}
		return "; " + whose + limitLeaves(limit)
	case errors.As(err, &agent):
		text := "; the agent's " + agent.Limit + " is reached"
		if !agent.ResetsAt.IsZero() {
			text += " until " + agent.ResetsAt.UTC().Format(time.RFC3339)
		}
		return text + neededOf(agent.Limit, agent.NeededActions, agent.NeededValue)
	case errors.As(err, &budget):
		return "; the budget leaves " + budget.Remaining.String() + " USD" + neededOf("max_value_usd", 0, budget.NeededValue)
	}
	return ""
}

func limitLeaves(e *client.LimitReached) string {
	needs := neededOf(e.Limit, e.NeededActions, e.NeededValue)
	switch e.Limit {
	case "max_actions":
		return fmt.Sprintf("max_actions of %d leaves %d%s", e.MaxActions, e.RemainingActions, needs)
	case "max_value_usd":
		return fmt.Sprintf("max_value_usd of %s leaves %s USD%s", e.MaxValue, e.RemainingValue, needs)
	case "max_committed_usd":
		return fmt.Sprintf("max_committed_usd leaves %s USD%s", e.RemainingValue, needs)
	}
	return e.Limit + " is reached" + needs
}

// neededOf returns how much of a limit a call needs, "" for a limit of neither actions nor value, and if the service does not say.
func neededOf(limit string, actions int64, value money.MicroUSD) string {
	switch {
	case strings.HasPrefix(limit, "max_actions") && actions > 0:
		return fmt.Sprintf("; this call needs %d", actions)
	case (strings.HasPrefix(limit, "max_value_usd") || limit == "max_committed_usd") && value > 0:
		return "; this call needs " + value.String() + " USD"
	}
	return ""
}

// advice returns what to do about a proof that is missing or refused.
func advice(err error) string {
	var proof *client.InvalidProof
	switch {
	case errors.Is(err, client.ErrDPoPRequired):
		return "; set REMIT_DPOP, or use --dpop=FILE"
	case errors.As(err, &proof) && proof.ClockSkew.Abs() > time.Minute/2:
		return "; this machine's clock is " + proof.ClockSkew.Abs().String() + " off the service's"
	}
	return ""
}

// cause returns why there was no response, without the request's URL.
func cause(err error) string {
	var network *net.OpError
	switch {
	case errors.As(err, &network):
		return network.Err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "timed out"
	}
	return strings.TrimPrefix(err.Error(), "remit: ")
}

// isTransient reports whether a later attempt may succeed.
func isTransient(err error) bool {
	var p *client.Problem
	if errors.As(err, &p) {
		return p.Status >= http.StatusInternalServerError || p.Status == http.StatusTooManyRequests
	}
	return errors.Is(err, client.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}
