package token_test

import (
	"errors"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"remit/internal/token"
)

// A reader of events gets checkpoints. None may pass for a token, neither here nor where a verifier looks at the signature, the
// issuer and the time alone.
func TestACheckpointPassesForNoToken(t *testing.T) {
	t.Parallel()
	for _, s := range signers() {
		ring := newKeyring(t, s)
		signed := must(ring.SignCheckpoint(token.Checkpoint{Organization: uuid.New(), Sequence: 7, Hash: "ab", Issued: noon}))(t)
		if _, err := ring.VerifyAccess(signed, noon); err == nil {
			t.Errorf("%s: it is an access token", s.name)
		}
		parser := jwt.NewParser(jwt.WithIssuer(issuer), jwt.WithTimeFunc(func() time.Time { return noon }))
		_, err := parser.Parse(signed, func(*jwt.Token) (any, error) { return s.private.Public(), nil })
		if !errors.Is(err, jwt.ErrTokenExpired) || errors.Is(err, jwt.ErrTokenSignatureInvalid) {
			t.Errorf("%s: a verifier of tokens says %v", s.name, err)
		}
	}
}
