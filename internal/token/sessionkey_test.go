package token_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"remit/internal/token"
)

// goldenSessionKey is what other code than ours (Python) derives from goldenSession with refreshKey(0).
const goldenSessionKey = "rmsk_-OqPggGPPCq01Y4GkaKzxNXm9woBjzwqtNV-BpGis8TV5vcLAY88KrTVfgaRorPE1eb3CAGPPCq01X4GkaKzxNXm9wwJpYDXZCnUWw8I3w9ig9I2EKGhylZwTnSOjVs0QNl35A"

var goldenSession = token.SessionKey{
	ID:           uuid.MustParse("018f3c2a-b4d5-8e06-91a2-b3c4d5e6f70a"),
	Session:      uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6f70b"),
	Agent:        goldenFacts.Agent,
	Organization: uuid.MustParse("018f3c2a-b4d5-7e06-91a2-b3c4d5e6f70c"),
}

func TestASessionKeyHoldsWhatItWasDerivedFrom(t *testing.T) {
	t.Parallel()
	ring := newRefreshKeyring(t, refreshKey(t, 1), refreshKey(t, 0)) // the token key was rotated since
	if got, err := ring.ParseSessionKey(goldenSessionKey); err != nil || got != goldenSession {
		t.Errorf("ParseSessionKey = %+v, %v; want %+v", got, err, goldenSession)
	}
	if got := newRefreshKeyring(t, refreshKey(t, 0)).FormatSessionKey(goldenSession); got != goldenSessionKey {
		t.Errorf("FormatSessionKey = %s, want %s", got, goldenSessionKey)
	}
}

// Session keys are derived as refresh tokens are, whose tests forge and malform them.
func TestNoRefreshTokenPassesForASessionKey(t *testing.T) {
	t.Parallel()
	body := decode(t, strings.TrimPrefix(goldenSessionKey, token.SessionKeyPrefix))[:4+4*16]
	mac := hmac.New(sha256.New, countUp(0))
	mac.Write([]byte("remit refresh token\x00"))
	mac.Write(body)
	authenticated := token.SessionKeyPrefix + encode(string(mac.Sum(body[:len(body):len(body)])))
	for bad, want := range map[string]error{authenticated: token.ErrSignature, goldenRefresh: token.ErrMalformed} {
		if got, err := newRefreshKeyring(t, refreshKey(t, 0)).ParseSessionKey(bad); !errors.Is(err, want) || got != (token.SessionKey{}) {
			t.Errorf("ParseSessionKey(%q) = %+v, %v; want %v", bad, got, err, want)
		}
	}
}
