package web

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// In the canonical form of fasthttp.
const (
	headerAPIKey = "X-Api-Key"
	headerProof  = "Dpop"
)

// Names for the methods of fasthttp that take a name in canonical form as it is. Its other methods bring the name into that
// form each time, which costs more than the search itself.
var (
	CanonicalAPIKey         = []byte(headerAPIKey)
	CanonicalProof          = []byte(headerProof)
	CanonicalNonce          = []byte("DPoP-Nonce")
	CanonicalThumbprint     = []byte("X-Cnf-Jkt")
	CanonicalAuthorization  = []byte(fasthttp.HeaderAuthorization)
	canonicalEncoding       = []byte(fasthttp.HeaderContentEncoding)
	CanonicalIdempotencyKey = []byte(HeaderIdempotencyKey)
	canonicalExpect         = []byte(fasthttp.HeaderExpect)
	CanonicalRequestID      = []byte(HeaderRequestID)
	canonicalCacheControl   = []byte(fasthttp.HeaderCacheControl)
	canonicalSniffing       = []byte("X-Content-Type-Options")
	CanonicalAgent          = []byte("X-Agent-Id")
	CanonicalOrganization   = []byte("X-Org-Id")
	CanonicalScopes         = []byte("X-Scopes")
	CanonicalActor          = []byte("X-Actor-Id")

	noSniffing = []byte("nosniff")
	noStore    = []byte("no-store")
)

const continues = "100-continue"

// isContinue says whether an expectation is 100-continue, in any case (RFC 9110 §10.1.1).
func isContinue(expectation []byte) bool { return bytes.EqualFold(expectation, []byte(continues)) }

// CountHeader returns how often a header occurs in a block.
func CountHeader(block []byte, wanted string) int {
	count := 0
	for line := range bytes.Lines(block) {
		if name, _, found := bytes.Cut(line, []byte(":")); found && isNamed(name, wanted) {
			count++
		}
	}
	return count
}

// isNamed compares case-insensitively. It compares the lengths first, because it sees every header of every request.
func isNamed(name []byte, wanted string) bool {
	return len(name) == len(wanted) && bytes.EqualFold(name, []byte(wanted))
}

// headerCounts returns how often each name, in canonical form, occurs in a block.
func headerCounts(block []byte) map[string]int {
	counts := map[string]int{}
	for line := range bytes.Lines(block) {
		if name, _, found := bytes.Cut(line, []byte(":")); found {
			counts[string(fasthttp.AppendNormalizedHeaderKeyBytes(nil, name))]++
		}
	}
	return counts
}

func isChunked(block []byte) bool {
	for line := range bytes.Lines(block) {
		if name, value, _ := bytes.Cut(line, []byte(":")); isNamed(name, fasthttp.HeaderTransferEncoding) {
			return bytes.EqualFold(bytes.TrimSpace(value), []byte("chunked"))
		}
	}
	return false
}
