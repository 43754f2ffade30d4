package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"remit/test/prover"
)

// 65,536 tokens are in the cache, and what a client writes into the header of its proofs is up to the client.
func TestTheCacheKeepsNoLongKeysOfProofs(t *testing.T) {
	t.Parallel()
	s := runServer(t, "", Config{})
	client := from(t, "")
	agent, secret := s.newAgent(t, client)
	for name, test := range map[string]struct {
		algorithm, more string
		kept            bool
	}{
		"ES256":                   {"ES256", "", true},
		"ES384":                   {"ES384", "", true},
		"EdDSA":                   {"EdDSA", "", true},
		"RS256":                   {"RS256", "", true},
		"with something else too": {"ES256", strings.Repeat("x", 1000), false},
	} {
		t.Run(name, func(t *testing.T) {
			key := prover.New(test.algorithm)
			prove := func(path, access string) string {
				header := key.Header()
				header["more"] = test.more
				return key.Sign(header, prover.Proof{Method: "POST", URL: "http://" + s.address + path, Token: access}.Claims())
			}
			pair := s.post(t, client, "/v1/auth/token", fmt.Sprintf(`{"agent_id":%q,"secret":%q}`, agent, secret),
				"DPoP", prove("/v1/auth/token", "")).is(t, 200, "")
			access := pair.text(t, "access_token")
			s.post(t, client, "/v1/auth/revoke", fmt.Sprintf(`{"refresh_token":%q}`, pair.text(t, "refresh_token")),
				"Authorization", "DPoP "+access, "DPoP", prove("/v1/auth/revoke", access)).is(t, 200, "")
			found, err := s.guard.Tokens.Load().Verify([]byte(access), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if kept := found.Proofs.Key.Load() != nil; kept != test.kept {
				t.Errorf("the key is kept: %t", kept)
			}
		})
	}
}
