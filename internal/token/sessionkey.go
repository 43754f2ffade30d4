package token

import "github.com/google/uuid"

// SessionKey is the content of a session key: with it its holder acts as the session's agent, in that session alone.
type SessionKey struct {
	ID           uuid.UUID // in place of the family of an access token
	Session      uuid.UUID
	Agent        uuid.UUID
	Organization uuid.UUID
}

// SessionKeyPrefix is the prefix of every session key and of no access token.
const SessionKeyPrefix = "rmsk_"

var sessionKeys = derived{prefix: SessionKeyPrefix, purpose: []byte("remit session key\x00"), facts: 4 * 16}

// FormatSessionKey returns the session key that the keyring's first refresh key derives. The same content always gives the same key.
func (k *Keyring) FormatSessionKey(s SessionKey) string {
	var facts [4 * 16]byte
	for i, id := range []uuid.UUID{s.ID, s.Session, s.Agent, s.Organization} {
		copy(facts[16*i:], id[:])
	}
	return k.refresh[0].format(sessionKeys, facts[:])
}

// ParseSessionKey verifies the HMAC of a session key and returns its content. It rejects a forged key without the store, with
// ErrMalformed, ErrUnknownKey or ErrSignature. The store decides whether the key is still live.
func (k *Keyring) ParseSessionKey(text string) (SessionKey, error) {
	facts, err := k.parse(sessionKeys, text)
	if err != nil {
		return SessionKey{}, err
	}
	return SessionKey{uuid.UUID(facts[:16]), uuid.UUID(facts[16:32]), uuid.UUID(facts[32:48]), uuid.UUID(facts[48:])}, nil
}
