package server

import (
	"testing"

	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

// fasthttp would not find a header by another form of its name.
func TestCanonicalHeaderNamesAreThoseOfFasthttp(t *testing.T) {
	t.Parallel()
	for _, name := range [][]byte{
		web.CanonicalAPIKey, web.CanonicalAuthorization, web.CanonicalExpect, web.CanonicalRequestID, web.CanonicalCacheControl, web.CanonicalSniffing,
		web.CanonicalAgent, web.CanonicalOrganization, web.CanonicalScopes, web.CanonicalActor,
	} {
		if normalized := fasthttp.AppendNormalizedHeaderKeyBytes(nil, name); string(normalized) != string(name) {
			t.Errorf("%s is %s to fasthttp", name, normalized)
		}
	}
}
