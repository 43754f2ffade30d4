package web

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// CheckFraming refuses requests that two HTTP parsers could read differently, and credentials in trailers or given twice:
// fasthttp presents a trailer as a header and takes the first of two credentials. It checks the bytes as they were sent,
// because fasthttp repairs much of them. After an error the connection is to be closed.
func CheckFraming(header *fasthttp.RequestHeader) (sent headerLines, err error) {
	if err := checkRequestTarget(header); err != nil {
		return sent, err
	}
	if protocol := header.Protocol(); !bytes.Equal(protocol, []byte("HTTP/1.1")) && !bytes.Equal(protocol, []byte("HTTP/1.0")) {
		return sent, Invalid("", "the protocol must be HTTP/1.1 or HTTP/1.0")
	}
	if host := header.Host(); len(host) > 0 && !IsAuthority(host) {
		return sent, Invalid("", "the header Host must be a host, and a port or none")
	}
	sent, ok := readHeaderLines(header.RawHeaders())
	switch {
	case !ok:
		return sent, Invalid("", "header lines must not be folded, must end in CR LF, and their names hold no space")
	case sent.authorizations > 1:
		return sent, Invalid("", "the header "+fasthttp.HeaderAuthorization+" must be given once")
	case sent.apiKeys > 1:
		return sent, Invalid("", "the header "+headerAPIKey+" must be given once")
	case sent.expectsOther:
		return sent, ErrExpectation
	case sent.transferEncoding:
		return sent, checkTransferEncoding(header)
	}
	return sent, nil
}

// headerLines is what the framing depends on in the header lines as they were sent, and how many proofs there are.
type headerLines struct {
	authorizations, apiKeys, proofs int

	transferEncoding bool
	expectsOther     bool // than 100-continue
	close            bool // in any spelling (RFC 9110 §7.6.1); fasthttp knows one
}

// readHeaderLines returns false when a line is malformed or folded.
func readHeaderLines(block []byte) (sent headerLines, plain bool) {
	for line := range bytes.Lines(block) {
		name, value, found := bytes.Cut(line, []byte(":"))
		if line[0] == ' ' || line[0] == '\t' || !bytes.HasSuffix(line, []byte("\r\n")) || found && bytes.IndexByte(name, ' ') >= 0 {
			return sent, false
		}
		if found {
			sent.note(name, value)
		}
	}
	return sent, true
}

func (h *headerLines) note(name, value []byte) {
	switch {
	case isNamed(name, fasthttp.HeaderAuthorization):
		h.authorizations++
	case isNamed(name, headerAPIKey):
		h.apiKeys++
	case isNamed(name, headerProof):
		h.proofs++
	case isNamed(name, fasthttp.HeaderTransferEncoding):
		h.transferEncoding = true
	case isNamed(name, fasthttp.HeaderExpect):
		h.expectsOther = h.expectsOther || !isContinue(bytes.TrimSpace(value))
	case isNamed(name, fasthttp.HeaderConnection):
		for option := range bytes.SplitSeq(value, []byte(",")) {
			h.close = h.close || bytes.EqualFold(bytes.TrimSpace(option), []byte("close"))
		}
	}
}

// checkTransferEncoding accepts only plain chunked, which some clients always send. It checks the headers as they were
// sent: fasthttp turns an empty chunked body, and identity, into Content-Length: 0.
func checkTransferEncoding(header *fasthttp.RequestHeader) error {
	sent := headerCounts(header.RawHeaders())
	switch {
	case !isChunked(header.RawHeaders()):
		return Invalid("", "of the transfer encodings only chunked is accepted")
	case sent[fasthttp.HeaderContentLength] > 0:
		return Invalid("", "Content-Length and Transfer-Encoding exclude each other")
	case sent[fasthttp.HeaderTrailer] > 0:
		return Invalid("", "trailers are not accepted")
	}
	for name := range header.All() {
		if sent[string(name)]--; sent[string(name)] < 0 && string(name) != fasthttp.HeaderContentLength {
			return Invalid("", "trailers are not accepted")
		}
	}
	return nil
}
