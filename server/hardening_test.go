package server

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// fullListener has no room at first.
type fullListener struct {
	net.Listener
	refusals []error
}

func (l *fullListener) Accept() (net.Conn, error) {
	if len(l.refusals) == 0 {
		return nil, net.ErrClosed
	}
	err := l.refusals[0]
	l.refusals = l.refusals[1:]
	return nil, err
}

func TestAcceptingOutlastsAFullProcess(t *testing.T) {
	t.Parallel()
	full := &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	inner := &fullListener{refusals: []error{full, full, syscall.ECONNABORTED,
		syscall.EPROTO, syscall.ENETDOWN, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EOPNOTSUPP, syscall.EPERM}}
	if _, err := newOpenConnections(Config{}).listen(inner).Accept(); !errors.Is(err, net.ErrClosed) || len(inner.refusals) != 0 {
		t.Errorf("it ended with %v, %d refusals before the end", err, len(inner.refusals))
	}
}

func TestAnAnswerNamesAFewOfManyFaults(t *testing.T) {
	t.Parallel()
	var v validation
	for range 10_000 {
		v.add("field", "is wrong")
	}
	if len(v.fields) != maxFieldErrors {
		t.Errorf("%d faults are named", len(v.fields))
	}
	var scopes validation
	scopes.scopes(strings.Split(strings.Repeat("\x00,", 100_000), ","))
	if len(scopes.fields) != 1 {
		t.Errorf("%d faults of too many scopes are named", len(scopes.fields))
	}
}

func TestADefaultOfNoValueIsKept(t *testing.T) {
	t.Parallel()
	if d := (SessionDefaults{MaxActions: 5, Lifetime: 1}).filled(); d.MaxValue != 0 || d.MaxActions != 5 {
		t.Errorf("%+v", d)
	}
}
