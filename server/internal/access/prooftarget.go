package access

import (
	"bytes"
	"cmp"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/server/internal/web"
)

// aimProof says for which method and URL the proof of a request must have been made: those that its client sees. They are the
// request's own, with the scheme and host that a trusted proxy tells, or with those of the issuer. Behind a trusted proxy, which
// asks verify or authorize, they are those of the request that it asks about. ProofHosts bound what the request may say of its host.
func (g *Guard) aimProof(ctx *fasthttp.RequestCtx, v *TokenCache, use *token.ProofUse) error {
	path := string(ctx.URI().PathOriginal())
	use.Method, use.Now = string(ctx.Method()), time.Now()
	proxied := g.Front.Proxies.Include(g.Front.Proxies.Client(ctx.RemoteAddr(), nil))
	origin := origin{"http", string(ctx.Request.Header.Host())}
	if g.OverTLS {
		origin.scheme = "https"
	}
	if proxied {
		origin.forward(ctx)
	}
	if proxied && isSubrequestPath(path) {
		original, err := readOriginal(ctx, path)
		if err != nil {
			return err
		}
		if original.method != "" {
			use.Method = original.method
		}
		at, path := original.at(origin)
		if !g.ProofHosts.allow(at.scheme, at.host) {
			return &ProofError{401, errProofHost}
		}
		if at.host != "" {
			use.URLs = []string{token.ProofURL(at.scheme, at.host, path)}
		}
		return nil
	}
	use.URLs = make([]string, 0, 2)
	if g.ProofHosts.allow(origin.scheme, origin.host) {
		use.URLs = append(use.URLs, token.ProofURL(origin.scheme, origin.host, path))
	}
	if v.base != "" {
		use.URLs = append(use.URLs, v.base+path)
	}
	return nil
}

// origin is where the client has sent a request.
type origin struct{ scheme, host string }

// forward takes what a trusted proxy tells of it.
func (o *origin) forward(ctx *fasthttp.RequestCtx) {
	if scheme := strings.ToLower(lastForwarded(ctx, "X-Forwarded-Proto")); scheme == "http" || scheme == "https" {
		o.scheme = scheme
	}
	if host := lastForwarded(ctx, "X-Forwarded-Host"); web.IsAuthority([]byte(host)) {
		o.host = host
	}
}

// lastForwarded returns what the nearest proxy wrote: it appends to what it got, if it does not replace it.
func lastForwarded(ctx *fasthttp.RequestCtx, name string) string {
	lines := ctx.Request.Header.PeekAll(name)
	if len(lines) == 0 {
		return ""
	}
	last := lines[len(lines)-1]
	return string(bytes.TrimSpace(last[bytes.LastIndexByte(last, ',')+1:]))
}

// original is the request that a proxy asks about.
type original struct{ method, target string }

// readOriginal reads it from the headers X-Forwarded-Method and -Uri, or X-Original-Method and -Uri or -Url, or from the path that
// Envoy appends; if there is none of these, the request is about itself. It refuses several at once: a proxy sets its own and
// could pass the others on from its client, who would so choose what the proof is compared with.
func readOriginal(ctx *fasthttp.RequestCtx, path string) (original, error) {
	var err error
	read := func(name string) string {
		lines := ctx.Request.Header.PeekAll(name) // valid until the next Peek
		if len(lines) > 1 {
			err = &ProofError{401, errTwoOriginals}
		}
		if len(lines) == 0 {
			return ""
		}
		return string(lines[0])
	}
	forwarded := original{read("X-Forwarded-Method"), read("X-Forwarded-Uri")}
	method, uri, url := read("X-Original-Method"), read("X-Original-Uri"), read("X-Original-Url")
	o := original{method, cmp.Or(uri, url)}
	if forwarded != (original{}) && o != (original{}) || uri != "" && url != "" {
		err = &ProofError{401, errTwoOriginals}
	}
	if forwarded != (original{}) {
		o = forwarded
	}
	if o.target == "" {
		o.target = behindSubrequest(path)
	}
	return o, err
}

// behindSubrequest returns what a proxy has appended to the path, the path itself for nothing.
func behindSubrequest(path string) string {
	for _, proxy := range []string{web.VerifyPath, web.AuthorizePath} {
		if below, found := strings.CutPrefix(path, proxy+"/"); found {
			return "/" + below
		}
	}
	return path
}

// at returns where the client has sent it, and its path. The target is a path, or a whole URL as nginx-ingress sends it; no origin for
// what is neither.
func (o original) at(from origin) (origin, string) {
	if strings.HasPrefix(o.target, "/") {
		path, _, _ := strings.Cut(o.target, "?")
		path, _, _ = strings.Cut(path, "#")
		return from, path
	}
	whole, err := url.Parse(o.target)
	if err != nil {
		return origin{}, ""
	}
	return origin{strings.ToLower(whole.Scheme), whole.Host}, whole.EscapedPath()
}

func isSubrequestPath(path string) bool {
	return path == web.VerifyPath || path == web.AuthorizePath || web.BelowSubrequestPath([]byte(path))
}

// baseOf returns the issuer as the beginning of a URL that proofs are compared with, "" when it is no URL.
func baseOf(issuer string) string {
	parsed, err := url.Parse(issuer)
	if err != nil || parsed.Host == "" {
		return ""
	}
	return strings.TrimSuffix(token.ProofURL(parsed.Scheme, parsed.Host, parsed.EscapedPath()), "/")
}
