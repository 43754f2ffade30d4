package web

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// checkRequestTarget refuses a request target unless it has one of the forms of RFC 9112 §3.2 that concern this server,
// with an unambiguous path. It checks the target as it was sent: fasthttp drops fragments and user information, and takes
// //host/path for a path on another host.
func checkRequestTarget(header *fasthttp.RequestHeader) error {
	target := header.RequestURI()
	if len(target) == 1 && target[0] == '*' && bytes.Equal(header.Method(), []byte(fasthttp.MethodOptions)) {
		return nil
	}
	if target[0] != '/' {
		ok := false
		if target, ok = behindAuthority(target); !ok {
			return Invalid("", "the target must be a path, or a URL of http or https with a host and no user")
		}
	}
	path, _, _ := bytes.Cut(target, []byte("?"))
	switch {
	case BelowSubrequestPath(path):
		return nil
	case !plainPath(path):
		return Invalid("", "the path must be written plainly: no %, // or ..")
	case bytes.IndexByte(target, '#') >= 0:
		return Invalid("", "the target must have no fragment")
	}
	return nil
}

// behindAuthority returns the path and query of a target in absolute form.
func behindAuthority(target []byte) ([]byte, bool) {
	scheme, rest, _ := bytes.Cut(target, []byte("://"))
	if !bytes.EqualFold(scheme, []byte("http")) && !bytes.EqualFold(scheme, []byte("https")) {
		return nil, false
	}
	end := bytes.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	return rest[end:], IsAuthority(rest[:end])
}

func plainPath(path []byte) bool {
	return bytes.IndexByte(path, '%') < 0 && !bytes.Contains(path, []byte("//")) && !bytes.Contains(path, []byte(".."))
}

// IsAuthority reports whether the text is a host name or address with an optional port. It is stricter than RFC 3986: no
// percent-encoding and no punctuation in names.
func IsAuthority(text []byte) bool {
	host, port := text, []byte(nil)
	if colon := bytes.LastIndexByte(text, ':'); colon > bytes.LastIndexByte(text, ']') {
		host, port = text[:colon], text[colon+1:]
	}
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
	}
	if inside, ok := bytes.CutPrefix(host, []byte("[")); ok {
		inside, ok = bytes.CutSuffix(inside, []byte("]"))
		return ok && len(inside) > 0 && consistsOf(inside, isAddressByte)
	}
	return len(host) > 0 && consistsOf(host, isNameByte)
}

func consistsOf(text []byte, allowed func(byte) bool) bool {
	for _, c := range text {
		if !allowed(c) {
			return false
		}
	}
	return true
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

func isAddressByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' || c == ':' || c == '.'
}

// Proxies (nginx auth_request, Traefik ForwardAuth, Envoy ext_authz) send a subrequest here before they forward a request,
// and understand 2xx, 401 and 403. Envoy keeps the method of the request and appends its path: whatever follows these
// paths, and the query there, comes from the client and is ignored.
const (
	VerifyPath    = "/v1/auth/verify"
	AuthorizePath = "/v1/auth/authorize"
)

// BelowSubrequestPath reports whether a proxy has appended a path.
func BelowSubrequestPath(path []byte) bool {
	return bytes.HasPrefix(path, []byte(VerifyPath+"/")) || bytes.HasPrefix(path, []byte(AuthorizePath+"/"))
}
