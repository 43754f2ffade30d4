package token_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"remit/internal/token"
)

func TestASealOpensForItsSecretAndIdempotencyKeyAlone(t *testing.T) {
	t.Parallel()
	credential := token.NewAPIKey(uuid.New())
	sealed := token.NewAnswerSeal("secret", "key").Seal(credential)
	if strings.Contains(sealed, credential) || strings.Contains(sealed, credential[4:20]) {
		t.Error("the credential can be read")
	}
	if again := token.NewAnswerSeal("secret", "key").Seal(credential); again == sealed {
		t.Error("sealed twice it is the same, so the nonce is")
	}
	if got, ok := token.NewAnswerSeal("secret", "key").Open(sealed); !ok || got != credential {
		t.Errorf("%q, %t", got, ok)
	}
	for name, open := range map[string]func() (string, bool){
		"another secret":      func() (string, bool) { return token.NewAnswerSeal("secreT", "key").Open(sealed) },
		"no secret":           func() (string, bool) { return token.NewAnswerSeal("", "key").Open(sealed) },
		"another key":         func() (string, bool) { return token.NewAnswerSeal("secret", "key2").Open(sealed) },
		"a boundary moved":    func() (string, bool) { return token.NewAnswerSeal("secretk", "ey").Open(sealed) },
		"nothing":             func() (string, bool) { return token.NewAnswerSeal("secret", "key").Open("") },
		"its beginning":       func() (string, bool) { return token.NewAnswerSeal("secret", "key").Open(sealed[:20]) },
		"one bit of it other": func() (string, bool) { return token.NewAnswerSeal("secret", "key").Open(flipped(sealed)) },
	} {
		if got, ok := open(); ok || got != "" {
			t.Errorf("%s opens it: %q", name, got)
		}
	}
}

func flipped(sealed string) string {
	bytes := []byte(sealed)
	bytes[len(bytes)/2] ^= 1
	return string(bytes)
}
