package token_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"remit/internal/token"
)

func TestACookieOpensUnderTheKeysOfItsTime(t *testing.T) {
	t.Parallel()
	old, fresh := refreshKey(t, 0), refreshKey(t, 1)
	sealed := newRefreshKeyring(t, old).SealCookie("session", []byte("content"))
	if strings.Contains(sealed, "content") {
		t.Error("the cookie shows its content")
	}
	for name, test := range map[string]struct {
		ring *token.Keyring
		name string
		want error
	}{
		"the same key":  {newRefreshKeyring(t, old), "session", nil},
		"a rotated key": {newRefreshKeyring(t, fresh, old), "session", nil},
		"a retired key": {newRefreshKeyring(t, fresh), "session", token.ErrUnknownKey},
		"another name":  {newRefreshKeyring(t, old), "flash", token.ErrSignature},
	} {
		got, err := test.ring.OpenCookie(test.name, sealed)
		if !errors.Is(err, test.want) || test.want == nil && !bytes.Equal(got, []byte("content")) {
			t.Errorf("%s: %q, %v; want %v", name, got, err, test.want)
		}
	}
}

func TestNoOtherTextOpensAsACookie(t *testing.T) {
	t.Parallel()
	ring := newRefreshKeyring(t, refreshKey(t, 0))
	sealed := ring.SealCookie("session", []byte("content"))
	for _, text := range []string{
		"", "x", sealed[:8], sealed + "A", sealed + "=", sealed[:len(sealed)-4], "\n" + sealed, goldenRefresh, strings.Repeat("A", 4096),
	} {
		if got, err := ring.OpenCookie("session", text); err == nil {
			t.Errorf("%.40q opens as %q", text, got)
		}
	}
	if again := ring.SealCookie("session", []byte("content")); again == sealed {
		t.Error("two seals of the same are the same")
	}
}
