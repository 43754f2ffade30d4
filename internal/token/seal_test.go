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
	for _, other := range [][3]string{ // the secret, the idempotency key and what is sealed
		{"secreT", "key", sealed}, {"", "key", sealed}, {"secret", "key2", sealed}, {"secretk", "ey", sealed},
		{"secret", "key", ""}, {"secret", "key", sealed[:20]}, {"secret", "key", replaceByte(sealed, 20, sealed[20]^1)},
	} {
		if got, ok := token.NewAnswerSeal(other[0], other[1]).Open(other[2]); ok || got != "" {
			t.Errorf("%q opens it: %q", other, got)
		}
	}
}
