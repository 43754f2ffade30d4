package conn

import (
	"net"
	"os"
	"syscall"
)

// lateConnections accepts at most limit of the connections in the listener's backlog, then closes it. The kernel would reset
// them, although their clients may have sent a request. Without the limit, new connections could keep it accepting forever.
func lateConnections(l net.Listener, limit int) []net.Conn {
	defer l.Close()
	socket, ok := l.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	var late []net.Conn
	_ = raw.Control(func(fd uintptr) { // an error means that the listener is closed already
		for range limit {
			accepted, _, err := syscall.Accept(int(fd))
			if err != nil {
				return
			}
			file := os.NewFile(uintptr(accepted), "accepted")
			if conn, err := net.FileConn(file); err == nil {
				late = append(late, conn)
			}
			_ = file.Close()
		}
	})
	return late
}
