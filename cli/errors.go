package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"remit/client"
)

// errInterrupted ends a command that somebody interrupted. There is nothing to say about it.
var errInterrupted = errors.New("interrupted")

const (
	exitFailed      = 1
	exitInterrupted = 130 // as of a shell's command that SIGINT ended
)

// Report writes why a command failed, in one line, and returns the status to exit with. nil is success.
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

// explain words an error of the SDK: the code, the detail and the request id of an answer, or else what kept the answer
// from coming, and from where.
func (s *service) explain(err error) error {
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
		return errors.New(printable(describe(p) + doubt))
	case doubt != "" || errors.Is(err, client.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded):
		return errors.New(printable("no answer from " + s.Addr + ": " + cause(err) + doubt))
	}
	return errors.New(printable(strings.TrimPrefix(err.Error(), "remit: ")))
}

// describe is the code of a problem, or what stands for it in an answer that is not the service's own, and its words.
func describe(p *client.Problem) string {
	var text strings.Builder
	if p.Code == "" {
		fmt.Fprintf(&text, "%d %s, which is no answer of remit's", p.Status, http.StatusText(p.Status))
	} else {
		text.WriteString(p.Code + ": " + p.Detail)
	}
	for _, f := range p.Fields {
		if said := f.Field + " " + f.Message; !strings.Contains(p.Detail, said) {
			text.WriteString("; " + said)
		}
	}
	if p.RequestID != "" {
		text.WriteString(" (request " + p.RequestID + ")")
	}
	return text.String()
}

// cause is why there was no answer, without what was asked.
func cause(err error) string {
	var network *net.OpError
	switch {
	case errors.As(err, &network):
		return network.Err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it takes too long"
	}
	return strings.TrimPrefix(err.Error(), "remit: ")
}

// mayPass reports whether what kept an answer from coming may pass by itself.
func mayPass(err error) bool {
	var p *client.Problem
	if errors.As(err, &p) {
		return p.Status >= http.StatusInternalServerError || p.Status == http.StatusTooManyRequests
	}
	return errors.Is(err, client.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}
