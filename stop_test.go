package main

import (
	"errors"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startWithASlowClient runs remit with a client that has sent half a request, and tells it to stop.
func startWithASlowClient(t *testing.T) *program {
	t.Helper()
	p := start(t, []string{"PATH=" + t.TempDir()}).ready(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // it is accepted
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHo"); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAStopThatASlowClientDelaysIsStillAStop(t *testing.T) {
	t.Parallel()
	p := startWithASlowClient(t)
	select {
	case err := <-p.exited:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("it does not end")
	}
	if log := p.stderr.String(); !strings.Contains(log, "stopped before every client was done") ||
		!strings.Contains(log, "1 connections are cut") {
		t.Errorf("the log says %s", log)
	}
}

func TestASecondSignalEndsItAtOnce(t *testing.T) {
	t.Parallel()
	p := startWithASlowClient(t)
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		select {
		case err := <-p.exited:
			exit := &exec.ExitError{}
			if !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
				t.Errorf("it ended with %v, not by the signal", err)
			}
			return
		case <-time.After(20 * time.Millisecond):
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	t.Error("it does not end")
}
