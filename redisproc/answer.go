package redisproc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	startLimit  = 10 * time.Second
	answerLimit = 100 * time.Millisecond
	pollPause   = 5 * time.Millisecond
)

var errSilent = errors.New("no answer within 10 s")

// waitUntilItAnswers returns nil once the server answers, or else why it does
// not: the process ended, the context did, or 10 s passed.
func (s *Server) waitUntilItAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, errSilent)
	defer cancel()
	pause := time.NewTicker(pollPause)
	defer pause.Stop()
	for !answers(s.socket()) {
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

// answers reports whether a PING gets any reply: PONG, or an error such as
// LOADING, which a large append-only file may keep up for minutes. It dials anew
// and bare, as a client's pool would slow down and log after the first refusals.
func answers(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, answerLimit)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(answerLimit))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	n, _ := conn.Read(make([]byte, 1))
	return n == 1
}
