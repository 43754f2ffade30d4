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

// halfARequest sends half a request once another one is answered, so that the connection is accepted and signals are handled, and sends
// SIGTERM.
func (p *program) halfARequest(t *testing.T, conn net.Conn) {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	must(io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
	must(conn.Read(make([]byte, 1)))(t)
	must(io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHo"))(t)
	must(0, p.Signal(syscall.SIGTERM))(t)
}

// startWithASlowClient runs remit with a client that has sent half a request, and sends SIGTERM.
func startWithASlowClient(t *testing.T) *program {
	t.Helper()
	p := start(t, []string{"PATH=" + t.TempDir()}).ready(t)
	p.halfARequest(t, must(net.Dial("tcp", strings.TrimPrefix(p.url, "http://")))(t))
	return p
}

func TestAStopDelayedByASlowClientSucceeds(t *testing.T) {
	t.Parallel()
	p := startWithASlowClient(t)
	if err := p.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if log := p.Stderr(); !strings.Contains(log, "stopped before all clients were done") || !strings.Contains(log, "1 connections are cut") {
		t.Errorf("the log says %s", log)
	}
}

// Before it is ready the service has only answered 503: it must not wait for clients, which retry elsewhere anyway.
func TestAStopDuringTheStartDoesNotWaitForClients(t *testing.T) {
	t.Parallel()
	listen := "127.0.0.1:" + freePort(t)
	p := start(t, []string{"REMIT_REDIS_URL=redis://127.0.0.1:" + freePort(t), "REMIT_LISTEN=" + listen})
	var conn net.Conn
	becomes(t, "it listens", func() (connected bool) {
		var err error
		conn, err = net.Dial("tcp", listen)
		return err == nil
	})
	p.halfARequest(t, conn)
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
	becomes(t, "it ends", func() bool { return p.Signal(syscall.SIGTERM) != nil })
	exit := &exec.ExitError{}
	if err := p.Wait(); !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("it ended with %v, not by the signal", err)
	}
}

func TestCtrlCEndsMakeRunWithSuccess(t *testing.T) {
	t.Parallel()
	makeRun := exec.Command("make", "--no-print-directory", "run")
	makeRun.Dir = "../.."
	makeRun.Env = append(os.Environ(), "REMIT_LISTEN=127.0.0.1:0", "REMIT_DATA_DIR="+t.TempDir())
	terminal := must(pty.Start(makeRun))(t)
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
	must(terminal.Write([]byte{3}))(t)
	if err := makeRun.Wait(); err != nil || !strings.Contains(shown.String(), "stopping") {
		t.Errorf("it ends with %v:\n%s", err, shown)
	}
}
