package web

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// fasthttp would not find a header by another form of its name.
func TestCanonicalHeaderNamesAreThoseOfFasthttp(t *testing.T) {
	t.Parallel()
	for _, name := range [][]byte{
		CanonicalAPIKey, CanonicalAuthorization, canonicalExpect, CanonicalRequestID, canonicalCacheControl, canonicalSniffing,
		CanonicalAgent, CanonicalOrganization, CanonicalScopes, CanonicalActor,
	} {
		if normalized := fasthttp.AppendNormalizedHeaderKeyBytes(nil, name); string(normalized) != string(name) {
			t.Errorf("%s is %s to fasthttp", name, normalized)
		}
	}
}
