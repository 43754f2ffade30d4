package server

import (
	"io"
	"sync"
	"syscall"
)

// A plain connection between two requests holds no buffer: fasthttp asks for one byte then, and takes buffers when it
// comes (ReduceMemoryUsage). Asking the kernel for that one byte alone would cost every request a system call more. So a whole
// buffer is read when there is something to read, and what was not asked for yet is given next.

const readAheadSize = 4 << 10 // bytes; most requests fit

var readAheads = sync.Pool{New: func() any { return new([readAheadSize]byte) }}

// readAhead is what was read from a connection and not given yet.
type readAhead struct {
	socket syscall.RawConn
	try    func(fd uintptr) bool // made once, not for each wait

	buffer *[readAheadSize]byte // nil when there is nothing
	rest   []byte
	failed error
}

// newReadAhead returns nil for what has no socket.
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

func (r *readAhead) holds() bool { return r != nil && r.buffer != nil }

// give moves bytes to who asked, and frees the buffer with the last.
func (r *readAhead) give(to []byte) int {
	n := copy(to, r.rest)
	if r.rest = r.rest[n:]; len(r.rest) == 0 {
		readAheads.Put(r.buffer)
		r.buffer, r.rest = nil, nil
	}
	return n
}

// fill waits until the socket has something, then reads it. While it waits it holds no buffer. Errors are as net.Conn's:
// io.EOF, os.ErrDeadlineExceeded, net.ErrClosed or the system's.
func (r *readAhead) fill() error {
	if err := r.socket.Read(r.try); err != nil {
		return err
	}
	return r.failed
}

// fillNow reads what the socket has, and returns io.EOF when it has nothing.
func (r *readAhead) fillNow() error {
	if err := r.socket.Control(func(fd uintptr) { r.try(fd) }); err != nil {
		return err
	}
	if !r.holds() {
		return io.EOF
	}
	return nil
}

// tryOnce returns false when there is nothing to read yet.
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
