package token

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestVerifyAccessRefusesATokenFromTheFuture(t *testing.T) {
	t.Parallel()
	fresh, err := GenerateSigningKey(Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	signing, err := ParseSigningKey(fresh)
	if err != nil {
		t.Fatal(err)
	}
	refresh, err := ParseRefreshKey(GenerateRefreshKey())
	if err != nil {
		t.Fatal(err)
	}
	ring, err := NewKeyring("https://remit.example", []*SigningKey{signing}, []*RefreshKey{refresh})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	for ahead, want := range map[time.Duration]error{
		0: nil, maxClockSkew: nil, maxClockSkew + time.Second: ErrClaims, time.Hour: ErrClaims, 200 * 365 * 24 * time.Hour: ErrClaims,
	} {
		agent := uuid.New()
		text, err := ring.SignAccess(Access{
			Agent: agent, Client: agent, Audience: []string{ring.Issuer()}, Organization: uuid.New(), Family: uuid.New(), Issued: now.Add(ahead),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ring.VerifyAccess(text, now); !errors.Is(err, want) {
			t.Errorf("issued %s from now: %v, want %v", ahead, err, want)
		}
	}
}
