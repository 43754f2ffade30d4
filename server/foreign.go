package server

import "errors"

// A TLS client at a plain port sends its greeting and waits, and so do others. There is seldom a line end in what they
// send, so fasthttp would wait for one until the read timeout. The first byte tells enough: after it nothing is read, and
// fasthttp answers what it has.

var errForeign = errors.New("the first byte is none of HTTP")

// startsRequest says whether a request can start with the byte: a method's, or that of an empty line before it.
func startsRequest(first byte) bool {
	return first > ' ' && first <= '~' || first == '\r' || first == '\n'
}
