package server

import (
	"bytes"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// checkFraming refuses requests that two HTTP parsers could read in two ways, and those whose credentials did not stand
// before the body: fasthttp shows a trailer as a header, and takes the first of two credentials.
func checkFraming(ctx *fasthttp.RequestCtx) error {
	header := &ctx.Request.Header
	path := ctx.URI().PathOriginal()
	if !behindGatewayPath(path) && !plainPath(path) {
		return invalid("", "the path must be written plainly: no %, // or ..")
	}
	if protocol := header.Protocol(); !bytes.Equal(protocol, []byte("HTTP/1.1")) && !bytes.Equal(protocol, []byte("HTTP/1.0")) {
		return invalid("", "the protocol must be HTTP/1.1 or HTTP/1.0")
	}
	for _, name := range []string{fasthttp.HeaderAuthorization, headerAPIKey} {
		if len(header.PeekAll(name)) > 1 {
			return invalid("", "the header "+name+" must be given once")
		}
	}
	if header.ContentLength() < 0 || len(header.Peek(fasthttp.HeaderTransferEncoding)) > 0 {
		return checkTransferEncoding(header)
	}
	return nil
}

func plainPath(path []byte) bool {
	return bytes.IndexByte(path, '%') < 0 && !bytes.Contains(path, []byte("//")) && !bytes.Contains(path, []byte(".."))
}

// checkTransferEncoding accepts plain chunked, which some clients always send, and nothing beside it.
func checkTransferEncoding(header *fasthttp.RequestHeader) error {
	sent := headerNames(header.RawHeaders())
	if header.ContentLength() != -1 && sent[fasthttp.HeaderTransferEncoding] {
		return invalid("", "of the transfer encodings only chunked is accepted")
	}
	if sent[fasthttp.HeaderContentLength] && sent[fasthttp.HeaderTransferEncoding] {
		return invalid("", "Content-Length and Transfer-Encoding exclude each other")
	}
	if sent[fasthttp.HeaderTrailer] {
		return invalid("", "trailers are not accepted")
	}
	for name := range header.All() {
		if !sent[string(name)] {
			return invalid("", "trailers are not accepted")
		}
	}
	return nil
}

// headerNames returns the names in a header block, in canonical form.
func headerNames(block []byte) map[string]bool {
	names := map[string]bool{}
	for line := range bytes.Lines(block) {
		if name, _, found := bytes.Cut(line, []byte(":")); found {
			names[string(fasthttp.AppendNormalizedHeaderKeyBytes(nil, name))] = true
		}
	}
	return names
}

// A connection that is closed with unread bytes in it is reset, and the reset can overtake the answer. So after an
// answer to a request that was not read whole, the rest is read and thrown away, within these bounds.
const (
	lingerTime  = time.Second
	lingerBytes = 8 << 20
)

type lingeringListener struct{ net.Listener }

func (l lingeringListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &lingeringConn{Conn: conn}, nil
}

type lingeringConn struct {
	net.Conn
	unread bool // set by the goroutine that serves the connection, which is also the one that closes it
}

func (c *lingeringConn) Close() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.unread && half.CloseWrite() == nil {
		c.discard()
	}
	return c.Conn.Close()
}

func (c *lingeringConn) discard() {
	if c.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	buffer := make([]byte, 32<<10)
	for left := lingerBytes; left > 0; {
		n, err := c.Read(buffer)
		if err != nil {
			return
		}
		left -= n
	}
}
