package server

import (
	"errors"
	"net"
)

// A TLS client at a plain port sends its greeting and waits, and so do others. There is seldom a line end in what they
// send, so fasthttp would wait for one until the read timeout. The first byte tells enough: after it nothing is read, and
// fasthttp answers what it has.

var errForeign = errors.New("the first byte is none of HTTP")

// plainListener marks connections of the listener below as such that HTTP is expected on.
type plainListener struct{ net.Listener }

func (l plainListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if c, ok := accepted.(*connection); ok {
		c.plain = true
	}
	return accepted, err
}

// startsRequest says whether a request can start with the byte: a method's, or that of an empty line before it.
func startsRequest(first byte) bool {
	return first > ' ' && first <= '~' || first == '\r' || first == '\n'
}
