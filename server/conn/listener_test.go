package conn

import (
	"errors"
	"net"
	"os"
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
	if _, err := newSet().Listen(inner).Accept(); !errors.Is(err, net.ErrClosed) || len(inner.refusals) != 0 {
		t.Errorf("it ended with %v, %d refusals before the end", err, len(inner.refusals))
	}
}
