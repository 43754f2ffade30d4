package redisproc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"remit/test/suite"
)

// parentOf names, in its environment, the data directory of a process that is
// only there to be the parent of a server.
const parentOf = "REDISPROC_TEST_PARENT_OF"

func init() {
	// Keeps the main thread, which never ends, from running any test.
	runtime.LockOSThread()
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentOf); dir != "" {
		beParent(dir)
	}
	goleak.VerifyTestMain(m)
}

// beParent starts a server, prints its socket, and never ends before it.
func beParent(dir string) {
	s, err := Start(context.Background(), Config{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.socket())
	<-s.Done()
	os.Exit(1)
}

func TestServerEndsWhenItsParentIsKilled(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: t.TempDir()}
	parent := exec.Command(os.Args[0]) // is a parent: see TestMain
	parent.Env = append(os.Environ(), parentOf+"="+cfg.Dir, "TMPDIR="+t.TempDir())
	parent.Stderr = os.Stderr
	out := must(parent.StdoutPipe())(t)
	must(0, parent.Start())(t)
	t.Cleanup(func() {
		parent.Process.Kill()
		parent.Wait()
	})
	socket := must(bufio.NewReader(out).ReadString('\n'))(t)
	conn := must(net.Dial("unix", strings.TrimSpace(socket)))(t)
	defer conn.Close()
	if _, err := Start(t.Context(), cfg); !errors.Is(err, ErrDirInUse) {
		t.Errorf("Start beside the other process: %v; want ErrDirInUse", err)
	}

	must(0, parent.Process.Kill())(t)
	conn.SetReadDeadline(time.Now().Add(stopLimit))
	if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
		io.WriteString(conn, "SHUTDOWN NOSAVE\r\n")
		t.Fatalf("the server lives on: read gives %v; want EOF", err)
	}
	start(t, cfg) // at once, although the process may still be ending
}

func TestServerOutlivesTheThreadThatCalledStart(t *testing.T) {
	t.Parallel()
	var s *Server
	var err error
	thread := make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
		s, err = Start(context.Background(), Config{})
		thread <- syscall.Gettid()
	}()
	id := <-thread
	must(s, err)(t)
	defer s.Stop()
	suite.Eventually(t, "the thread ends", func() bool { return isGone(fmt.Sprintf("/proc/self/task/%d", id)) })
	// Redis heeds a SIGTERM within 0.1 s; it ends this wait for nothing after 0.3 s.
	if err := connect(t, s).Do(t.Context(), "BLPOP", "nothing", "0.3").Err(); err != redis.Nil {
		t.Errorf("the server ended with the thread: %v", err)
	}
}

// The dynamic linker says which library it lacks: Redis writes over the environment that /proc would show.
func TestServerHasTheEnvironmentItIsGiven(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	stop(t, start(t, Config{Log: &log, Env: []string{"LD_PRELOAD=/no/such/library.so"}}))
	wantParts(t, log.String(), "/no/such/library.so")
}
