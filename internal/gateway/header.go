package gateway

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

const (
	headerMaxTokens   = "X-Remit-Max-Tokens"
	headerWouldRefuse = "X-Remit-Would-Refuse"
	headerRequestID   = "X-Remit-Request-Id"
)

// ownHeaders are those of a request that are not passed on: they are the connection's, say who the client is or where it comes from, are
// the gateway's to set, or could make the provider take the request for another.
var ownHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Api-Key", "Authorization", "Cookie", "Dpop", "X-Api-Key",
	"Openai-Organization", "Openai-Project", "Anthropic-Organization-Id", "Anthropic-Dangerous-Direct-Browser-Access",
	"Forwarded", "Via", "X-Real-Ip", "True-Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "Origin", "Referer", "From",
	"Baggage", "Traceparent", "Tracestate", "X-Original-Url", "X-Rewrite-Url", "Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Range",
}

// ownPrefixes are those of more such headers.
var ownPrefixes = []string{"Cf-", "Proxy-", "Sec-", "X-Forwarded-", "X-Remit-", "X-Amzn-", "X-Envoy-", "X-Goog-", "X-Http-Method", "X-Method-", "X-Vertex-"}

// hiddenHeaders are those of an answer that are not passed back: they are the connection's, or say whose account it is.
var hiddenHeaders = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Alt-Svc", "Set-Cookie", "Set-Cookie2", "Strict-Transport-Security", "Www-Authenticate", "Location", "Content-Location",
	"Openai-Organization", "Openai-Project", "Anthropic-Organization-Id", "Clear-Site-Data", "Nel", "Report-To", "Server", "Traceresponse", "Via",
}

var hiddenPrefixes = []string{"Access-Control-", "Cf-", "X-Remit-"}

func isOwn(name string) bool { return isAmong(name, ownHeaders, ownPrefixes) }

// isAmong takes _ for -, as servers do that hand headers on as variables.
func isAmong(name string, names, prefixes []string) bool {
	name = textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
	return slices.Contains(names, name) || slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// sentHeader returns the header of a request to the provider: what the client says of the call itself, and the provider's key.
func (u *upstream) sentHeader(from http.Header) http.Header {
	to := passed(from, ownHeaders, ownPrefixes)
	to.Set("Accept-Encoding", "identity")
	if to.Get("Content-Type") != "" { // once, and without a charset by which a server would read another body
		to.Set("Content-Type", "application/json")
	}
	if _, has := to["User-Agent"]; !has {
		to["User-Agent"] = []string{""} // or the HTTP client sets its own
	}
	switch {
	case u.Header != "" && !strings.EqualFold(u.Header, "Authorization"):
		to.Set(u.Header, u.key())
	case u.Header != "", u.Protocol == openAI:
		to.Set("Authorization", "Bearer "+u.key())
	default:
		to.Set("X-Api-Key", u.key())
	}
	return to
}

// shownHeader sets the header of an answer to the client, without what quotes the provider's key.
func shownHeader(to, from http.Header, key mask) {
	for name, values := range passed(from, hiddenHeaders, hiddenPrefixes) {
		if !slices.ContainsFunc(values, key.isIn) {
			to[name] = values
		}
	}
}

// passed returns a copy without these headers, and those that Connection names.
func passed(from http.Header, names, prefixes []string) http.Header {
	var hops []string
	for _, value := range from.Values("Connection") {
		for name := range strings.SplitSeq(value, ",") {
			hops = append(hops, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	to := http.Header{}
	for name, values := range from {
		if !isAmong(name, names, prefixes) && !slices.Contains(hops, name) {
			to[name] = slices.Clone(values)
		}
	}
	return to
}
