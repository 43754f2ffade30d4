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
	pause := time.NewTicker(pollPause)
	defer pause.Stop()
	for !replies(s.socket()) {
		select {
		case <-s.done:
			return fmt.Errorf("%w: %v%s", errEnded, s.cmd.ProcessState, s.output)
		case <-ctx.Done():
			return fmt.Errorf("redisproc: start of redis-server: %w", context.Cause(ctx))
		case <-pause.C:
		}
	}
	return nil
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
