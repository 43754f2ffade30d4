package faults

import (
	"net"
	"os"
	"testing"
	"time"

	"remit/test/suite"
)

// A pool keeps a connection that Redis has closed until it takes it. That is no leak.
func TestAConnectionThatItsServerHasClosedIsFound(t *testing.T) {
	t.Parallel()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	pooled := must(net.Dial("tcp", listener.Addr().String()))(t)
	defer pooled.Close()
	ports := []int64{int64(listener.Addr().(*net.TCPAddr).Port)}
	if n := closedByServer(os.Getpid(), ports); n != 0 {
		t.Errorf("%d before the server has closed it", n)
	}
	suite.NoError(t, must(listener.Accept())(t).Close())
	waitUntil(t, 10*time.Second, "it is found", func() bool { return closedByServer(os.Getpid(), ports) == 1 })
	if n := closedByServer(os.Getppid(), ports); n != 0 {
		t.Errorf("%d of another process", n)
	}
}
