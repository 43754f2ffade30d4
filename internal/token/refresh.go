package token

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
)

// RefreshToken is the content of a refresh token.
type RefreshToken struct {
	Agent      uuid.UUID
	Family     uuid.UUID // of all tokens that descend from one token exchange
	Generation uint32    // 1 for the first of the family, then incremented by each rotation
}

// RefreshKey derives and verifies refresh tokens and session keys.
type RefreshKey struct {
	id     [refreshKeyIDSize]byte
	secret [refreshKeySize]byte
	macs   sync.Pool // hash.Hash keyed with the secret, because keying takes as long as the HMAC itself

	lastNonce atomic.Pointer[issuedNonce] // that was made for proofs, nil for none yet
}

// RefreshPrefix is the prefix of every refresh token and of no access token.
const RefreshPrefix = "rmr_"

const (
	refreshKeySize   = 32
	refreshKeyIDSize = 4
)

var refreshTokens = derived{prefix: RefreshPrefix, purpose: []byte("remit refresh token\x00"), facts: 16 + 16 + 4}

// derived is a kind of credential that a refresh key derives: its prefix, and in base64url the name of the key, the facts, and the HMAC
// of these two.
type derived struct {
	prefix  string
	purpose []byte // keeps what the key authenticates here apart from what it authenticates elsewhere
	facts   int    // bytes
}

func (d derived) bodySize() int { return refreshKeyIDSize + d.facts }
func (d derived) size() int     { return d.bodySize() + sha256.Size }

// GenerateRefreshKey returns a new key in the form that ParseRefreshKey reads: base64 of 32 random bytes.
func GenerateRefreshKey() []byte {
	var secret [refreshKeySize]byte
	rand.Read(secret[:])
	return []byte(base64.StdEncoding.EncodeToString(secret[:]) + "\n")
}

// ParseRefreshKey reads a key from the base64 of 32 bytes, as `openssl rand -base64 32` prints it. It ignores surrounding
// white space and returns ErrKey for anything else.
func ParseRefreshKey(text []byte) (*RefreshKey, error) {
	secret, err := parseKeyFile(text)
	if err != nil {
		return nil, err
	}
	key := &RefreshKey{secret: [refreshKeySize]byte(secret)}
	name := sha256.Sum256(append([]byte("remit refresh key id\x00"), secret...))
	copy(key.id[:], name[:])
	return key, nil
}

// parseKeyFile reads the base64 of 32 bytes on one line, as `openssl rand -base64 32` prints it.
func parseKeyFile(text []byte) ([]byte, error) {
	encoded := strings.TrimSpace(string(text))
	secret, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(secret) != refreshKeySize || strings.ContainsAny(encoded, "\r\n") {
		return nil, fmt.Errorf("%w: want the base64 of %d random bytes", ErrKey, refreshKeySize)
	}
	return secret, nil
}

// String returns the key's public name, so that a key printed by mistake shows nothing else.
func (key *RefreshKey) String() string { return fmt.Sprintf("%x", key.id) }

// FormatRefresh returns the refresh token that the keyring's first refresh key derives. The same content always gives the same
// token.
func (k *Keyring) FormatRefresh(t RefreshToken) string {
	var facts [16 + 16 + 4]byte
	copy(facts[:], t.Agent[:])
	copy(facts[16:], t.Family[:])
	binary.BigEndian.PutUint32(facts[32:], t.Generation)
	return k.refresh[0].format(refreshTokens, facts[:])
}

// ParseRefresh verifies the HMAC of a refresh token and returns its content. It rejects a forged token without the store, with
// ErrMalformed, ErrUnknownKey or ErrSignature. The store decides whether the token is still live.
func (k *Keyring) ParseRefresh(text string) (RefreshToken, error) {
	facts, err := k.parse(refreshTokens, text)
	if err != nil {
		return RefreshToken{}, err
	}
	return RefreshToken{
		Agent:      uuid.UUID(facts[:16]),
		Family:     uuid.UUID(facts[16:32]),
		Generation: binary.BigEndian.Uint32(facts[32:]),
	}, nil
}

// parse verifies the HMAC of a derived credential and returns its facts.
func (k *Keyring) parse(d derived, text string) ([]byte, error) {
	raw, err := d.decode(text)
	if err != nil {
		return nil, err
	}
	key := k.refreshKey([refreshKeyIDSize]byte(raw))
	if key == nil {
		return nil, ErrUnknownKey
	}
	body := raw[:d.bodySize()]
	if !hmac.Equal(raw[d.bodySize():], key.appendMAC(d.purpose, nil, body)) {
		return nil, ErrSignature
	}
	return body[refreshKeyIDSize:], nil
}

// decode rejects line breaks, which base64 would skip, and trailing bits.
func (d derived) decode(text string) ([]byte, error) {
	encoded, found := strings.CutPrefix(text, d.prefix)
	if !found || len(encoded) != base64.RawURLEncoding.EncodedLen(d.size()) || strings.ContainsAny(encoded, "\r\n") {
		return nil, ErrMalformed
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return nil, ErrMalformed
	}
	return raw, nil
}

func (k *Keyring) refreshKey(id [refreshKeyIDSize]byte) *RefreshKey {
	for _, key := range k.refresh {
		if key.id == id {
			return key
		}
	}
	return nil
}

func (key *RefreshKey) format(d derived, facts []byte) string {
	raw := make([]byte, 0, d.size())
	raw = append(append(raw, key.id[:]...), facts...)
	raw = key.appendMAC(d.purpose, raw, raw)
	text := make([]byte, 0, len(d.prefix)+base64.RawURLEncoding.EncodedLen(d.size()))
	return string(base64.RawURLEncoding.AppendEncode(append(text, d.prefix...), raw))
}

// appendMAC appends the HMAC of the body for a purpose.
func (key *RefreshKey) appendMAC(purpose, to, body []byte) []byte {
	mac, pooled := key.macs.Get().(hash.Hash)
	if !pooled {
		mac = hmac.New(sha256.New, key.secret[:])
	}
	defer key.macs.Put(mac)
	mac.Reset()
	mac.Write(purpose)
	mac.Write(body)
	return mac.Sum(to)
}
