// Package openapi holds the description of the HTTP API, openapi.json (OpenAPI 3.1), which is written by hand, and makes a
// page of it that people can read. The tests of the server hold every answer to the file: see conformance.
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

// Document is what a service serves as it is.
type Document struct {
	Body []byte
	// ETag is of this body alone (RFC 9110 §8.8.3).
	ETag string
	// Policy is the Content-Security-Policy it needs, "" for none.
	Policy string
}

func newDocument(body []byte, policy string) Document {
	sum := sha256.Sum256(body)
	return Document{Body: body, ETag: `"` + hex.EncodeToString(sum[:8]) + `"`, Policy: policy}
}

// JSON returns the description as it stands in the repository.
var JSON = sync.OnceValue(func() Document { return newDocument(description, "") })

// Page returns the description as HTML. It is made once; it panics on a file that it cannot read, which is part of the
// program.
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

// policyFor lets a browser use nothing but this style, this script and the empty icon.
func policyFor(style, script string) string {
	return "default-src 'none'; style-src " + hashSource(style) + "; script-src " + hashSource(script) + "; img-src data:; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// hashSource is how a policy names a text by its hash (CSP Level 3, §2.3.1).
func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
