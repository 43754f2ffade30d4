package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"remit/test/prover"
	"remit/test/suite"
)

// 65,536 tokens are in the cache, and what a client writes into the header of its proofs is up to the client.
func TestTheCacheKeepsNoLongKeysOfProofs(t *testing.T) {
	t.Parallel()
	s := runServer(t, "", Config{})
	client := from(t, "")
	agent, secret := s.newAgent(t, client)
	keeps := func(algorithm, more string) bool {
		key := prover.New(algorithm)
		prove := func(path, access string) string {
			header := key.Header()
			header["more"] = more
			return key.Sign(header, prover.Proof{Method: "POST", URL: "http://" + s.address + path, Token: access}.Claims())
		}
		pair := s.post(t, client, "/v1/auth/token", fmt.Sprintf(`{"agent_id":%q,"secret":%q}`, agent, secret),
			"DPoP", prove("/v1/auth/token", "")).is(t, 200, "")
		access := pair.text(t, "access_token")
		s.post(t, client, "/v1/auth/revoke", fmt.Sprintf(`{"refresh_token":%q}`, pair.text(t, "refresh_token")),
			"Authorization", "DPoP "+access, "DPoP", prove("/v1/auth/revoke", access)).is(t, 200, "")
		return suite.Must(s.guard.Tokens.Load().Verify([]byte(access), time.Now()))(t).Proofs.Key.Load() != nil
	}
	for _, algorithm := range []string{"ES256", "ES384", "EdDSA", "RS256"} {
		if !keeps(algorithm, "") {
			t.Errorf("a key for %s is not kept", algorithm)
		}
	}
	if keeps("ES256", strings.Repeat("x", 1000)) {
		t.Error("a key with something else too is kept")
	}
}
