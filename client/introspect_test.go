package client_test

import (
	"strings"
	"testing"

	"remit/client"
)

func TestTheChainOfActorsIsRead(t *testing.T) {
	t.Parallel()
	f := &fake{react: inTurn(
		ok(`{"active":true,"sub":"a3","aud":["https://i","urn:b"],"cnf":{"jkt":"k"},"session_id":"s","act":{"sub":"a2","act":{"sub":"a1"}}}`),
		ok(`{"active":true,"sub":"a1","aud":"urn:b"}`), ok(`{"active":false}`),
	)}
	o := newClient(t, f, client.Options{}).Organization("k")
	for _, want := range []string{"true a3 https://i+urn:b k s a2+a1", "true a1 urn:b   ", "false     "} {
		i, err := o.Introspect(t.Context(), "t")
		got := map[bool]string{true: "true", false: "false"}[i.Active] + " " + strings.Join([]string{i.Subject, strings.Join(i.Audience, "+"), i.Thumbprint, i.SessionID, strings.Join(i.Actors, "+")}, " ")
		if err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}
