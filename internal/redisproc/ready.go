package redisproc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	startLimit = 10 * time.Second
	replyLimit = 100 * time.Millisecond
	pollPause  = 5 * time.Millisecond
)

var errSilent = errors.New("no reply within 10 s")

// waitUntilReady waits until the server replies. It returns an error when the
// process or the context ends first, or after 10 s.
func (s *Server) waitUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, errSilent)
	defer cancel()
	err := poll(ctx, pollPause, func() (bool, error) {
		select {
		case <-s.done:
			return false, errEnded
		default:
			return replies(s.socket()), nil
		}
	})
	switch {
	case errors.Is(err, errEnded):
		return fmt.Errorf("%w: %v%s", errEnded, s.cmd.ProcessState, s.output)
	case err != nil:
		return fmt.Errorf("redisproc: start of redis-server: %w", err)
	}
	return nil
}

// poll returns when the condition holds, with its error, or with the cause of the
// context's end. It pauses after each time that it does not hold.
func poll(ctx context.Context, pause time.Duration, holds func() (bool, error)) error {
	pauses := time.NewTicker(pause)
	defer pauses.Stop()
	for {
		if is, err := holds(); is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-pauses.C:
		}
	}
}

// replies reports whether a PING gets any reply: PONG, or an error such as LOADING,
// which a large append-only file can cause for minutes. It uses no client, because
// a client's pool slows down and logs after the first refusals.
func replies(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, replyLimit)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(replyLimit))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	n, _ := conn.Read(make([]byte, 1))
	return n == 1
}
