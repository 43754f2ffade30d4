package service

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"remit/test/serviceproc"
)

// startWithASlowClient runs remit with a client that has sent half a request, and sends SIGTERM.
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
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAStopDelayedByASlowClientSucceeds(t *testing.T) {
	t.Parallel()
	p := startWithASlowClient(t)
	select {
	case <-p.Done():
		if err := p.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("it does not end")
	}
	if log := p.Stderr(); !strings.Contains(log, "stopped before all clients were done") ||
		!strings.Contains(log, "1 connections are cut") {
		t.Errorf("the log says %s", log)
	}
}

// Before it is ready the service has only answered 503: it must not wait for clients, which retry elsewhere anyway.
func TestAStopDuringTheStartDoesNotWaitForClients(t *testing.T) {
	t.Parallel()
	listen := "127.0.0.1:" + freePort(t)
	p := start(t, []string{"REMIT_REDIS_URL=redis://127.0.0.1:" + freePort(t), "REMIT_LISTEN=" + listen})
	var conn net.Conn
	waitFor(t, func() (connected bool) {
		var err error
		conn, err = net.Dial("tcp", listen)
		return err == nil
	})
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // it serves, so it handles signals
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHo"); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if log := p.Stderr(); strings.Contains(log, "stopping") || strings.Contains(log, "stopped before") {
		t.Errorf("it waited for clients: %s", log)
	}
}

func TestASecondSignalEndsTheProcessImmediately(t *testing.T) {
	t.Parallel()
	p := startWithASlowClient(t)
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		select {
		case <-p.Done():
			err := p.Wait()
			exit := &exec.ExitError{}
			if !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
				t.Errorf("it ended with %v, not by the signal", err)
			}
			return
		case <-time.After(20 * time.Millisecond):
			_ = p.Signal(syscall.SIGTERM)
		}
	}
	t.Error("it does not end")
}

func TestCtrlCEndsMakeRunWithSuccess(t *testing.T) {
	t.Parallel()
	makeRun := exec.Command("make", "--no-print-directory", "run")
	makeRun.Dir = "../.."
	makeRun.Env = append(os.Environ(), "REMIT_LISTEN=127.0.0.1:0", "REMIT_DATA_DIR="+t.TempDir())
	terminal, err := pty.Start(makeRun)
	if err != nil {
		t.Fatal(err)
	}
	shown := new(serviceproc.Output)
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(shown, terminal) // ends with an error once make has ended
	}()
	t.Cleanup(func() {
		_ = makeRun.Process.Kill() // fails when it has ended
		_ = terminal.Close()
		<-read
	})
	listens := func() bool { return strings.Contains(shown.String(), "msg=listening") }
	for deadline := time.Now().Add(3 * time.Minute); !listens() && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond) // until it is built and serves
	}
	if _, err := terminal.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if err := makeRun.Wait(); err != nil || !strings.Contains(shown.String(), "stopping") {
		t.Errorf("it ends with %v:\n%s", err, shown)
	}
}
