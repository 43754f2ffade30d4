package conn

import (
	"io"
	"sync"
	"syscall"
)

// A plain connection that waits for its next request holds no buffer: fasthttp then reads a single byte and takes its
// buffers when that byte arrives (ReduceMemoryUsage). Reading one byte from the kernel would cost each request another
// system call, so readAhead reads a whole buffer as soon as there is data and serves the following reads from it.

const readAheadSize = 4 << 10 // bytes; most requests fit

var readAheads = sync.Pool{New: func() any { return new([readAheadSize]byte) }}

// readAhead holds the bytes that were read from a socket and not consumed yet.
type readAhead struct {
	socket syscall.RawConn
	try    func(fd uintptr) bool // tryOnce, bound once instead of for each wait

	buffer *[readAheadSize]byte // nil when it is empty
	rest   []byte
	failed error
}

// newReadAhead returns nil for a connection without a socket.
func newReadAhead(conn any) *readAhead {
	r := &readAhead{}
	if of, ok := conn.(syscall.Conn); ok {
		r.socket, _ = of.SyscallConn()
	}
	if r.socket == nil {
		return nil
	}
	r.try = r.tryOnce
	return r
}

func (r *readAhead) buffered() bool { return r != nil && r.buffer != nil }

// consume moves bytes to the caller, and frees the buffer with the last one.
func (r *readAhead) consume(to []byte) int {
	n := copy(to, r.rest)
	if r.rest = r.rest[n:]; len(r.rest) == 0 {
		readAheads.Put(r.buffer)
		r.buffer, r.rest = nil, nil
	}
	return n
}

// fill waits until the socket is readable, then reads it. It holds no buffer while it waits. Its errors are those of
// net.Conn: io.EOF, os.ErrDeadlineExceeded, net.ErrClosed or the system's.
func (r *readAhead) fill() error {
	if err := r.socket.Read(r.try); err != nil {
		return err
	}
	return r.failed
}

// fillNow reads the socket without waiting. It returns io.EOF when there is no data.
func (r *readAhead) fillNow() error {
	if err := r.socket.Control(func(fd uintptr) { r.try(fd) }); err != nil {
		return err
	}
	if !r.buffered() {
		return io.EOF
	}
	return nil
}

// tryOnce returns false when the socket has no data yet.
func (r *readAhead) tryOnce(fd uintptr) bool {
	buffer := readAheads.Get().(*[readAheadSize]byte)
	n, err := syscall.Read(int(fd), buffer[:])
	for err == syscall.EINTR {
		n, err = syscall.Read(int(fd), buffer[:])
	}
	if n > 0 {
		r.buffer, r.rest, r.failed = buffer, buffer[:n], nil
		return true
	}
	readAheads.Put(buffer)
	if err == nil {
		err = io.EOF
	}
	r.failed = err
	return err != syscall.EAGAIN
}
