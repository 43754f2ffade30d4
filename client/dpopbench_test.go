package client_test

import (
	"net/http"
	"testing"

	"remit/client"
)

// What a proof costs the agent, with its request's headers.
func BenchmarkProof(b *testing.B) {
	for _, a := range []client.Algorithm{client.ES256, client.EdDSA} {
		b.Run(string(a), func(b *testing.B) {
			key := must(client.GenerateKey(a))(b)
			remit := must(client.New("http://remit.test", client.Options{}))(b)
			agent := must(remit.AgentWithToken(jwtWith(`{"sub":"a1","cnf":{"jkt":"`+key.Thumbprint()+`"}}`), key))(b)
			r := must(http.NewRequestWithContext(b.Context(), http.MethodPost, "http://remit.test/v1/sessions/s1/actions", nil))(b)
			for b.Loop() {
				noError(b, agent.Prove(b.Context(), r))
			}
		})
	}
}
