package client_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"remit/client"
)

func TestExchangedTokensAreNotPrinted(t *testing.T) {
	t.Parallel()
	f := &fake{react: inTurn(fails(errReset), pair(1))}
	got, err := newClient(t, f, client.Options{}).Exchange(t.Context(), "a1", "s")
	want := client.TokenPair{AccessToken: "access-1", RefreshToken: "refresh-1", TokenType: "bearer", ExpiresIn: 3600}
	if err != nil || got != want {
		t.Errorf("%q %q, %v", string(got.AccessToken), string(got.RefreshToken), err)
	}
	if body := f.to(exchangePath)[1].body; body != `{"agent_id":"a1","secret":"s"}` {
		t.Errorf("sent %s", body)
	}
	if text := fmt.Sprintf("%+v %#v", got, got); strings.Contains(text, "access-1") || strings.Contains(text, "refresh-1") {
		t.Errorf("it prints as %s", text)
	}
}

func TestAnExchangeOfAWrongSecretIsUnauthorized(t *testing.T) {
	t.Parallel()
	f := &fake{react: inTurn(refusal(401, "invalid_credentials"))}
	_, err := newClient(t, f, client.Options{}).Exchange(t.Context(), "a1", "very-secret")
	if !errors.Is(err, client.ErrUnauthorized) || strings.Contains(err.Error(), "very-secret") || f.count(exchangePath) != 1 {
		t.Errorf("%v, after %d requests", err, f.count(exchangePath))
	}
}
