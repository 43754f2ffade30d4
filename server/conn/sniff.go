package conn

import "errors"

// A client that speaks TLS to a plain port sends its ClientHello and waits; clients of other protocols do the same. Their
// bytes seldom contain a line end, so an HTTP server would wait for one until its read timeout. The first byte is enough to
// recognise them: after it Read fails, and the server answers the bytes it has.

var errNotHTTP = errors.New("the first byte cannot start an HTTP request")

// startsRequest reports whether an HTTP request can start with the byte: one of a method name, or of an empty line before
// it (RFC 9112 §2.2).
func startsRequest(first byte) bool {
	return first > ' ' && first <= '~' || first == '\r' || first == '\n'
}
