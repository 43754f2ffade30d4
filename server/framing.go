package server

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// checkFraming refuses requests that two HTTP parsers could read in two ways, and those whose credentials did not stand
// before the body: fasthttp shows a trailer as a header, and takes the first of two credentials.
func checkFraming(ctx *fasthttp.RequestCtx) error {
	header := &ctx.Request.Header
	path := ctx.URI().PathOriginal()
	target := header.RequestURI()
	if !plainTarget(target, path) || !behindGatewayPath(path) && (!plainPath(path) || bytes.IndexByte(target, '#') >= 0) {
		return invalid("", "the path must be written plainly: no %, #, // or ..")
	}
	if protocol := header.Protocol(); !bytes.Equal(protocol, []byte("HTTP/1.1")) && !bytes.Equal(protocol, []byte("HTTP/1.0")) {
		return invalid("", "the protocol must be HTTP/1.1 or HTTP/1.0")
	}
	for _, name := range []string{fasthttp.HeaderAuthorization, headerAPIKey} {
		if len(header.PeekAll(name)) > 1 {
			return invalid("", "the header "+name+" must be given once")
		}
	}
	if !plainHeaders(header.RawHeaders()) {
		return invalid("", "header lines must not be folded, and end in CR LF")
	}
	if countHeader(header.RawHeaders(), fasthttp.HeaderTransferEncoding) > 0 {
		return checkTransferEncoding(header)
	}
	return nil
}

func plainHeaders(block []byte) bool {
	for line := range bytes.Lines(block) {
		if line[0] == ' ' || line[0] == '\t' || !bytes.HasSuffix(line, []byte("\r\n")) {
			return false
		}
	}
	return true
}

// plainTarget says whether the path that fasthttp has read is the one that was sent: in origin form all up to the query, in
// absolute form what stands behind the host. Of //host/path?:// it takes the host for one, which others count to the path.
func plainTarget(target, path []byte) bool {
	if end := bytes.IndexAny(target, "?#"); end >= 0 {
		target = target[:end]
	}
	if bytes.HasPrefix(target, []byte("/")) {
		return bytes.Equal(target, path)
	}
	scheme, _, found := bytes.Cut(target, []byte("://"))
	return found && (bytes.EqualFold(scheme, []byte("http")) || bytes.EqualFold(scheme, []byte("https")))
}

func plainPath(path []byte) bool {
	return bytes.IndexByte(path, '%') < 0 && !bytes.Contains(path, []byte("//")) && !bytes.Contains(path, []byte(".."))
}

// checkTransferEncoding accepts plain chunked, which some clients always send, and nothing beside it. It goes by the
// headers as they were sent: fasthttp turns an empty chunked body, and identity, into Content-Length: 0.
func checkTransferEncoding(header *fasthttp.RequestHeader) error {
	sent := headerCounts(header.RawHeaders())
	switch {
	case !isChunked(header.RawHeaders()):
		return invalid("", "of the transfer encodings only chunked is accepted")
	case sent[fasthttp.HeaderContentLength] > 0:
		return invalid("", "Content-Length and Transfer-Encoding exclude each other")
	case sent[fasthttp.HeaderTrailer] > 0:
		return invalid("", "trailers are not accepted")
	}
	for name := range header.All() {
		if sent[string(name)]--; sent[string(name)] < 0 && string(name) != fasthttp.HeaderContentLength {
			return invalid("", "trailers are not accepted")
		}
	}
	return nil
}

func isChunked(block []byte) bool {
	for line := range bytes.Lines(block) {
		if name, value, _ := bytes.Cut(line, []byte(":")); isNamed(name, fasthttp.HeaderTransferEncoding) {
			return bytes.EqualFold(bytes.TrimSpace(value), []byte("chunked"))
		}
	}
	return false
}

// countHeader returns how often a header stands in a block.
func countHeader(block []byte, wanted string) int {
	count := 0
	for line := range bytes.Lines(block) {
		if name, _, found := bytes.Cut(line, []byte(":")); found && isNamed(name, wanted) {
			count++
		}
	}
	return count
}

// isNamed compares without regard to case, the lengths first: it sees every header of every request.
func isNamed(name []byte, wanted string) bool {
	return len(name) == len(wanted) && bytes.EqualFold(name, []byte(wanted))
}

// headerCounts returns how often each name stands in a block, in canonical form.
func headerCounts(block []byte) map[string]int {
	counts := map[string]int{}
	for line := range bytes.Lines(block) {
		if name, _, found := bytes.Cut(line, []byte(":")); found {
			counts[string(fasthttp.AppendNormalizedHeaderKeyBytes(nil, name))]++
		}
	}
	return counts
}
