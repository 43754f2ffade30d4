// Package openapi holds the description of the HTTP API, openapi.json (OpenAPI 3.1), and renders it as a web page. The
// file is written by hand. The tests of the server check every response against it: see test/conformance.
package openapi

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"sync"
)

var (
	//go:embed openapi.json
	description []byte
	//go:embed page.html
	pageTemplate string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
)

// Document is a static response body with its headers.
type Document struct {
	Body []byte
	// ETag is the strong entity tag of Body (RFC 9110 §8.8.3).
	ETag string
	// Policy is the Content-Security-Policy, "" for none.
	Policy string
}

func newDocument(body []byte, policy string) Document {
	sum := sha256.Sum256(body)
	return Document{Body: body, ETag: `"` + hex.EncodeToString(sum[:8]) + `"`, Policy: policy}
}

// JSON returns openapi.json unchanged.
var JSON = sync.OnceValue(func() Document { return newDocument(description, "") })

// Page returns the description as HTML. It renders the page once, and panics if the embedded file is invalid.
var Page = sync.OnceValue(func() Document {
	style, script := strings.TrimSpace(pageStyle), strings.TrimSpace(pageScript)
	api, err := read(description)
	if err != nil {
		panic(err)
	}
	html, err := render(api, style, script)
	if err != nil {
		panic(err)
	}
	return newDocument(html, policyFor(style, script))
})

// policyFor allows only this style, this script and the empty icon.
func policyFor(style, script string) string {
	return "default-src 'none'; style-src " + hashSource(style) + "; script-src " + hashSource(script) + "; img-src data:; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// hashSource returns the hash-source of a text (CSP Level 3, §2.3.1).
func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
