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
			key, err := client.GenerateKey(a)
			if err != nil {
				b.Fatal(err)
			}
			remit, err := client.New("http://remit.test", client.Options{})
			if err != nil {
				b.Fatal(err)
			}
			agent, err := remit.AgentWithToken(jwtWith(`{"sub":"a1","cnf":{"jkt":"`+key.Thumbprint()+`"}}`), key)
			if err != nil {
				b.Fatal(err)
			}
			r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://remit.test/v1/sessions/s1/actions", nil)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := agent.Prove(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
