package server_test

import (
	"net/url"
	"testing"
)

// A client that a proxy refuses must find the backend's metadata, not that of the service that the proxy asks.
func TestA401BehindAProxyPointsToTheMetadataOfItsAudience(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		access := w.exchange().access
		const wellKnown = "/.well-known/oauth-protected-resource"
		for audience, want := range map[string]string{
			"":                                  "",
			issuer:                              "",
			"https://mail.example":              "https://mail.example" + wellKnown,
			"https://mail.example/":             "https://mail.example" + wellKnown,
			"https://mail.example/mcp":          "https://mail.example" + wellKnown + "/mcp",
			"https://mail.example/mcp/":         "https://mail.example" + wellKnown + "/mcp/",
			"https://mail.example:8443/a%2Fb":   "https://mail.example:8443" + wellKnown + "/a%2Fb",
			"https://mail.example?tenant=7":     "https://mail.example" + wellKnown + "?tenant=7",
			"https://mail.example/mcp?tenant=7": "https://mail.example" + wellKnown + "/mcp?tenant=7",
			"http://127.0.0.1:9/mcp":            "http://127.0.0.1:9" + wellKnown + "/mcp",
			"http://mail.example/mcp":           "",
			"urn:example:mail":                  "",
			`https://mail.example/"`:            "",
			"https://mail.example/\r\n":         "",
		} {
			metadata, query := "", ""
			if want != "" {
				metadata = `, resource_metadata="` + want + `"`
			}
			if audience != "" {
				query = "?audience=" + url.QueryEscape(audience)
			}
			for _, path := range []string{verifyPath, authorizePath} {
				got := w.get(path+query).stopped(401, "missing_credentials").header.Get("WWW-Authenticate")
				wantEqual(t, path+query+": WWW-Authenticate", got, `Bearer realm="remit"`+metadata)
				if audience == "" || audience == issuer {
					continue
				}
				r := w.get(path+query, asAgent(access)).stopped(401, "invalid_token")
				want := `Bearer realm="remit", error="invalid_token", error_description="` + r.detail() + `"` + metadata
				wantEqual(t, path+query+": WWW-Authenticate", r.header.Get("WWW-Authenticate"), want)
			}
		}
	})
}
